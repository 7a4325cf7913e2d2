"""The simulated arm, or several, behind the robot's topics, with its task and its scripted operator.

In real time it runs by itself, as a robot does. In lockstep time stands still until `lockstep/advance` moves it, and
what it then measures, judges and decides comes once, in the order in which an environment in one process asks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.timer import Timer
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import CameraInfo
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import MultiDOFJointTrajectory

from robot_rl.clock import NS_PER_S
from robot_rl.config.nodes import SimNodeConfig
from robot_rl.env.robot_io import Command, RobotState
from robot_rl.errors import CommandRefusedError, ConfigError, RobotRLError, StaleStateError
from ros_nodes.interface import convert, topics
from ros_nodes.interface.arm_publisher import ArmPublisher
from ros_nodes.interface.task_messages import (
    Advance,
    Advanced,
    CameraCalibration,
    EpisodeStarted,
    Estimates,
    OutcomeMessage,
    TaskHead,
    from_text,
    to_message,
    to_text,
)
from ros_nodes.node.commander import Commander
from ros_nodes.node.operator_ready import FACT, OperatorReady
from ros_nodes.node.parameters import declare, refuse_changes
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.node.spin import run
from ros_nodes.node.task_publisher import VERDICT_LEAD, TaskPublisher
from ros_nodes.nodes.sim_cell import make_mirror

PIECE = NS_PER_S // 100
"""In lockstep, time between two looks at what has arrived [ns]."""
JITTER = NS_PER_S // 200
"""How far the simulation's time may be from the wall clock's before the stamps follow it again [ns]."""


class SimNode(RobotNode):
    """The node; its parameters are those of `SimNodeConfig`."""

    def __init__(self, **options: Any) -> None:
        super().__init__("sim_node", **options)
        self.config = config = declare(self, SimNodeConfig)
        self._seed = config.episode_seed
        live: dict[str, Any] = {"episode_seed": self._set_seed, "episode_task": self._take_turn, "scene": self._restore}
        refuse_changes(self, SimNodeConfig, live)
        mirror = make_mirror(config)
        self._turns, size, self._lenses, self._arms = mirror.turns, mirror.image_size, mirror.lenses, mirror.arms
        self._person = OperatorReady(self) if config.operator == "person" else None
        self.cell = mirror.cell
        self._use_cell()
        self._spec = self.cell.task.spec
        self._episode = 0
        self._offset = 0  # from the simulation's time to the stamps [ns]
        self._last_state = self._last_frame = -1
        self._waiting: MultiDOFJointTrajectory | None = None  # until its commander's limits are known
        self._last_command = -1  # stamp of the newest command or stop
        self._judge_at: int | None = None  # simulation's time at which the running step is judged [ns]
        self._taken: Mapping[str, np.ndarray] = {}  # by the scripted operator, of the arms that it leads
        self._action_stamp = -1
        self._goal: Advance | None = None
        self._each = self._spec.each
        self._make_publishers(config)
        for name, publisher in self._calibrations.items():
            publisher.publish(to_message(CameraCalibration(mirror.records.get(name), self.cell.mounts.get(name))))
        self._transforms.bases({arm: spec.T_cell_base for arm, spec in self._spec.arms.items()})
        self._transforms.cameras(self.cell.mounts)
        for arm in self._each:
            self.publisher(topics.ROBOT_DESCRIPTION.of_arm(arm)).publish(String(data=mirror.description))
        self._make_subscriptions()
        if config.lockstep:
            self._pacer: Timer = self.timer(1e-4, self._advance_piece)
            self._pacer.cancel()
        else:
            self.timer(1.0 / config.state_rate, self._tick)
            if config.cameras:
                self.timer(1.0 / config.camera_rate, self._publish_frames)
        if config.episode_task:
            self._take_turn(config.episode_task)
        self._task.reset(self._seed)
        self._begin_episode()
        if config.scene:
            self._restore(config.scene)
        operator = "none" if self._operator is None else self.cell.operator_source.name.lower()
        operator = operator if self._person is None else "human"
        observed = dict(mirror.cell.task.observation_specs())
        head = TaskHead(self._spec, observed, operator, config.lockstep, size, config.cameras, mirror.simulation)
        turns = () if self._turns is None else self._turns.facts()
        self._publish_task.head(replace(head, turns=turns))

    def facts(self) -> Mapping[str, object]:
        """Whether a person is waited for, who shall demonstrate; and the cap in force."""
        return {FACT: self._person is not None and self._person.waits} | self._commander.facts()

    def destroy_node(self) -> None:
        """Releases the cameras, too."""
        (self._turns or self.cell).close()
        super().destroy_node()

    def _use_cell(self) -> None:
        """Simulate `cell` from now on."""
        self._task = self.cell.task
        self._io: Any = self.cell.io  # MuJoCo's: it can also give frames apart from the rest
        self._operator = self.cell.operator if self._person is None else None

    def _make_publishers(self, config: SimNodeConfig) -> None:
        self._publish_task, self._transforms = TaskPublisher(self), self.transforms()
        self._arm_topics = {arm: ArmPublisher(self.publisher, arm) for arm in self._each}
        self._interventions = {arm: self.publisher(topics.INTERVENTION.of_arm(arm)) for arm in self._each}
        self._images = {name: self.publisher(topics.IMAGE, camera=name) for name in config.cameras}
        self._infos = {name: self.publisher(topics.CAMERA_INFO, camera=name) for name in config.cameras}
        self._calibrations = {name: self.publisher(topics.CALIBRATION, camera=name) for name in config.cameras}
        if config.lockstep:
            self._time_out, self._advanced = self.publisher(topics.CLOCK), self.publisher(topics.ADVANCED)

    def _make_subscriptions(self) -> None:
        self._commander = Commander(self, self.config, self._follow_waiting, arms=self._spec.each)
        self.subscribe(topics.SAFE_COMMAND.of_arms(self._spec.arms), self._follow)
        self.create_service(Trigger, topics.RESET[0], self._on_reset)
        if self._turns is not None:
            self._turns.serve(
                self, lambda: self._seed, begin=self._begin_episode, look=self._look, meanwhile=self._show_motion
            )
        group = ReentrantCallbackGroup()  # of its own: while it waits for a person, everything else goes on
        self.create_service(SetBool, topics.OPERATOR_RESET[0], self._on_operator_reset, callback_group=group)
        if self.config.lockstep:
            self.subscribe(topics.ADVANCE, self._on_advance)

    # ------------------------------------------------------------------- time

    def _tick(self) -> None:
        """Real time: lets the physics catch up, publishes what it measured, and judges the step when it is due."""
        wall = self.wall.now()
        now = self.cell.clock.now()  # may take long, if the physics has to catch up
        offset = wall - now
        if abs(offset - self._offset) > JITTER:
            self._offset = offset
        state = self._measure(images=False)
        if state is None:
            return
        if state.stamp > self._last_state:
            self._publish_state(state)
            self._publish_action()
        if self._judge_at is not None and now >= self._judge_at:
            self._judge_at = None
            self._judge(state)

    def _on_advance(self, message: String) -> None:
        self._goal = from_text(Advance, message.data)
        self._pacer.reset()

    def _advance_piece(self) -> None:
        """Lockstep: a little at a time, so that a stop comes in time."""
        goal, now = self._goal, self._io.now()
        if goal is None or self._last_command < goal.after:  # the command that belongs to it is on its way
            self._pacer.cancel()
            return
        until = goal.until - self._offset
        self._io.sleep_until(min(now + PIECE, until))
        if self._io.now() >= until:
            self._goal = None
            state = self._measure(images=goal.frames)
            if state is not None:
                self._publish_state(state)
                self._publish_images(state.stamp, state.images)
                self._judge(state)
            self._say_time(self._last_state)

    def _say_time(self, stamp: int) -> None:
        now = self._io.now() + self._offset
        self._time_out.publish(ClockMessage(clock=convert.time_message(now)))
        self._advanced.publish(to_message(Advanced(now=now, stamp=stamp + self._offset)))

    # ---------------------------------------------------------------- sensing

    def _measure(self, *, images: bool) -> RobotState | None:
        """Return the newest state; None while the sensors are dead. Then nothing is published, but the arm goes on."""
        try:
            state: RobotState = self._io.read(images=images)
        except StaleStateError as error:
            self.problem(f"the sensors: {error}")
            return None
        return state

    def _publish_state(self, state: RobotState) -> None:
        self._last_state, self._published = state.stamp, state
        stamp = state.stamp + self._offset
        for arm, one in state.each.items():
            self._arm_topics[arm].publish(one, self._offset)
            self._transforms.tcp(stamp, one.T_base_tcp, arm)
        values = self._task.observe(state, self._T_base_reset)
        estimates = {key: np.asarray(value, float).tolist() for key, value in values.items()}
        self._publish_task.estimates(Estimates(self._episode, stamp, estimates))

    def _publish_frames(self) -> None:
        stamp, images = self._io.frames()
        if stamp > self._last_frame:
            self._publish_images(stamp, images)

    def _publish_images(self, stamp: int, images: Any) -> None:
        self._last_frame = stamp
        for name, image in images.items():
            frame = topics.IMAGE.frame.format(camera=name)
            self._images[name].publish(convert.image_message(stamp + self._offset, image, frame))
            self._infos[name].publish(self._info(stamp + self._offset, name, image.shape[:2], frame))

    def _info(self, stamp: int, name: str, size: tuple[int, int], frame: str) -> CameraInfo:
        """Return the facts of a camera's lens: what its calibration found, or what the renderer knows."""
        lens = self._lenses.get(name)
        if lens is None:
            return convert.camera_info_message(stamp, size, self._io.camera_matrix(name), frame)
        return convert.lens_message(stamp, size, lens, frame)

    # ----------------------------------------------------------------- acting

    def _follow(self, message: MultiDOFJointTrajectory) -> None:
        self._waiting = message if self._commander.pending else None
        if self._waiting is not None:
            return  # a moment, until its limits are known; in lockstep, time waits as well
        stamp = convert.stamp_of(message.header.stamp)
        self._last_command = max(self._last_command, stamp)
        if self._goal is not None:
            self._pacer.reset()
        command = convert.command_of(message)
        if command is None:
            self._io.stop()
            return
        try:
            command = self._within_cap(command)
        except CommandRefusedError:
            self._io.stop()
            raise
        sent = stamp - self._offset
        self._io.command(replace(command, stamp=sent))
        if not self.config.lockstep:
            self._judge_at = sent + round((self._spec.control_period - VERDICT_LEAD) * NS_PER_S)

    def _follow_waiting(self) -> None:
        if self._waiting is None:
            return
        try:
            self._follow(self._waiting)
        except RobotRLError as error:
            self.problem(f"{topics.SAFE_COMMAND.name}: {error}")

    def _within_cap(self, command: Command) -> Command:
        """Return the command within the arm's own cap.

        Raises:
            CommandRefusedError: if its commander may not command, or set-point or speed are beyond the cap.
        """
        state = self._published
        if (fault := self._commander.fault() or self._commander.overspeed(state)) is not None:
            raise CommandRefusedError(fault)
        capped = self._commander.apply(command, state)
        if capped is not command:
            self.problem("a set-point too far from the tcp was brought nearer (cap_lead, cap_turn)")
        return capped

    # -------------------------------------------------------------- the task

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        del request  # holds nothing
        self._task.reset(self._seed)
        response.success, response.message = True, to_text(self._begin_episode())
        return response

    def _begin_episode(self) -> EpisodeStarted:
        """Begin an episode in the scene that has been made ready."""
        self._episode += 1
        self._operator_began = False
        self._taken = {}
        return EpisodeStarted(self._episode, self._look(), "" if self._turns is None else self._turns.current)

    def _look(self) -> int:
        """Publish how everything is after the scene has changed in one go; return the stamp of that [ns]."""
        self._judge_at, self._goal = None, None
        if not self.config.lockstep:
            wall = self.wall.now()
            self._offset = wall - self.cell.clock.now()
        self._newest = state = self._io.read(images=self.config.lockstep)
        self._T_base_reset = state.T_base_tcp
        if state.stamp > self._last_state:  # else nothing has changed
            self._publish_state(state)
            if self.config.lockstep:
                self._publish_images(state.stamp, state.images)
                self._say_time(state.stamp)
        return int(state.stamp + self._offset)

    def _judge(self, state: RobotState) -> None:
        """Once a step: how it stands, and what the operator does next."""
        outcome = self._task.evaluate(state)
        stamp = state.stamp + self._offset
        metrics = {name: float(value) for name, value in outcome.metrics.items()}
        verdict = OutcomeMessage(self._episode, stamp, outcome.success, outcome.reward, outcome.failure, metrics)
        self._publish_task.verdict(verdict)
        self._newest = state
        self._decide()

    async def _on_operator_reset(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        if self._person is not None:
            response.success = not request.data or await self._person.wait()
            response.message = "" if response.success else "another demonstration was asked for meanwhile"
            return response
        if self._operator is None:
            response.message = f"task {self._spec.name} has no operator"
            return response
        self._operator.reset(self._seed, request.data)
        self._operator_began = True
        self._decide()
        response.success, response.message = True, str(self._action_stamp)
        return response

    def _decide(self) -> None:
        """Has the operator look and act, once a step."""
        if self._operator is not None and self._operator_began:
            self._taken = self._arms.by_arm(self._operator.act(self._newest, self._T_base_reset))
        self._publish_action()

    def _publish_action(self) -> None:
        """Publish the scripted operator's action with the time as its stamp; in lockstep, with that of what it saw."""
        if self._operator is not None:  # a human has a device, and teleop_node or console_node publishes
            self._action_stamp = self._newest.stamp + self._offset if self.config.lockstep else self.wall.now()
            for arm, publisher in self._interventions.items():
                publisher.publish(convert.operator_message(self._action_stamp, self._taken.get(arm), self._each[arm]))

    def _set_seed(self, seed: int) -> None:
        self._seed = seed

    # ---------------------------------------------------------- a practice

    def _show_motion(self) -> None:
        """In real time, show everybody that the arm moves by itself, and that this node lives."""
        if not self.config.lockstep:
            self._tick()
            self._beat()

    def _take_turn(self, task: str) -> None:
        """Have it be the turn of a task, in the scene as it is; time goes on.

        Raises:
            ConfigError: if it takes no turns here.
        """
        if self._turns is None:
            raise ConfigError(f"only {self._spec.name} is simulated here, without turns; start sim_node with practice")
        if task == self._turns.current:
            return
        before = self._io.now() + self._offset
        self._offset = before - self._turns.take(task)
        self.cell = self._turns.cell
        self._use_cell()
        self._last_state = self._last_frame = -1
        self._look()

    def _restore(self, scene: str) -> None:
        """Put a scene back.

        Raises:
            ConfigError: if it is none of the tasks, or they take no turns here.
        """
        if self._turns is None:
            raise ConfigError("only a practice puts scenes back; start sim_node with practice")
        self._turns.restore(scene)
        self._look()


def main() -> int:
    """Run the node."""
    return run(SimNode)


if __name__ == "__main__":
    sys.exit(main())
