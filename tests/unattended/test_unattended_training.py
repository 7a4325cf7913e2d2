"""`train --unattended`: nobody leads or is asked; where a person is needed, it ends saved, and calls them."""

from dataclasses import replace

import pytest
from judged_arm import SKILLED, practised_arm
from running import one_thread, robot_rl

from robot_rl.cell.robot_file import read_robot_file
from robot_rl.cell.robot_place import robot_deployment
from robot_rl.cli.main import main
from robot_rl.config.load import load_config
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import ArmStoppedError, InterruptedRunError
from robot_rl.run.resume import read_training
from robot_rl.unattended.training import train_unattended


def trained(file, path, *settings, resume, call="", patience=1.0):
    """Trains on the arm in this process."""
    place = replace(robot_deployment(read_robot_file(file, "there")), call=call)
    with one_thread():
        config = load_config(None, [*SKILLED, "task=there", "intervention.enabled=false", *settings])
        return train_unattended(config, path, resume=resume, deployment=place, patience=patience)


@pytest.mark.slow
@pytest.mark.wall_clock
def test_after_some_time_without_a_success_it_ends_saved_and_is_resumed(tmp_path):
    def unreachable(content):
        content["goal"]["steps"] = 1000
        content["cell"]["scene"] = "none"

    file, path, called = practised_arm(tmp_path, unreachable), tmp_path / "run", tmp_path / "called"
    with pytest.raises(InterruptedRunError, match=r"waits for a person: no success .* make the scene ready, and saved"):
        trained(file, path, "env_steps=500", resume=False, call=f"sh -c 'echo \"$0\" >> {called}'")
    assert "there has stopped safely and waits for a person: no success" in called.read_text()
    with EpisodeStore.open(path / "episodes") as store:
        before = [row.episode_id for row in store.summaries()]
    assert len(before) == 2, "a demonstration, and an episode longer than the patience"
    practised_arm(tmp_path, lambda content: content["cell"].update(scene="none"))  # the goal can be reached again
    summary = trained(file, path, "env_steps=20", resume=True)
    assert (summary["success_rate"], summary["person"]["takeovers"]) == (1.0, 0)
    with EpisodeStore.open(path / "episodes") as store:
        assert [row.episode_id for row in store.summaries()][:2] == before


@pytest.mark.slow
@pytest.mark.wall_clock
def test_an_arm_that_has_stopped_ends_it_with_the_command_that_goes_on_and_a_call(tmp_path):
    def stopping(content):
        content["arm"]["faults"] = ["reflex@7"]
        content["cell"].update(scene="none", devices=["spacemouse"])  # nobody leads with it

    file, path, called = practised_arm(tmp_path, stopping), tmp_path / "run", tmp_path / "called"
    flags = [flag for setting in SKILLED[:-1] for flag in ("--set", setting)]
    done = robot_rl(
        *("train", "there", "--robot", file, *flags, "--steps", 1000, "--unattended", "--out", path),
        *("--call", f"sh -c 'echo \"$0\" > {called}'"),
    )
    assert done.returncode == 1
    assert "the arm is stopped" in done.stderr
    assert f"robot-rl train --robot {file} --unattended --resume --out {path}" in done.stderr.splitlines()[-1]
    assert "the training has ended, and needs a person: the arm is stopped" in called.read_text()


@pytest.mark.slow
@pytest.mark.wall_clock
def test_an_arm_that_stops_in_the_evaluation_calls_too(tmp_path):
    def stopping(content):
        content["arm"]["faults"] = ["reflex@20"]
        content["cell"].update(scene="none")

    file, path, called = practised_arm(tmp_path, stopping), tmp_path / "run", tmp_path / "called"
    with pytest.raises(ArmStoppedError, match="the arm is stopped"):
        trained(
            file, path, "env_steps=5", "evaluation.episodes=100", resume=False, call=f"sh -c 'echo \"$0\" > {called}'"
        )
    assert "the training has ended, and needs a person: the arm is stopped" in called.read_text()
    assert read_training(path / "checkpoint.pt")["env_steps"] >= 5, "it had learned all steps"


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--unattended", "--console"], "--unattended has nobody there, --console and --teleop a person"),
        (["--patience", "5"], "--patience needs --unattended"),
        (["--unattended", "--set", "intervention.call.rule=doubt"], "leave intervention.call.rule out"),
        (["--unattended", "--call", "no-such-command"], "there is no command 'no-such-command'"),
        (["--unattended", "--robot", "robot.yaml"], "nobody makes the scene ready"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_made(flags, complaint, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    practised_arm(tmp_path)
    try:
        assert main(["train", "there" if "--robot" in flags else "reach", *flags, "--out", "run"]) != 0
    except SystemExit as exit:
        assert exit.code != 0
    assert complaint in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "run").exists()
