"""The learner as a node: it holds nothing on disk, and an actor tells it all it needs, also after it was killed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, NoReturn

import torch

from robot_rl.config.nodes import LearnerNodeConfig
from robot_rl.errors import RobotRLError
from robot_rl.link.learner_process import LearnerServer
from robot_rl.link.messages import Failure
from robot_rl.link.socket import PeerGoneError
from robot_rl.system.process import LEARNING, make_way
from ros_nodes.bridge.link_topics import ActorOverTopics
from ros_nodes.node.parameters import declare, refuse_changes
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.node.spin import run_job


class LearnerNode(RobotNode):
    """The node; its parameters are those of `LearnerNodeConfig`."""

    def __init__(self, **options: Any) -> None:
        super().__init__("learner_node", **options)
        self.config = declare(self, LearnerNodeConfig)
        refuse_changes(self, LearnerNodeConfig)
        self._actor = ActorOverTopics(self)
        self._server: LearnerServer | None = None

    def facts(self) -> Mapping[str, object]:
        """How far it is."""
        waiting = {"messages_waiting": self._actor.waiting}
        return {**waiting, **self._server.facts()} if self._server else {**waiting, "actor": "none"}

    def destroy_node(self) -> None:
        """End the link first, which sends by itself."""
        self._actor.close()
        super().destroy_node()

    def serve(self) -> NoReturn:
        """Serve one actor after another, for ever."""
        torch.set_num_threads(self.config.threads)
        make_way(LEARNING)
        while True:
            self._actor.next_actor()
            try:
                self._server = LearnerServer(self._actor)
                self.get_logger().info("an actor is served")
                self._server.run()
                self.get_logger().info("the actor has finished")
            except PeerGoneError:
                self.get_logger().warning(
                    "another actor has taken the place of this one; learning starts from its words"
                )
            except RobotRLError as error:
                self.get_logger().error(str(error))
                self._actor.send(Failure(error=type(error).__name__, text=str(error)))
            self._server = None


def main() -> int:
    """Run the node."""
    return run_job(LearnerNode, lambda node, _: node.serve(), interrupted=0)


if __name__ == "__main__":
    sys.exit(main())
