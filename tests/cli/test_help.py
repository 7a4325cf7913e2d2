"""Help, near names and completion: of every command, whoever added it."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from calibration.result.lens import LENS_MODELS
from robot_rl.cli.completion import SHELLS, completion
from robot_rl.cli.main import command_line, main
from robot_rl.cli.parts.parser import CommandParser

ROOT = Path(__file__).resolve().parents[2]


def below(parser: CommandParser) -> list[CommandParser]:
    return [parser, *(one for command in parser.commands.values() for one in below(command))]


PARSERS = {parser.prog: parser for parser in below(command_line())}
LEAVES = [parser for parser in PARSERS.values() if not parser.commands]


@pytest.mark.parametrize("prog", PARSERS)
def test_help_gives_the_purpose_an_example_and_a_page(prog):
    parser, text = PARSERS[prog], PARSERS[prog].format_help()
    assert parser.description
    example = re.search(r"^example: (.*)$", text, re.MULTILINE)[1]
    page = re.search(r"^read on: (.*)$", text, re.MULTILINE)[1]
    assert f"robot-rl {prog.removeprefix('robot-rl')}".split()[-1] in example
    assert (ROOT / page).is_file()


@pytest.mark.parametrize("prog", [parser.prog for parser in LEAVES if parser.prog != "robot-rl completion"])
def test_the_example_is_a_valid_call_of_its_command(prog):
    arguments = command_line().parse_args(shlex.split(PARSERS[prog].example)[1:])
    assert arguments.parser.prog == prog


def test_pages_name_each_other():
    assert "robot-rl completion" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("trian reach", "did you mean 'train'?"),
        ("data verfy demos", "did you mean 'verify'?"),
        ("calibrate hand_eye x", "did you mean 'hand-eye'?"),
        ("up rboot", "did you mean 'robot'?"),
        ("train reach --step 3", "did you mean '--steps'?"),
        ("train reach --seeed=3", "did you mean '--seed'?"),
        ("data ls demos --jsn", "did you mean '--json'?"),
        ("demo reach --out new --obs pixel", "did you mean 'pixels'?"),
        ("train rech", "did you mean 'reach'?"),
        ("bench lerner", "did you mean 'learner'?"),
    ],
)
def test_what_is_misspelt_gets_the_near_name(line, hint, capsys):
    try:
        code = main(line.split())
    except SystemExit as exit_:
        code = exit_.code
    printed = capsys.readouterr()
    assert (code in (1, 2), printed.out) == (True, "")
    assert hint in printed.err


def test_the_old_name_of_a_group_names_the_new_one_and_is_not_suggested(capsys):
    with pytest.raises(SystemExit) as left:
        main(["reward", "--help"])
    assert left.value.code == 0
    assert "`robot-rl reward` is `robot-rl classifier` now" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["rewards"])
    assert "'reward'" not in capsys.readouterr().err
    assert "reward" not in command_line().commands


def test_the_kinds_of_lenses_are_those_that_there_are():
    action = next(a for a in PARSERS["robot-rl calibrate intrinsics"].arguments() if a.dest == "model")
    assert action.choices == tuple(LENS_MODELS)


# ------------------------------------------------------------------- completion

TYPED = [
    ("", {"train", "data", "up", "completion"}),
    ("tr", {"train"}),
    ("data ", {"ls", "verify"}),
    ("data v", {"verify", "view"}),
    ("train ", {"reach", "peg_insert"}),
    ("train re", {"reach"}),
    ("train reach --se", {"--set", "--seed"}),
    ("train reach --obs ", {"state", "pixels"}),
    ("train reach --obs p", {"pixels"}),
    ("bench ", {"learner", "replay"}),
    ("calibrate hand-eye pictures --mounting eye-i", {"eye-in-hand"}),
]

REQUEST = {
    "bash": 'source "$1"; COMP_WORDS=(robot-rl {words}); COMP_CWORD={position}; _robot_rl; printf "%s\\n" '
    '"${{COMPREPLY[@]}}"',
    "fish": 'source $argv[1]; complete -C "robot-rl {line}"',
}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder, names = (
        tmp_path_factory.mktemp("completion"),
        {"TASK": ("peg_insert", "reach")},
    )
    for shell in SHELLS:
        (folder / shell).write_text(completion(shell, command_line(), names))
    return folder


@pytest.mark.parametrize("shell", ["bash", "fish"])
@pytest.mark.parametrize(("line", "expected"), TYPED)
def test_a_real_shell_completes(shell, line, expected, scripts):
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    words = line.split() + ([""] if line.endswith(" ") or not line else [])
    quoted = " ".join(shlex.quote(one) for one in words)
    code = REQUEST[shell].format(words=quoted, position=len(words), line=line)
    extra = ["--no-config", "-c", code] if shell == "fish" else ["--norc", "-c", code, "bash"]
    done = subprocess.run([program, *extra, scripts / shell], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    found = {line.partition("\t")[0] for line in done.stdout.splitlines()}  # fish adds the help
    assert found >= expected
    start = words[-1]
    assert all(name.startswith(start) for name in found)


def test_zsh_has_the_functions_of_bash(scripts):
    assert (scripts / "zsh").read_text().endswith((scripts / "bash").read_text())
    program = shutil.which("zsh")
    if program is None:
        pytest.skip("zsh is not installed")
    code = f"source {scripts / 'zsh'}; print ${{_comps[robot-rl]}}"
    done = subprocess.run([program, "-f", "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, "_bash_complete -o default -F _robot_rl"), done.stderr


def test_the_command_prints_the_script_with_the_tasks_of_this_machine(capsys):
    assert main(["completion", "bash"]) == 0
    tasks = "belt cable_clip cube_lift handover pan_flip pan_flip_wrench peg_hard peg_insert ram_insert reach relocate"
    assert (
        f'names="{tasks} relocate_back relocate_forward usb_pick_insert whip dm_control: gym:'
        in capsys.readouterr().out
    )
