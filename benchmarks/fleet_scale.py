"""A fleet of recorded robots: what the link and the learner's intake carry, with and without learning.

    python benchmarks/fleet_scale.py --run runs/fleet/robots/robot1 --robots 1 8 100 --seconds 20 --updates 0

Each robot replays the episodes of a recorded run at its control rate, from a store, through a real link on loopback; so
rows, encoding, sockets, threads and memory are those of a real fleet, and only the arms are missing. With `--updates 0`
nothing is learned, which shows the bound of the intake alone. A network is put between them by
`--latency 0.03 --loss 0.01 --bandwidth 1e6` (`link_model.py`).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
from link_model import LinkModel, Relay

from robot_rl import __version__
from robot_rl.config.load import config_to_dict
from robot_rl.data.replay.percept import Percept
from robot_rl.data.schema import Episode
from robot_rl.data.store.tail import Cursor, StoreTail
from robot_rl.fleet.access import FleetAddress
from robot_rl.fleet.fleet_learner import FleetLearner
from robot_rl.fleet.intake import Intake, ReceivedEpisode
from robot_rl.fleet.plan import FleetPlan, FleetRobot
from robot_rl.fleet.uplink import Uplink
from robot_rl.learn.perception import make_perception
from robot_rl.link.messages import Parameters, RobotHello, encode
from robot_rl.run.deployment import Deployment, workcell_options
from robot_rl.run.directory.run_directory import RunDirectory

TOKEN = "recorded robots of one machine"
SETTLING = 20.0
"""Time before anything is counted [s]."""


class PacedTail(StoreTail):
    """Online episodes of a store, over and over, each as soon as a robot would have played it.

    Args:
        path: The store.
        period: Time between two steps [s].
    """

    def __init__(self, path: Path, period: float) -> None:
        super().__init__(path)
        super().scan()
        recorded = [super(PacedTail, self).read(place) for place in range(len(self._files))]
        self._episodes = [one for one in recorded if not one[0].metadata.get("demonstration")]
        self._ends = np.cumsum([len(episode) * period for episode, _ in self._episodes])
        self._started = time.monotonic() - np.random.default_rng().uniform(0, self._ends[-1])
        self._before = int(self._due())

    def _due(self) -> int:
        rounds, rest = divmod(time.monotonic() - self._started, self._ends[-1])
        return int(rounds) * len(self._ends) + int(np.searchsorted(self._ends, rest))

    def scan(self) -> int:
        """Return how many episodes are played by now."""
        return self._due() - self._before

    def __len__(self) -> int:
        """Return how many episodes are played by now."""
        return self.scan()

    def read(self, place: int) -> tuple[Episode, str]:
        """Return an episode under a name of its own."""
        episode, fingerprint = self._episodes[(self._before + place) % len(self._episodes)]
        return replace(episode, episode_id=f"episode-{place:05d}"), fingerprint

    def check(self, cursor: Cursor, reader: str) -> None:
        """Accept any."""


def main() -> None:
    """Measure each number of robots, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--robots", type=int, nargs="+", default=[1, 8, 100])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--updates", type=int, default=0, help="updates per step; 0: none")
    parser.add_argument("--latency", type=float, default=0.0, help="of the network, one way [s]")
    parser.add_argument("--loss", type=float, default=0.0, help="share of its packets")
    parser.add_argument("--bandwidth", type=float, default=float("inf"), help="of each robot and direction [bytes/s]")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for robots in arguments.robots:
        print(_measure(arguments, robots), flush=True)


def _measure(arguments: argparse.Namespace, robots: int) -> str:
    config = RunDirectory.read_config(arguments.run)
    config = replace(config, demonstrations=0, warmup_steps=10 if arguments.updates else 10**9, env_steps=10**9)
    config = replace(config, update_to_data=max(1, arguments.updates))
    with Deployment().environment(config.task, workcell_options(config)) as env:
        perceptions = [make_perception(env.observation_specs, config)]
        task = env.environment_spec
    names = [f"robot{number}" for number in range(robots)]
    learner = FleetLearner(FleetPlan(config, {name: FleetRobot() for name in names}, {}), task, perceptions[0].spec)
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    model = LinkModel(arguments.latency, arguments.bandwidth, arguments.loss)
    relay = Relay(listener.getsockname()[1], model)
    direct = model == LinkModel()
    address = FleetAddress(f"127.0.0.1:{listener.getsockname()[1] if direct else relay.port}")
    intake = Intake(
        listener, TOKEN, dict.fromkeys(names, 1.0), {}, lambda hello: None, learner.check_episode, lambda line: None
    )
    ages: list[float] = []
    steps, ended, lock = 0, threading.Event(), threading.Lock()

    def percepts(episode: Episode) -> list[Percept]:
        with lock:
            return list(perceptions[0].of_rows(episode.observed))

    def serve() -> None:
        nonlocal steps
        published = 0
        while not ended.is_set():
            received = intake.next(0.1)
            if received is None or not isinstance(received[1], ReceivedEpisode):
                continue
            learner.learn(*received, lambda logs: None)
            intake.learned(received[0])
            steps += len(received[1].steps)
            if steps - published >= 5:
                published = steps
                arrays = {name: value.numpy().copy() for name, value in learner.learner.policy.policy_state().items()}
                intake.publish(Parameters(updates=learner.learner.updates, arrays=arrays))

    def hello(name: str) -> Callable[[int], RobotHello]:
        settings = json.loads(json.dumps(config_to_dict(config)))  # keys of schedules as text, as messages have them
        facts = {"config": settings, "task": asdict(task), "percepts": {}}
        return lambda session: RobotHello(robot=name, session=session, version=__version__, **facts)

    intake.start()
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    store, period = arguments.run / "episodes", task.control_period
    uplinks = [
        Uplink(address, TOKEN, hello(name), PacedTail(store, period), percepts, lambda line: None) for name in names
    ]
    for uplink in uplinks:
        uplink.start()
    for uplink in uplinks:
        if not uplink.wait(lambda standing: standing.connected, 60.0):
            raise SystemExit(f"a robot is not connected: {uplink.inbox.error}")
    time.sleep(SETTLING)  # what was played while the others were connected is sent
    before, cpu = steps, time.process_time()
    began, received_sets, memory = time.monotonic(), 0, []
    while time.monotonic() - began < arguments.seconds:
        time.sleep(0.05)
        memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        received_sets += sum(uplink.inbox.pop_parameters() is not None for uplink in uplinks)
        ages.append(float(np.mean([uplink._tail.scan() - uplink.standing.learned for uplink in uplinks])))
    wall, used = time.monotonic() - began, time.process_time() - cpu
    learned = steps - before
    ended.set()
    thread.join()
    intake.close()
    for uplink in uplinks:
        uplink.close()
    relay.close()
    row = _row_bytes(uplinks[0])
    policy = sum(value.numel() * value.element_size() for value in learner.learner.policy.policy_state().values())
    return (
        f"{robots} robots: {learned / wall:.0f} of {robots / period:.0f} rows/s, {row:.0f} B a row, "
        f"{row / period / 1e3:.1f} kB/s up a robot, {received_sets / wall / robots:.2f} parameter sets/s a robot of "
        f"{policy / 1e3:.0f} kB, behind {np.mean(ages):.1f} episodes, CPU of both ends {used / wall:.2f} cores, "
        f"memory {memory[-1]:.0f} MB, load {os.getloadavg()[0]:.1f}"
    )


def _row_bytes(uplink: Uplink) -> float:
    parts = list(uplink._parts(0))
    return sum(len(encode(part)) for part in parts) / parts[0].length


if __name__ == "__main__":
    main()
