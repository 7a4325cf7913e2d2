"""What was imported is no garbage any more, while all that is made afterwards is let go of as ever."""

import subprocess
import sys

CODE = """
import gc, os
from robot_rl.system.process import keep_imports
class Held:
    def __del__(self):
        os.write(1, self.name)
def hold(name):
    held = Held()
    held.name, held.itself = name, held
keep_imports()
before = gc.get_freeze_count()
hold(b"while it runs, ")
gc.collect()
assert gc.get_freeze_count() == before > 1000
hold(b"at the end")
raise SystemExit(3)
"""


def test_what_is_made_after_the_imports_is_collected_while_it_runs_and_at_the_end():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout == "while it runs, at the end"
