"""What the documents say is so: commands, settings and values, files, anchors, names in the code."""

import re

import pytest
from document_checks import problems_of
from document_code import anchors, read_document
from documents import ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/**/*.ipynb")])


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_document_says_what_is_so(path):
    text = read_document(path)
    if path.name == "CHANGELOG.md":
        text = text.split("\n## [")[1]  # the next version, not what was
    of_others = path.name == "migration.md" or path.parent.name == "from"  # they name what is not ours
    assert problems_of(text, path, names=not of_others) == []


def test_each_part_of_the_benchmarks_is_found_from_its_first_table():
    first, *parts = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8").split("\n## ")[1:]
    assert first.startswith("In short\n")
    titles = [part.splitlines()[0] for part in parts]
    assert [title for title in titles if not any(f"(#{anchor})" in first for anchor in anchors(f"# {title}"))] == []


def test_each_module_that_the_migration_names_is_there():
    rows = re.findall(
        r"^\| `([\w.]+)` \| (`\w+` \(.+) \|$", read_document(ROOT / "docs" / "migration.md"), re.MULTILINE
    )
    named = [
        ROOT.joinpath(*folder.split("."), f"{name}.py")
        for folder, row in rows
        for name in re.findall(r"`(\w+)` \(", row)
    ]
    assert len(named) > 100
    assert [path for path in named if not path.is_file()] == []


PLANTED = {
    "a flag": "    robot-rl train reach --teleoperate spacemouse",
    "a flag in a span": "Say `robot-rl train --teleoperate`.",
    "a flag alone": "The flag `--teleoperate` does it.",
    "a command": "    robot-rl trian reach",
    "a task": "    robot-rl train peg_insertion",
    "a missing argument": "    robot-rl demo reach --episodes 3",
    "a choice": "    robot-rl train reach --obs images",
    "a value of a flag": "    robot-rl eval runs/one --episodes many",
    "a flag in a fence, continued": "```bash\nrobot-rl train reach \\\n  --sed 1\n```",
    "a flag behind a pipe": "    robot-rl data info runs/one --jsonl | head",
    "a flag inside $()": '    eval "$(robot-rl completion --shell bash)"',
    "a setting": "    robot-rl train reach --set sac.discont=0.9",
    "a value of a setting": "    robot-rl train reach --set sac.discount=2",
    "a setting in prose": "Lower `sac.discont`.",
    "a setting of another world": "    robot-rl eval runs/one --set world.tlit=0.1",
    "a setting in YAML": "```yaml\nsac: {discont: 0.9}\n```",
    "a key of a robot file": "```yaml\narm: {driver: ur, hots: 10.0.0.2}\n```",
    "a key of a device map": "```yaml\naxes: {x: y}\ndead_zon: 0.1\n```",
    "a driver": "```yaml\narm: {driver: urr, host: 10.0.0.2}\n```",
    "a target of make": "    make tests",
    "an extra": "    pip install 'robot_rl[consoles]'",
    "a flag of a script": "    python benchmarks/learning.py run peg_insert --seedz 0",
    "a script": "    python benchmarks/learn.py run",
    "a node": "    ros2 run robot_rl safty_node",
    "a parameter of a node": "    ros2 run robot_rl safety_node --ros-args -p max_sped:=0.1",
    "a launch file": "    ros2 launch robot_rl training.launch.py",
    "a launch argument": "    ros2 launch robot_rl train.launch.py tsk:=reach",
    "a link": "[there](docs/nowhere.md)",
    "a picture in HTML": '<img src="docs/images/nothing.png">',
    "an anchor": "[there](docs/safety.md#what-is-promissed)",
    "an anchor of this page": "# Here\n\n[there](#her)",
    "a file": "It is in `robot_rl/run/trian.py`.",
    "a test": "`tests/env/test_handover.py::test_nothing` checks it.",
    "a module": "`robot_rl.run.trian` does it.",
    "an identifier": "The metric `success_rate_of_nobody` shows it.",
    "an import": "```python\nfrom robot_rl.errors import ConfgError\n```",
    "syntax": "```python\ndef f(:\n```",
    "entry points": '```toml\n[project.entry-points."robot_rl.robots"]\nmine = "mine:Mine"\n```',
}


@pytest.mark.parametrize("text", PLANTED.values(), ids=PLANTED)
def test_what_is_not_so_is_found(text):
    assert problems_of(text)


def test_what_is_so_is_not_complained_about():
    assert not problems_of(
        "# Here\n\n`robot-rl tasks`, `robot-rl train --set KEY=VALUE`, `make train`, `sac.discount`, [h](#here).\n\n"
        "    robot-rl train reach --seed N --steps STEPS ...  # a run\n\n"
        "```bash\nMUJOCO_GL=egl robot-rl eval runs/a && robot-rl data verify runs/a | head\n```\n"
    )
