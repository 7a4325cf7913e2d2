"""`Task` over topics: another node has the scene, its reset and the judgement; this one requests them.

Where tasks take turns in that scene without resets, each of them is a `RosTurn`, and the scene a `RosScene`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.client import Client
from std_msgs.msg import String
from std_srvs.srv import Trigger

from robot_rl.clock import NS_PER_S, Clock
from robot_rl.env.robot_io import RobotIO, RobotState
from robot_rl.env.task import Outcome
from robot_rl.errors import GraphError, StaleStateError
from robot_rl.geometry import Pose
from robot_rl.spec import ArraySpec
from ros_nodes.bridge.wait import Arrivals
from ros_nodes.interface import topics
from ros_nodes.interface.task_messages import (
    EpisodeStarted,
    Estimates,
    OutcomeMessage,
    SceneReport,
    TaskHead,
    from_text,
    to_text,
)
from ros_nodes.node.robot_node_base import RobotNode

RESET_LIMIT = 60.0
"""Longest time that making the scene ready may take [s]; a person may have to do it."""
HELD_POLL = 0.1
"""How often the safety node is asked whether the arm may move while an episode waits to begin [s]."""
HELD_NOTE = 10.0
"""How often the log says why it waits [s]."""
MAX_AGE = 0.2
"""Oldest estimate that is used, relative to the state [s]."""


class TaskServer:
    """The node that has the scene, as its parameters and services are used.

    Args:
        node: Whose clients.
        arrivals: Rung at every message.
        name: Full name of that node.
    """

    def __init__(self, node: RobotNode, arrivals: Arrivals, name: str) -> None:
        self._node, self._arrivals = node, arrivals
        self._parameters = node.create_client(SetParameters, f"{name}/set_parameters")

    def set(self, parameter: str, value: int | str) -> None:
        """Set a parameter.

        Raises:
            GraphError: if the node does not answer, or refuses it.
        """
        typed = (
            ParameterValue(type=ParameterType.PARAMETER_INTEGER, integer_value=value)
            if isinstance(value, int)
            else ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=value)
        )
        request = SetParameters.Request(parameters=[Parameter(name=parameter, value=typed)])
        for result in self._arrivals.call(self._node, self._parameters, request, RESET_LIMIT).results:
            if not result.successful:
                raise GraphError(f"the task does not take {parameter}: {result.reason}")

    def call(self, client: Client[Any, Any], given_up: Callable[[], bool] = lambda: False) -> str:
        """Return the answer of a service; `given_up` is whether it is waited for no longer.

        Raises:
            GraphError: if there is none, or it is that it did not work.
        """
        answer = self._arrivals.call(self._node, client, Trigger.Request(), RESET_LIMIT, given_up=given_up)
        if not answer.success:
            raise GraphError(f"the task could not be made ready: {answer.message}")
        return str(answer.message)


class RosTask:
    """A task behind topics.

    Args:
        node: Whose subscriptions and clients.
        head: Facts of the task.
        arrivals: Rung at every message.
        server: The node that has the scene.
        ready: Waits until the measurements from a stamp [ns] on have arrived.
    """

    def __init__(
        self, node: RobotNode, head: TaskHead, arrivals: Arrivals, *, server: TaskServer, ready: Callable[[int], None]
    ) -> None:
        self.spec, self._node, self._server = head.spec, node, server
        self._observations, self._arrivals, self._ready = head.observations, arrivals, ready
        self._episode = -1
        self._estimates: deque[Estimates] = deque(maxlen=16)
        self._verdicts: deque[OutcomeMessage] = deque(maxlen=16)
        self._judged, self._judged_at = Outcome(False, 0.0), -1
        self._given_up = False
        self._stopped: str | None = None  # why the arm may not move; None before the safety node has said anything
        self._was_stopped = False  # whether it might not since the last verdict
        node.subscribe(topics.STOPPED, self._take_stopped)
        node.subscribe(topics.ESTIMATES, self._take_estimates)
        node.subscribe(topics.VERDICT, self._take_verdict)
        self._may_move = node.create_client(Trigger, topics.MAY_MOVE_SERVICE[0])
        self._reset = node.create_client(Trigger, topics.RESET[0])

    def observation_specs(self) -> dict[str, ArraySpec]:
        """Return the specs that the task has published."""
        return dict(self._observations)

    def reset(self, seed: int) -> None:
        """Has the scene made ready, and waits until commands reach the arm, however long somebody holds it.

        Raises:
            GraphError: if nobody makes it ready, it does not work, or it is waited for no longer.
        """
        self._server.set("episode_seed", seed)
        self._begin(self._server.call(self._reset, given_up=lambda: self._given_up))

    def _begin(self, answer: str) -> None:
        """Begin the episode that the server has started, as it has answered.

        Raises:
            GraphError: if it is that of another task, or commands do not pass and are waited for no longer.
        """
        started = from_text(EpisodeStarted, answer)
        if started.task not in ("", self.spec.name):  # the server has been started again in between
            raise GraphError(f"an episode of {started.task} has begun, not of {self.spec.name}")
        self._episode, self._judged = started.episode, Outcome(False, 0.0)
        self._verdicts.clear()
        self._wait_until_commands_pass()
        self._ready(started.stamp)

    def give_up(self) -> None:
        """Wait for no person any more; see `SupportsGivingUp`."""
        self._given_up = True

    def _wait_until_commands_pass(self) -> None:
        """Wait until the safety node says that they do.

        It is asked, because what it published before may still be on its way to a node that has just started. When it
        receives the question, it knows this node as a commander: the publisher of commands was made before the client.
        """
        while True:
            answer = self._arrivals.call(self._node, self._may_move, Trigger.Request(), RESET_LIMIT)
            if answer.success and self._stopped == "":
                break
            if not answer.success:
                self._node.get_logger().warning(
                    f"the episode begins as soon as the arm may move: {answer.message}", throttle_duration_sec=HELD_NOTE
                )
            if self._arrivals.wait_for(lambda: self._given_up, HELD_POLL):
                raise GraphError(f"the arm may not move, and it is waited for no longer: {answer.message}")
        self._was_stopped = False

    def observe(self, state: RobotState, T_base_reset: Pose) -> dict[str, np.ndarray]:
        """Return what the task estimated for that state.

        Raises:
            StaleStateError: if its newest estimate is too old.
        """
        del T_base_reset  # the task has its own
        nearest = min(self._of_episode(), key=lambda e: abs(e.stamp - state.stamp), default=None)
        age = abs(state.stamp - nearest.stamp) / NS_PER_S if nearest else float("inf")
        if nearest is None or age > MAX_AGE:
            raise StaleStateError(
                age, MAX_AGE, what="estimate of the task", hint=f"who publishes {topics.ESTIMATES.name}?"
            )
        return {key: np.array(values) for key, values in nearest.values.items()}

    def evaluate(self, state: RobotState) -> Outcome:
        """Return the newest verdict on this episode; success and failure stay until the next reset.

        A step in which the safety node let nothing through counts as held: what was commanded was not done.
        """
        del state  # whoever judges has seen more than that
        while self._verdicts:
            verdict = self._verdicts.popleft()
            if verdict.episode == self._episode and not (self._judged.success or self._judged.failure):
                self._judged = Outcome(verdict.success, verdict.reward, verdict.failure, verdict.metrics)
        held, self._was_stopped = self._was_stopped, bool(self._stopped)
        return replace(self._judged, held=True) if held else self._judged

    def estimated(self, stamp: int) -> bool:
        """Whether the estimates for a stamp [ns] have arrived."""
        return any(estimates.stamp >= stamp for estimates in list(self._estimates))

    def judged(self, stamp: int) -> bool:
        """Whether the verdict on the state of a stamp [ns] has arrived."""
        return self._judged_at >= stamp

    def _of_episode(self) -> list[Estimates]:
        return [estimates for estimates in list(self._estimates) if estimates.episode == self._episode]

    def _take_estimates(self, message: String) -> None:
        self._estimates.append(from_text(Estimates, message.data))
        self._arrivals.ring()

    def _take_stopped(self, message: String) -> None:
        self._stopped = message.data
        self._was_stopped |= bool(message.data)

    def _take_verdict(self, message: String) -> None:
        verdict = from_text(OutcomeMessage, message.data)
        self._verdicts.append(verdict)
        self._judged_at = verdict.stamp
        self._arrivals.ring()


class RosTurn(RosTask):
    """One of several tasks behind topics that take turns in one scene, without resets; a `Continues`.

    Args:
        node: Whose subscriptions and clients.
        head: Facts of the task.
        arrivals: Rung at every message.
        server: The node that has the scene.
        ready: Waits until the measurements from a stamp [ns] on have arrived.
        scene: The scene.

    Attributes:
        home: How the arm goes to its start pose after an episode; None: the next episode brings it there.
    """

    def __init__(
        self,
        node: RobotNode,
        head: TaskHead,
        arrivals: Arrivals,
        *,
        server: TaskServer,
        ready: Callable[[int], None],
        scene: RosScene,
    ) -> None:
        super().__init__(node, head, arrivals, server=server, ready=ready)
        self.home, self._scene = head.home, scene
        self._go_on = node.create_client(Trigger, topics.GO_ON[0])
        self._tidy = node.create_client(Trigger, topics.TIDY[0])

    def reset(self, seed: int) -> None:
        """Has the scene laid out for this task; see `RosTask.reset`."""
        self._take_turn()
        super().reset(seed)

    def obstacle(self) -> str | None:
        """Return why it cannot begin in the scene as it is; None if it can.

        Raises:
            GraphError: if the node that has the scene does not answer.
        """
        return self._scene.report().obstacles[self.spec.name]

    def tidy(self, io: RobotIO, clock: Clock) -> None:
        """Has the other node move what a failed episode has left, as it knows where that is.

        Raises:
            GraphError: if the arm does not get there, or nothing is measured afterwards.
        """
        del io, clock  # those of the other node
        self._take_turn()
        self._ready(int(self._server.call(self._tidy)))

    def go_on(self, seed: int) -> None:
        """Has an episode begin in the scene as it is; else as `RosTask.reset`."""
        self._take_turn()
        self._server.set("episode_seed", seed)
        self._begin(self._server.call(self._go_on))

    def _take_turn(self) -> None:
        self._server.set("episode_task", self.spec.name)


class RosScene:
    """The scene behind topics in which tasks take turns; a `Scene`.

    Args:
        node: Whose client.
        server: The node that has the scene.
    """

    def __init__(self, node: RobotNode, server: TaskServer) -> None:
        self._server, self._client = server, node.create_client(Trigger, topics.SCENE[0])

    def report(self) -> SceneReport:
        """Return the scene, and why each task cannot begin in it.

        Raises:
            GraphError: if the node that has it does not answer.
        """
        return from_text(SceneReport, self._server.call(self._client))

    def save(self) -> np.ndarray:
        """Return the state; see `Scene`."""
        return np.array(self.report().scene)

    def restore(self, saved: np.ndarray) -> None:
        """Put the scene into a saved state.

        Raises:
            GraphError: if it is that of another scene, or the node that has it does not answer.
        """
        self._server.set("scene", to_text(SceneReport([float(value) for value in saved], {})))
