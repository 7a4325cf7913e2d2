"""The operator console over topics: the pages, lease and rules of `robot-rl train --console`, in a process of its own.

What a page's hands do goes out on `joy`, as from any device, so the way from hand to command is that of all devices. It
is a required node: without its heartbeats the arm holds.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from sensor_msgs.msg import Joy
from std_msgs.msg import String
from trajectory_msgs.msg import MultiDOFJointTrajectory

from robot_rl.clock import NS_PER_S
from robot_rl.config.nodes import ConsoleNodeConfig
from robot_rl.console.access import TOKEN_VARIABLE, Address
from robot_rl.console.job_state import JobState
from robot_rl.console.recorded_episodes import recorded_rows
from robot_rl.data.schema import Source
from robot_rl.data.store.layout import EPISODES, find_store
from robot_rl.env.state_assembler import Freshness
from robot_rl.errors import ConfigError, DataError, GraphError, StaleStateError
from robot_rl.geometry import Pose
from robot_rl.hil.operator_setup import console_class
from robot_rl.run.directory.metrics import read_metrics
from robot_rl.teleop.device_operator import DeviceOperator
from robot_rl.teleop.mapping import DeviceMap, default_map, load_map
from robot_rl.teleop.remote_device import as_device
from ros_nodes.bridge.ros_operator import FACT, to_make_ready
from ros_nodes.bridge.ros_state import RosReadings
from ros_nodes.bridge.ros_supervision import RosSupervision
from ros_nodes.bridge.wait import Arrivals
from ros_nodes.interface import convert, topics
from ros_nodes.interface.task_messages import Advanced, Estimates, TaskHead, from_text
from ros_nodes.node.parameters import declare, refuse_changes
from ros_nodes.node.robot_node_base import RobotNode, is_neighbour
from ros_nodes.node.spin import run_job

HAND_RATE = 50.0
"""How often it says on `joy` how the page's hands are [Hz]."""
RECORDS_PERIOD = 1.0
"""Time between two looks at what was recorded [s]."""
AGES = 1e12
"""Age of a state that is shown in lockstep [s]: its stamps are not the wall clock's."""
IDLE = 1.0
"""Time without a command after which no episode runs [s]."""


