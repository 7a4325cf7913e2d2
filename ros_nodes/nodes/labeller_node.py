"""A labeller as a node: it judges episodes as the actor records them, and raises an alarm when labels go wrong.

It reads the run's store, so it runs where the actor does; nothing waits for it. What it says goes beside the data, for
`robot-rl label report` and `apply`. A training with `reward.kind=labels` has a labeller of its own.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus

from robot_rl.config.labelling import LabelConfig
from robot_rl.config.load import load_component
from robot_rl.config.nodes import LabellerNodeConfig
from robot_rl.data.store.layout import find_store
from robot_rl.errors import ConfigError, DataError, RobotRLError, UnknownNameError
from robot_rl.reward.labels.watch_store import LabelWatching
from robot_rl.system.process import LABELLING, make_way
from ros_nodes.node.parameters import declare, refuse_changes
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.node.spin import run_job


class LabellerNode(RobotNode):
    """The node; its parameters are those of `LabellerNodeConfig`. `serve` labels.

    Raises:
        ConfigError: if no run is named, or the labeller's settings are wrong.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("labeller_node", **options)
        self.config = config = declare(self, LabellerNodeConfig)
        refuse_changes(self, LabellerNodeConfig)
        if not config.run:
            raise ConfigError(
                "whose episodes are to be labelled? Set `run` to the run directory (`out` of the bringup)"
            )
        self._run = Path(config.run).expanduser()
        file = Path(config.config).expanduser() if config.config else None
        self._labeller = load_component(LabelConfig, file, list(config.settings))
        self._watching: LabelWatching | None = None
        self._alarm = ""

    def health(self) -> tuple[bytes, str]:
        """Whether labels can be trusted, and still come."""
        if self._watching is None:
            return DiagnosticStatus.OK, f"waits for {self._run}"
        stopped = str(self._watching.summary()["stopped"])
        if text := self._alarm or stopped:
            return DiagnosticStatus.WARN, text
        return DiagnosticStatus.OK, f"labels {self._watching.path}"

    def facts(self) -> Mapping[str, object]:
        """How many labels there are, how late they came, and how often they were wrong."""
        if self._watching is None:
            return {}
        return {key: value for key, value in self._watching.summary().items() if value is not None and key != "store"}

    def serve(self, ended: threading.Event) -> int:
        """Labels until `ended`; somebody else spins the node. Returns the exit code.

        Raises:
            ConfigError: if the labeller's settings are wrong.
        """
        make_way(LABELLING)
        while not ended.is_set():
            try:
                if (watching := self._begin()) is not None:
                    watching.run(ended, self.config.pause)
                    ended.wait()  # the budget is spent: that is said in the diagnostics, and nothing else ends for it
            except (ConfigError, UnknownNameError):
                raise
            except RobotRLError as error:  # e.g. the server is away: the training does not end for it
                self.problem(str(error))
            ended.wait(self.config.pause)
        return 1  # by itself it ends only by an error, which was printed

    def _begin(self) -> LabelWatching | None:
        """Return what watches the run; None if the actor has not begun to record it yet."""
        if self._watching is None:
            try:
                find_store(self._run)
            except DataError:
                return None
            say = self.get_logger().info
            self._watching = LabelWatching(self._run, self._labeller, self.config.name, notify=say, alarm=self._raise)
        return self._watching

    def _raise(self, text: str) -> None:
        self._alarm = text
        self.problem(text)


def main() -> int:
    """Run the node."""
    return run_job(LabellerNode, lambda node, ended: node.serve(ended), interrupted=0)


if __name__ == "__main__":
    sys.exit(main())
