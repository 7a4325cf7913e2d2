"""A run on an arm of a file goes on with the same content, wherever the file lies."""

import pytest
from running import SMALL
from ur5e import UR5E

from robot_rl.cli.main import main
from robot_rl.config.components import TrainConfig
from robot_rl.config.randomization import WorldConfig
from robot_rl.errors import ConfigError
from robot_rl.run.directory.arm_file import arm_file_facts, check_same_arm_file
from robot_rl.run.directory.run_directory import RunDirectory


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run, whose file was moved since."""
    folder = tmp_path_factory.mktemp("armed")
    (folder / "ur5e.xml").write_text(UR5E)
    few = [*SMALL, "--steps", "20", "--episodes", "1", "--set", "demonstrations=1"]
    arm = f"world.arm={folder / 'ur5e.xml'}"
    assert main(["train", "reach", "--out", str(folder / "run"), *few, "--set", arm]) == 0
    (folder / "ur5e.xml").rename(folder / "moved.xml")
    (folder / "other.xml").write_text(UR5E.replace('mass="3.7"', 'mass="3.8"'))
    return folder / "run"


@pytest.mark.slow
def test_another_content_is_refused(run, tmp_path, capsys):
    other = run.parent / "other.xml"
    for how in (("--resume", "--out", run), ("--fork", run, "--out", tmp_path / "fork")):
        assert main(["train", *map(str, how), "--set", f"world.arm={other}"]) == 1
        said = capsys.readouterr().err
        assert f"was started with {run.parent / 'ur5e.xml'} (sha256" in said
        assert f"{other} is another one; go on with a file of the same content" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_same_content_is_taken(run):
    moved = run.parent / "moved.xml"
    assert main(["train", "--resume", "--out", str(run), "--steps", "30", "--set", f"world.arm={moved}"]) == 0
    assert RunDirectory.read_config(run).world.arm == str(moved)
    assert main(["train", "--resume", "--out", str(run), "--steps", "40"]) == 0


def test_of_a_run_without_that_record_the_files_are_compared(tmp_path):
    def on(name):
        return TrainConfig(task="reach", world=WorldConfig(arm=str(tmp_path / name)))

    for name, content in {"old.xml": UR5E, "copy.xml": UR5E, "other.xml": UR5E + "<!-- -->"}.items():
        (tmp_path / name).write_text(content)
    RunDirectory.create(tmp_path / "run", on("old.xml")).close()
    check_same_arm_file(tmp_path / "run", on("copy.xml"))
    with pytest.raises(ConfigError, match=r"other.xml is another one"):
        check_same_arm_file(tmp_path / "run", on("other.xml"))
    (tmp_path / "old.xml").unlink()
    check_same_arm_file(tmp_path / "run", on("old.xml"))
    with pytest.raises(ConfigError, match="whose content is not known any more"):
        check_same_arm_file(tmp_path / "run", on("copy.xml"))


@pytest.mark.parametrize(
    ("name", "changed"), [("ur5e.xml", "ur5e.xml"), ("arm.yaml", "arm.yaml"), ("arm.yaml", "ur5e.xml")]
)
def test_a_file_that_was_changed_in_its_place_is_refused(tmp_path, name, changed):
    (tmp_path / "ur5e.xml").write_text(UR5E)
    (tmp_path / "arm.yaml").write_text("model: ur5e.xml\nturn: 0.5\n")
    config = TrainConfig(task="reach", world=WorldConfig(arm=str(tmp_path / name)))
    RunDirectory.create(tmp_path / "run", config, facts=arm_file_facts(config)).close()
    check_same_arm_file(tmp_path / "run", config)
    (tmp_path / changed).write_text((tmp_path / changed).read_text() + "\n")
    with pytest.raises(ConfigError, match=rf"{name}, or the model that it names, has changed since .*run was started"):
        check_same_arm_file(tmp_path / "run", config)
    (tmp_path / name).unlink()
    check_same_arm_file(tmp_path / "run", config)  # who makes the arm says that it is gone