class ConsoleNode(RobotNode):
    """The node; its parameters are those of `ConsoleNodeConfig`. `serve` opens the console."""

    def __init__(self, **options: Any) -> None:
        super().__init__("console_node", **options)
        self.config = config = declare(self, ConsoleNodeConfig)
        refuse_changes(self, ConsoleNodeConfig)
        if bool(config.certificate) != bool(config.key):
            raise ConfigError("TLS needs both certificate and key")
        self._arrivals = Arrivals()
        self._head: TaskHead | None = None
        self._waits = False  # whether the task waits until the person has made the scene ready
        self._episode, self._steps, self._led = -1, 0, False
        self._commanded = 0  # when the last command came
        self._told = self._advanced = -1  # stamps of what the hands answered, and in lockstep of what waits for that
        self._metrics = 0  # records that are shown
        self._recorded: object = None  # what tells whether there are new episodes
        self._joy = self.publisher(topics.JOY)
        self.subscribe(topics.HEAD, self._take_head)
        self.subscribe(topics.ESTIMATES, self._take_estimates)
        self.subscribe(topics.INTERVENTION, self._take_intervention)
        self.subscribe(topics.COMMAND, self._take_command)
        self.subscribe(topics.DIAGNOSTICS, self._take_diagnostics)
        self.subscribe(topics.ADVANCED, self._take_advanced)

    def facts(self) -> Mapping[str, object]:
        """Where the console is and who is in control."""
        served = hasattr(self, "console")
        return {"owner": (self.console.owner or "nobody") if served else "not served yet"}

    def serve(self, ended: threading.Event) -> int:
        """Serves the console until `ended`; somebody else spins the node. Returns the exit code.

        Raises:
            GraphError: if no task shows up.
            ConsoleError: if it cannot be served.
            DeviceError: if the map does not fit the page, or aiohttp is not installed.
        """
        config, head = self.config, self._wait_for_head()
        old = AGES if head.lockstep else config.max_age
        readings = RosReadings(
            self,
            self.wall,
            self._arrivals,
            cameras=head.cameras,
            freshness=Freshness(old, old, old),
            lockstep=head.lockstep,
        )
        self._spec = head.spec
        self._to_do = (
            "Press Start; then lead."
            if head.simulation is not None
            else f"{to_make_ready(head.spec).capitalize()}; then press Start."
        )
        self.board = JobState("robot", head.spec)
        self.supervision = RosSupervision(self, readings, self.board.remark)
        run = Path(config.run).expanduser() if config.run else None
        self.console = console_class()(
            Address(config.address),
            self.supervision,
            self.board,
            self._request,
            on_label=self.supervision.label,
            token=os.environ.get(TOKEN_VARIABLE),
            certificate=(Path(config.certificate), Path(config.key)) if config.certificate else None,
            store=run,
            heartbeat=config.heartbeat,
        )
        self._person = DeviceOperator([(self.console.device, self._map())], head.spec, self.supervision)
        self.timer(1.0 / HAND_RATE, self._tick)
        shown = 0
        with self.console:
            # not in a log: it has the token
            print(f"operator console: {self.console.url}", file=sys.stderr, flush=True)
            while not ended.wait(RECORDS_PERIOD):
                shown = self._show_records(run, shown)
        return 1  # by itself it ends only by an error, which was printed

    # ---------------------------------------------------------- what it hears

    def _wait_for_head(self) -> TaskHead:
        if not self._arrivals.wait_for(lambda: self._head is not None, self.config.graph_timeout) or not self._head:
            raise GraphError(f"no node has said on {topics.HEAD.name} which task is to be done; is the robot running?")
        return self._head

    def _take_head(self, message: String) -> None:
        self._head = from_text(TaskHead, message.data)
        self._arrivals.ring()

    def _take_estimates(self, message: String) -> None:
        episode = from_text(Estimates, message.data).episode
        if episode != self._episode:
            self._episode, self._steps = episode, 0
            if hasattr(self, "supervision"):
                self.supervision.io.start = None

    def _take_intervention(self, message: Joy) -> None:
        self._led = convert.intervention_of(message).active

    def _take_command(self, message: MultiDOFJointTrajectory) -> None:
        if message.points:  # otherwise a stop
            self._steps, self._commanded = self._steps + 1, self.wall.now()

    def _take_advanced(self, message: String) -> None:
        self._advanced = from_text(Advanced, message.data).stamp

    def _take_diagnostics(self, message: DiagnosticArray) -> None:
        ours = [status for status in message.status if is_neighbour(self, status.name)]
        said = {pair.key: pair.value for status in ours for pair in status.values}
        if FACT in said:
            self._waits = said[FACT] == "True"

    # ----------------------------------------------------------- what it does

    def _tick(self) -> None:
        """Says how the hands are, and what is going on."""
        self.supervision.insist()
        self._show()
        action, stamp = None, self._advanced
        try:
            state = self.supervision.io.read()
            action, stamp = self._person.act(state, Pose.identity()), max(state.stamp, stamp)
        except StaleStateError as error:  # who is shown nothing leads nothing
            self.problem(str(error))
            self._person.watch()  # so that a page that is lost holds the arm all the same
        if stamp > self._told and (self._advanced >= 0 or self.console.owner is not None):
            self._told = stamp
            self._joy.publish(convert.joy_message(stamp, *as_device(self._spec, action)))

    def _show(self) -> None:
        stopped = self.supervision.stopped
        running = self.wall.now() - self._commanded < IDLE * NS_PER_S
        source = None
        if running:
            by_script = self._head is not None and self._head.operator == "script"
            operator = Source.SCRIPT if by_script else Source.HUMAN
            source = Source.HOLD if stopped else operator if self._led else Source.POLICY
        self.board.follow(f"episode {self._episode}", self._steps, source)
        if self._waits:
            self.board.phase("ready", self._to_do, ("start",))
            return
        may = ("success", "failure", "reset") if self.supervision.judges else ()
        self.board.phase("acting", "Move to take over; let go to hand back.", may)

    def _show_records(self, run: Path | None, shown: int) -> int:
        """Shows episodes and metrics that are new; returns how many episodes are shown."""
        if run is None:
            return shown
        try:
            store = find_store(run)
            changed = (store / EPISODES).stat().st_mtime_ns, (run / "metrics.jsonl").is_file()
            rows = recorded_rows(store, self._spec.control_period, shown) if changed != self._recorded else []
            records = read_metrics(run / "metrics.jsonl") if changed[1] else []
        except (DataError, OSError):
            return shown  # the actor has not begun to record yet
        self._recorded = changed
        self.console.record_to(run / "operator.jsonl")
        for record in records[self._metrics :]:
            self.board.metric(record["kind"], record["env_step"], record)
        self._metrics = max(len(records), self._metrics)
        for row in rows:
            self.board.ended(row)
        return shown + len(rows)

    def _request(self, name: str) -> None:
        """What a page asks of the task.

        Raises:
            GraphError: if nobody takes it.
        """
        if name == "start":
            self.supervision.ready()
            self._waits = False
        elif name == "reset":
            self.supervision.cut("reset by the operator")
        else:
            self.supervision.mark(name == "success")

    def _map(self) -> DeviceMap:
        config = self.config
        mapping = load_map(Path(config.map).expanduser()) if config.map else default_map("browser")
        return replace(mapping, engage=config.engage) if config.engage else mapping


def main() -> int:
    """Runs the node."""
    return run_job(ConsoleNode, ConsoleNode.serve, interrupted=0)


if __name__ == "__main__":
    sys.exit(main())
