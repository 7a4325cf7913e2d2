"""The operator console over topics: the pages, lease and rules of `robot-rl train --console`, in a process of its own.

The page is a device like any other: its map is applied here, once, and its actions go out on `intervention`. The node
is a required one: without its heartbeats the arm holds.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from robot_rl.config.nodes import ConsoleNodeConfig
from robot_rl.console.access.address import TOKEN_VARIABLE, Address
from robot_rl.console.job_state import JobState
from robot_rl.env.state_assembler import Freshness
from robot_rl.errors import ConfigError, StaleStateError
from robot_rl.hil.operator_setup import console_class, serving
from robot_rl.teleop.mapping import DeviceMap, find_map
from ros_nodes.bridge.recorded_run import RecordedRun
from ros_nodes.bridge.ros_state import RosReadings
from ros_nodes.bridge.ros_supervision import RosSupervision
from ros_nodes.bridge.ros_teleop import RosTeleoperation
from ros_nodes.bridge.watched_job import WatchedJob
from ros_nodes.node.parameters import declare, refuse_changes
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.node.spin import run_job

RATE = 50.0
"""How often the page's device is read [Hz]."""
RECORDS_PERIOD = 1.0
"""Time between two looks at what was recorded [s]."""
AGES = 1e12
"""Age of a state that is shown in lockstep [s]: its stamps are not the wall clock's."""


class ConsoleNode(RobotNode):
    """The node; its parameters are those of `ConsoleNodeConfig`. `serve` opens the console."""

    def __init__(self, **options: Any) -> None:
        super().__init__("console_node", **options)
        self.config = config = declare(self, ConsoleNodeConfig)
        refuse_changes(self, ConsoleNodeConfig)
        if bool(config.certificate) != bool(config.key):
            raise ConfigError("TLS needs both certificate and key")
        self._sent = -1  # stamp of the newest action of the page
        self.job = WatchedJob(self, self._begin_episode)

    def facts(self) -> Mapping[str, object]:
        """Return who is in control."""
        served = hasattr(self, "console")
        return {"owner": (self.console.owner or "nobody") if served else "not served yet"}

    def serve(self, ended: threading.Event) -> int:
        """Serve the console until `ended`, while another thread spins the node. Return the exit code.

        Raises:
            GraphError: if no task shows up.
            ConsoleError: if it cannot be served.
            DeviceError: if the map does not fit the page, or aiohttp is not installed.
        """
        config, head = self.config, self.job.wait_for_head(self.config.graph_timeout)
        old = AGES if head.lockstep else config.max_age
        readings = RosReadings(
            self,
            self.wall,
            self.job.arrivals,
            cameras=head.cameras,
            freshness=Freshness(old, old, old),
            lockstep=head.lockstep,
            arms=tuple(head.spec.arms),
        )
        self.board = JobState("robot", head.spec)
        self.supervision = RosSupervision(self, readings, self.board.remark)
        run = RecordedRun(Path(config.run).expanduser(), head.spec.control_period, self.board) if config.run else None
        self.console = console_class()(
            Address(config.address),
            self.supervision,
            self.board,
            self._request,
            on_label=self.supervision.label,
            token=os.environ.get(TOKEN_VARIABLE),
            certificate=_certificate(config),
            store=run.path if run is not None else None,
            geometry=self.job.geometry,
            heartbeat=config.heartbeat,
        )
        first, other = self.console.devices
        self.teleoperation = RosTeleoperation(
            self,
            head.spec,
            (first, self._map()),
            self.supervision,
            other=(other, self._map()),
            on_chosen=self.board.choose,
        )
        self.board.choose(self.teleoperation.chosen)
        self.timer(1.0 / RATE, self._tick)
        with serving(self.console):
            while not ended.wait(RECORDS_PERIOD):
                if run is not None and run.show_new():
                    self.console.record_to(run.path / "operator.jsonl")
        return 1  # by itself it ends only by an error, which was printed

    def _begin_episode(self) -> None:
        if hasattr(self, "supervision"):
            self.supervision.io.start = None

    def _tick(self) -> None:
        """Send what the page's device wants, and show the job."""
        self.supervision.insist()
        targets = {} if self.supervision.stopped else dict(self.job.targets)
        self.supervision.io.target, self.supervision.io.targets = targets.pop("", None), targets
        self.job.show(self.board, stopped=self.supervision.stopped, judged=self.supervision.judges)
        advanced = self.job.advanced
        action, stamp = None, advanced
        try:
            state = self.supervision.io.read()
            tools = {arm: one.T_base_tcp for arm, one in state.each.items()}
            action, stamp = self.teleoperation.act(tools), max(state.stamp, advanced)
        except StaleStateError as error:  # nobody leads an arm whose state is not shown
            self.problem(str(error))
            self.teleoperation.watch()  # a page that is lost holds the arm all the same
        if stamp > self._sent and (advanced >= 0 or self.console.owner is not None):
            self._sent = stamp
            self.teleoperation.send(stamp, action)

    def _request(self, name: str) -> None:
        """Pass on a request of the page.

        Raises:
            GraphError: if no node receives it.
        """
        if self.teleoperation.take(name):
            return
        if name == "start":
            self.supervision.ready()
            self.job.waits = False
        elif name == "reset":
            self.supervision.reset()
        else:
            self.supervision.mark(name == "success")

    def _map(self) -> DeviceMap:
        mapping = find_map(self.config.map or "browser")
        return replace(mapping, engage=self.config.engage) if self.config.engage else mapping


def _certificate(config: ConsoleNodeConfig) -> tuple[Path, Path] | Literal["own"] | None:
    if config.certificate:
        return Path(config.certificate), Path(config.key)
    return "own" if config.tls else None


def main() -> int:
    """Run the node."""
    return run_job(ConsoleNode, ConsoleNode.serve, interrupted=0)


if __name__ == "__main__":
    sys.exit(main())
