"""A fleet whose robots correct one base, from its file."""

import socket
import threading

import numpy as np
import pytest
from fleets import complaints
from running import SMALL, one_thread, start
from test_fleet_processes import SETTINGS, TOKEN, serve

from robot_rl.base_policy.base_file import BASE_FILE, read_base
from robot_rl.cli.main import main
from robot_rl.config.load import load_config
from robot_rl.data.schema import Source
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import LinkError
from robot_rl.fleet.access import FleetAddress
from robot_rl.fleet.plan import simulated_plan
from robot_rl.fleet.robot_port import FleetMember
from robot_rl.fleet.robot_run import run_robot
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.run.evaluate_run import evaluate_run
from robot_rl.run.train import train

pytestmark = pytest.mark.wall_clock
BOUND = 0.2
BASED = [*SETTINGS, "base.kind=clone", f"base.bound={BOUND}", "base.updates=20", "intervention.enabled=false"]


def base_file(path, seed):
    """The base that a small training makes of its demonstrations."""
    train(load_config(None, [*BASED, "env_steps=20", f"seed={seed}"]), path, resume=False)
    return path / BASE_FILE


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    with one_thread():
        return [base_file(tmp_path_factory.mktemp("base") / "run", seed) for seed in (1, 2)]


@pytest.mark.slow
def test_robots_of_a_fleet_correct_one_base_and_the_learner_keeps_it(bases, tmp_path):
    settings = [word for one in (f"base.bound={BOUND}", "intervention.enabled=false") for word in ("--set", one)]
    flags = ("--robots", "2", "--base", f"clone:{bases[0]}", "--out", tmp_path / "fleet")
    run = start("fleet", "train", "reach", *flags, *SMALL, *settings)
    said = run.communicate(timeout=200)[1]
    assert run.returncode == 0, said
    assert complaints(tmp_path / "fleet", ["robot1", "robot2"]) == []
    for robot in ("robot1", "robot2"):
        with EpisodeStore.open(tmp_path / "fleet/robots" / robot / "episodes") as store:
            played = [episode for episode in store.episodes() if not episode.facts.demonstration]
        away = np.concatenate([np.abs(episode.action - episode.action_base[:-1]) for episode in played])
        assert all((episode.source == Source.POLICY).all() for episode in played)
        assert 0 < away.max() <= BOUND + 1e-6
    learner, moved = tmp_path / "fleet/learner", bases[0].with_suffix(".moved")
    assert load_checkpoint(learner / "checkpoint.pt")["base"]["identity"] == read_base(bases[0], "clone")["identity"]
    bases[0].rename(moved)
    with one_thread():
        assert evaluate_run(learner, episodes=1)["episodes"] == 1, "the run needs nothing else"
    moved.rename(bases[0])


def test_a_robot_with_another_base_is_refused_before_it_moves(bases, tmp_path):
    mine, copied = tmp_path / "mine.pt", tmp_path / "there"
    mine.write_bytes(bases[0].read_bytes())
    plan, other = (simulated_plan(load_config(None, [*BASED, f"base.path={it}"]), 1) for it in (mine, bases[1]))
    with one_thread(), socket.create_server(("127.0.0.1", 0)) as listener:
        member = FleetMember("robot1", FleetAddress("{}:{}".format(*listener.getsockname())), TOKEN)
        ended = threading.Event()
        server, thread = serve(plan, tmp_path / "learner", listener, ended)
        with pytest.raises(LinkError, match=r"other settings of base\.path"):
            run_robot(other, member, copied, resume=False, command="")
        mine.write_bytes(bases[1].read_bytes())  # another machine has another file under this name
        with pytest.raises(LinkError, match=r"robot1 corrects the base .*, the fleet .*; copy the file of base\.path"):
            run_robot(plan, member, copied, resume=False, command="")
        assert not copied.exists()
        server.stop_requested = True
        assert ended.wait(20)
        thread.join()


def test_a_fleet_without_the_file_of_its_base_makes_nothing(tmp_path, capsys):
    plan = tmp_path / "fleet.yaml"
    plan.write_text("robots: {arm1: }\ntrain: {task: reach, demonstrations: 2, base: {kind: clone, path: away.pt}}")
    assert main(["fleet", "learner", "--plan", str(plan), "--listen", ":0", "--out", str(tmp_path / "run")]) == 1
    assert "away.pt" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
