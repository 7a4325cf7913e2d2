"""Whole fleets of real processes, some of them killed."""

import json
import os
import random
import signal
import socket
import threading
import time

import pytest
from fleets import complaints, processes
from running import SMALL, one_thread, start

from robot_rl.cli.main import main
from robot_rl.config.load import load_config
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import LinkError
from robot_rl.fleet.access import FleetAddress
from robot_rl.fleet.plan import simulated_plan
from robot_rl.fleet.robot_port import FleetMember
from robot_rl.fleet.robot_run import run_robot
from robot_rl.fleet.serve import FleetServer
from robot_rl.run.directory.metrics import MetricsWriter
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.system.progress import Progress

pytestmark = pytest.mark.wall_clock

SETTINGS = [
    *("task=reach", "env_steps=80", "demonstrations=2", "warmup_steps=20", "checkpoint_interval=30"),
    *(
        "update_to_data={0: 1, 60: 2}",
        "replay.batch_size=16",
        "sac.hidden_sizes=[32, 32]",
        "evaluation.curve_interval=0",
    ),
    *("evaluation.episodes=1", "evaluation.video_episodes=0"),
]
TOKEN = "a token that is long enough"


@pytest.mark.slow
def test_no_row_is_lost_or_doubled_when_learner_and_robots_are_killed(tmp_path):
    fleet, draw = tmp_path / "fleet", random.Random(0)
    run = start("fleet", "train", "reach", "--robots", "2", "--out", fleet, *SMALL, "--steps", "300")
    killed = []
    try:
        for victim in ("robot1", "learner"):
            end = time.monotonic() + 60
            while victim not in (found := processes(run.pid)) or not (fleet / "learner/checkpoint.pt").exists():
                assert run.poll() is None, run.stderr.read()
                assert time.monotonic() < end
                time.sleep(0.05)
            time.sleep(draw.uniform(0.0, 1.0))
            with_pid = processes(run.pid).get(victim, found[victim])
            os.kill(with_pid, signal.SIGKILL)
            killed.append(victim)
        out, err = run.communicate(timeout=150)
    finally:
        run.kill()
    assert run.returncode == 0, err
    assert err.count("was killed (SIGKILL") >= len(killed) - 1  # one may have been done when it was killed
    assert complaints(fleet, ["robot1", "robot2"]) == []
    summary = json.loads((fleet / "summary.json").read_text())
    assert summary["env_steps"] == sum(row["env_steps"] for row in summary["robots"].values()) >= 300
    assert "evaluate the policy of all" in out


def serve(plan, path, listener, ended):
    """A learner in a thread of this process; returns it and the thread."""
    run = RunDirectory.create(path, plan.whole())
    metrics = MetricsWriter(run.metrics_path)
    server = FleetServer(plan, run, metrics, Progress(None, "fleet", interval=float("inf")), None)

    def work():
        try:
            server.serve(listener, TOKEN)
        finally:
            metrics.close()
            run.close()
            ended.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return server, thread


def test_a_robot_plays_on_without_a_learner_and_delivers_everything_when_it_is_back(tmp_path):
    plan = simulated_plan(load_config(None, SETTINGS), 1)
    with socket.create_server(("127.0.0.1", 0)) as listener, one_thread():
        host, port = listener.getsockname()
        member = FleetMember("robot1", FleetAddress(f"{host}:{port}"), TOKEN, patience=0.2)
        path = tmp_path / "robots/robot1"
        listener.close()  # nobody is there
        with pytest.raises(LinkError, match=r"has saved 0 of .* episodes of robot1; .* start the robot again"):
            run_robot(plan, member, path, resume=False, command="robot-rl fleet robot")
        assert json.loads((path / "summary.json").read_text())["env_steps"] == 80
    with socket.create_server((host, port)) as listener, one_thread():
        ended = threading.Event()
        server, thread = serve(plan, tmp_path / "learner", listener, ended)
        summary = run_robot(plan, member, path, resume=True, command="robot-rl fleet robot")
        assert ended.wait(20)
        thread.join()
    assert summary["env_steps"] == server.learner.learner.env_steps == 80
    with EpisodeStore.open(path / "episodes") as store:
        assert server.learner.cursors["robot1"].episodes == len(store)
    assert complaints(tmp_path, ["robot1"]) == []


def test_a_robot_with_other_axes_or_settings_is_refused_before_it_moves(tmp_path):
    plan = simulated_plan(load_config(None, SETTINGS), 2)
    other = simulated_plan(load_config(None, [*SETTINGS, "task=cube_lift"]), 2)
    discount = simulated_plan(load_config(None, [*SETTINGS, "sac.discount=0.9"]), 2)
    with socket.create_server(("127.0.0.1", 0)) as listener, one_thread():
        address = FleetAddress("{}:{}".format(*listener.getsockname()))
        ended = threading.Event()
        server, thread = serve(plan, tmp_path / "learner", listener, ended)
        for one, message in (
            (discount, "robot2 has other settings of sac.discount"),
            (other, "other settings of task"),
        ):
            member = FleetMember("robot2", address, TOKEN)
            with pytest.raises(LinkError, match=message):
                run_robot(one, member, tmp_path / message[:6], resume=False, command="")
        assert not (tmp_path / "robot2").exists()
        server.stop_requested = True
        assert ended.wait(10)
        thread.join()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("train reach --out new", 2, "give --robots N for simulated robots"),
        ("train reach --robots 2 --out full", 1, "is not empty and no fleet"),
        ("train --resume --out full", 1, "holds no fleet to resume"),
        ("train reach --robots 2 --base chunk --out new", 1, "base.kind=chunk without base.path"),
        ("train reach --robots 2 --base clone:away.pt --out new", 1, "away.pt"),
        ("train rach --robots 2 --out new", 1, "unknown task 'rach'"),
        ("status full", 1, "holds no fleet whose learner has begun"),
        ("robot arm1 --plan no.yaml --out new", 1, "cannot read fleet file no.yaml"),
        ("learner --plan plan.yaml --listen 0.0.0.0 --out new", 1, "set ROBOT_RL_FLEET_TOKEN to the same secret"),
        ("robot arm9 --plan plan.yaml --out new", 1, "unknown robot 'arm9'; valid: arm1"),
    ],
)
def test_wrong_flags_of_a_fleet(tmp_path, monkeypatch, capsys, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROBOT_RL_FLEET_TOKEN", raising=False)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("mine")
    (tmp_path / "plan.yaml").write_text("robots: {arm1: }")
    try:
        ended = main(["fleet", *arguments.split()])
    except SystemExit as exit_:
        ended = exit_.code
    assert ended == code
    assert message in capsys.readouterr().err.replace("\n", " ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "plan.yaml"]
