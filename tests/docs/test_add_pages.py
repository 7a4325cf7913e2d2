"""Each page `docs/add/*.md` is an example of at most 60 lines that runs. How a page is written: `documents.py`."""

import sys

import pytest
from documents import ADD, MAX_LINES, QUICK, UNSEEN, Example

PAGES = ("algorithm", "arm", "base_policy", "camera", "device", "environment", "labeller", "task")

PAGE = """# Add a greeting

```toml
# pyproject.toml
[project.entry-points."robot_rl.greetings"]
hello = "greeting:HELLO"
```

```python
# greeting.py
HELLO = "hello"
```

The text goes on, and so does the file:

```python
# greeting.py
print(HELLO)
```

```bash
pip install -e .
python -c "from importlib.metadata import entry_points as e; print(e(group='robot_rl.greetings')['hello'].load())"
python -c "raise SystemExit(3)"
python -c "print('never reached')"
```
"""


@pytest.mark.parametrize("name", PAGES)
def test_there_is_a_page_for_each_socket(name):
    assert (ADD / f"{name}.md").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted(ADD.glob("*.md")), ids=lambda page: page.stem)
def test_the_example_of_a_page_is_short_and_runs(page, tmp_path):
    example = Example.read(page)
    assert 0 < example.lines <= MAX_LINES
    assert example.peer_lines <= MAX_LINES
    example.shorten_trainings(f"{QUICK} {UNSEEN}")
    done = example.run(tmp_path)
    assert done[-1].returncode == 0, f"{done[-1].args}\n{done[-1].stdout}\n{done[-1].stderr}"


def test_files_entry_points_and_commands_are_taken_from_a_page(tmp_path):
    page = tmp_path / "greeting.md"
    page.write_text(PAGE)
    example = Example.read(page)
    assert example.files["greeting.py"] == 'HELLO = "hello"\nprint(HELLO)\n'
    assert (example.lines, example.peer_lines) == (2, 0)
    assert len(example.commands) == 3
    done = example.run(tmp_path)
    assert [one.returncode for one in done] == [0, 3]
    assert done[0].stdout == "hello\nhello\n"


def test_a_module_of_a_page_is_imported_for_one_test_only(tmp_path, monkeypatch):
    page = tmp_path / "greeting.md"
    page.write_text(PAGE)
    with monkeypatch.context() as patch:
        assert Example.read(page).load("greeting", tmp_path, patch).HELLO == "hello"
        assert "greeting" in sys.modules
    assert "greeting" not in sys.modules
