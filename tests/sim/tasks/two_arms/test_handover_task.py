"""Two arms in one scene: the bar goes from hand to hand, and the arms never come too close."""

from dataclasses import replace

import numpy as np
import pytest
from fakes import OneOfArms
from play import always, play, stage, steps
from robot_io_contract import RobotIOContract, RobotUnderTest

from robot_rl.cell.cell_guards import guards_for
from robot_rl.cell.task_file import task_content
from robot_rl.clock import NS_PER_S
from robot_rl.config.command_limits import CommandLimits
from robot_rl.config.yaml_file import dump_yaml
from robot_rl.data.schema import Source
from robot_rl.env.choice import join_grippers
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.robot_io import Command, SetPoint
from robot_rl.env.task import WorkcellOptions
from robot_rl.env.task_arms import keep_out_of
from robot_rl.errors import ActionError, RenderError, StaleStateError, UnknownNameError
from robot_rl.geometry import Pose, quat_conjugate, quat_from_rotvec, quat_multiply, quat_rotate
from sim.tasks.two_arms.facing_arms import BASES, LEFT, RIGHT
from sim.tasks.two_arms.handover import BAR, HOLD_STEPS, PLACE, SPEC, TOLERANCE, make

PIECE = NS_PER_S // 100


@pytest.fixture(scope="module")
def hands():
    env, cell = stage("handover")
    yield env, cell
    env.close()


class TestEachArm(RobotIOContract):
    @pytest.fixture(params=[LEFT, RIGHT])
    def robot(self, request):
        cell = make(WorkcellOptions())
        cell.task.reset(seed=0)

        def freeze():
            cell.io.arms[request.param].history.frozen = True

        arm = OneOfArms(cell.io, request.param, lambda: {name: one.tcp() for name, one in cell.io.arms.items()})
        age = cell.io.sensing.max_age
        return RobotUnderTest(arm, cell.clock, freeze, max_age=age, joints=7, gripper_width=0.08, takes_wrench=True)


def test_the_operator_hands_it_over_and_every_success_is_geometrically_true(hands):
    env, cell = hands
    for seed in range(100, 104):
        there, given = [], []
        for info in steps(env, seed, always(env), demonstrate=True):
            bar, touching = cell.io.data.body("bar").xpos, cell.task.touching()
            arms = {arm for arm, _ in touching}
            there.append(arms == {RIGHT} and len(touching) == 2 and np.linalg.norm(bar - PLACE) <= TOLERANCE)
            given.append(arms == {LEFT, RIGHT})
            assert info["step"].force_peak < 40.0
        assert info["step"].success
        assert all(there[-HOLD_STEPS:])
        assert any(given), "both held it on the way"


def test_what_hands_nothing_over_scores_zero(hands):
    env, cell = hands
    down, close = np.zeros(9), join_grippers([-1.0, -1.0])
    down[[2, 6, 8]] = 1.0, 1.0, close
    for policy in (always(env), always(env, *down)):
        played = play(env, 100, policy)
        assert not played.success
        assert not any(step.reward for step in played.steps)

    def straight(seen):
        """Both tools straight to the bar's estimate, or to its place, with closed fingers at the end."""
        left, right = seen["state/bar_estimate"][:3], seen["state/place"]
        ways = [np.clip(way / 0.02, -1.0, 1.0) for way in (left, right)]
        near = -1.0 if np.linalg.norm(left) < 0.02 else 1.0
        return np.concatenate([ways[0], [0.0], ways[1], [0.0], [join_grippers([near, -1.0])]]).astype(np.float32)

    assert not play(env, 100, straight).success
    assert cell.task.spec.force_limit == 60.0


def test_a_bar_that_is_let_go_of_in_the_air_ends_the_episode(hands):
    env, cell = hands
    env.start(101, "e", demonstrate=True)
    while cell.task.bar_pose().position[2] < BAR[2] + 0.04:
        env.advance(np.zeros(9, np.float32))
    env.stop()
    arms = cell.io.read().arms
    opened = {name: SetPoint(arms[name].T_base_tcp, 0.08) for name in arms}
    cell.io.command(Command.of_arms(cell.clock.now(), 2.0, opened))
    cell.clock.sleep_until(cell.clock.now() + NS_PER_S)
    outcome = cell.task.evaluate(cell.io.read())
    assert (outcome.success, outcome.failure) == (False, "the bar fell")


def test_success_is_held_in_the_right_place_by_the_right_hand_alone():
    cell = make(WorkcellOptions())
    task, state = cell.task, None
    task.reset(100)
    both = {(RIGHT, "left"), (RIGHT, "right")}

    def judged(away=0.0, touching=both):
        task.bar_pose = lambda: Pose(PLACE + np.array([away, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0]))
        task.touching = lambda: set()
        task.evaluate(state)
        task.touching = lambda: touching
        return [task.evaluate(state).success for _ in range(HOLD_STEPS)]

    assert judged() == [False] * (HOLD_STEPS - 1) + [True]
    assert not any(judged(away=TOLERANCE + 0.001))
    assert not any(judged(touching={(RIGHT, "left")}) + judged(touching=both | {(LEFT, "left")}))


def test_one_hand_takes_over_its_arm_while_the_policy_keeps_the_other():
    env, _ = stage("handover", interventions=True)
    rng, seen = np.random.default_rng(0), set()
    for seed in (100, 101):
        env.start(seed, "e")
        for _ in range(80):
            wanted = np.append(rng.uniform(-1, 1, 8), 0.0).astype(np.float32)
            info = env.advance(wanted)
            step = info.recorded
            seen.add(tuple(step.arm_sources))
            for part, source in ((slice(0, 4), step.arm_sources[0]), (slice(4, 8), step.arm_sources[1])):
                assert (source != Source.POLICY) or np.array_equal(step.action[part], wanted[part])
            if info.ended:
                break
    assert (Source.SCRIPT, Source.POLICY) in seen
    assert (Source.POLICY, Source.POLICY) in seen


class Watched:
    """The clock of a cell, in pieces of 10 ms after each of which the true distance of the arms is measured."""

    def __init__(self, io, keep_out):
        self._io, self._keep_out, self.nearest = io, keep_out, np.inf

    def now(self):
        return self._io.now()

    def sleep_until(self, stamp):
        while self.now() < stamp:
            self._io.sleep_until(min(self.now() + PIECE, stamp))
            self.nearest = min(self.nearest, self._keep_out.distance({n: a.tcp() for n, a in self._io.arms.items()}))


class Endless:
    """The task, whose episodes end at nothing."""

    def __init__(self, task):
        self._task, self.spec = task, replace(task.spec, max_steps=10**9, force_limit=np.inf)

    def __getattr__(self, name):
        return getattr(self._task, name)

    def evaluate(self, state):
        return replace(self._task.evaluate(state), success=False, failure=None)


def adversary(rng):
    """Actions against the other arm: at it, both or one, with noise; anything; the same for long; to and fro."""
    mode, length, kept = int(rng.integers(6)), int(rng.integers(3, 25)), rng.uniform(-1, 1, 8).round()
    for step in range(length):
        state = yield None
        tools = [BASES[name] @ state.arms[name].T_base_tcp for name in (LEFT, RIGHT)]
        way = tools[1].position - tools[0].position
        way = way / np.abs(way).max() + (rng.normal(0.0, 0.7, 3) if mode == 3 else 0.0)
        at = [quat_rotate(quat_conjugate(t.quaternion), sign * way) for t, sign in zip(tools, (1, -1), strict=True)]
        action = np.concatenate([at[0], rng.uniform(-1, 1, 1), at[1] * (mode != 4), rng.uniform(-1, 1, 1)])
        if mode in (0, 1, 5):
            action = rng.uniform(-1, 1, 8) if mode == 0 else kept * (-1 if mode == 5 and step % 2 else 1)
        yield np.append(np.clip(action, -1, 1), rng.integers(9) / 4 - 1).astype(np.float32)


@pytest.mark.parametrize(("commands", "seed"), [(500, 0), pytest.param(2500, 1, marks=pytest.mark.slow)])
def test_whatever_is_commanded_the_arms_keep_their_distance_and_their_workspace(commands, seed):
    cell = make(WorkcellOptions())
    clock = Watched(cell.io, keep_out_of(SPEC.arms, SPEC.keep_out))
    env = RobotEnv(replace(cell, clock=clock, task=Endless(cell.task)))
    rng, sent, start = np.random.default_rng(seed), [], {}
    own = cell.io.command

    def command(command):
        sent.append(command)
        for name, point in command.arms.items():
            offset, box = point.T_base_target.position - start[name], SPEC.arms[name].workspace
            assert (offset >= np.array(box.low) - 1e-9).all()
            assert (offset <= np.array(box.high) + 1e-9).all()
        own(command)

    cell.io.command = command
    while len(sent) < commands:
        if len(sent) % 500 == 0 or not sent:
            start |= {name: pose.position for name, pose in env.start(100 + len(sent) // 500, "e").arms.items()}
        for _ in range(min(20, commands - len(sent))):
            actions = adversary(rng)
            for _ in actions:
                env.advance(actions.send(cell.io.read(images=False)))
                if len(sent) % 500 == 0:
                    break
            if len(sent) % 500 == 0:
                break
    assert clock.nearest >= SPEC.keep_out.distance - 0.002


def anywhere(rng):
    """Poses for both tools that no task has limited: at the other tool, near it, or anywhere; turned, too."""
    mode = rng.integers(4)
    while True:
        arms = yield None
        tools = {name: BASES[name] @ arm.T_base_tcp for name, arm in arms.items()}
        points = {}
        for name, other in ((LEFT, RIGHT), (RIGHT, LEFT)):
            base, here = BASES[name], arms[name].T_base_tcp
            place = quat_rotate(quat_conjugate(base.quaternion), tools[other].position - base.position)
            place = {0: place, 1: place + rng.normal(0.0, 0.1, 3), 2: here.position + rng.uniform(-0.3, 0.3, 3)}.get(
                mode, place if name == LEFT else here.position
            )
            turned = quat_multiply(here.quaternion, quat_from_rotvec(rng.normal(0.0, 0.5, 3)))
            points[name] = SetPoint(Pose(place, turned))
        yield points


@pytest.mark.parametrize(("commands", "seed"), [(200, 0), pytest.param(1000, 1, marks=pytest.mark.slow)])
def test_the_last_check_alone_keeps_arms_apart_that_a_program_sends_at_each_other(tmp_path, commands, seed):
    cell, rng = make(WorkcellOptions()), np.random.default_rng(seed)
    cell.task.reset(100)
    (tmp_path / "task.yaml").write_text(dump_yaml(task_content(SPEC)))
    limits = CommandLimits(box_high=(0.75, 0.3, 0.5))
    guards = guards_for(limits, (), str(tmp_path / "task.yaml"))
    clock, limited = Watched(cell.io, keep_out_of(SPEC.arms, SPEC.keep_out)), 0
    for number in range(commands):
        if number % 20 == 0:
            program = anywhere(rng)
        arms, now = cell.io.read(images=False).arms, cell.clock.now()
        for name, guard in guards.each.items():
            guard.measured_pose(arms[name].T_base_tcp, now)
            guard.measured_twist(arms[name].twist, now)
            guard.measured_wrench(np.zeros(6), now)
        next(program)
        if guards.whole.tripped:  # wild turns swing a tool out of its box now and then
            guards.whole.release()
        safe = guards.whole.check(Command.of_arms(now, 0.3, program.send(arms)), now)
        for name, point in safe.command.arms.items():
            place = point.T_base_target.position
            outside = np.linalg.norm(place - np.clip(place, limits.box_low, limits.box_high))
            assert outside <= guards.each[name].outside + 1e-9, "never further out than the tool is"
        limited += any("keep-out" in what for what in safe.limited)
        cell.io.command(safe.command)
        clock.sleep_until(now + NS_PER_S // 10)
    assert limited > 0.2 * commands
    assert clock.nearest >= SPEC.keep_out.distance - 0.002


@pytest.mark.parametrize("arm", [LEFT, RIGHT])
def test_both_arms_stand_within_three_tenths_of_a_second_after_the_state_of_one_is_stale(arm):
    env, cell = stage("handover")
    env.start(100, "e")
    moving = np.array([0.5, 0.5, -1, 0, 0.5, 0.5, -1, 0, 0], np.float32)
    for _ in range(5):
        env.advance(moving)
    began = cell.clock.now()
    cell.io.arms[arm].history.frozen = True
    with pytest.raises(StaleStateError, match=f"newest state of the arm {arm} is 0.2"):
        while True:
            env.advance(moving)
    cell.clock.sleep_until(began + round(0.3 * NS_PER_S) + 2 * PIECE)
    places = [a.tcp().position for a in cell.io.arms.values()]
    cell.clock.sleep_until(cell.clock.now() + NS_PER_S // 2)
    for a, place in zip(cell.io.arms.values(), places, strict=True):
        assert a.tcp().position == pytest.approx(place, abs=0.003)


def test_one_command_for_both_arms_or_a_camera_of_none_is_refused_in_one_line(hands):
    _, cell = hands
    cell.task.reset(0)
    here = cell.io.read().arms[LEFT].T_base_tcp
    with pytest.raises(
        ActionError, match="one set-point for the arms left, right: a command names the set-point of each"
    ):
        cell.io.command(Command(cell.clock.now(), 0.3, here))
    with pytest.raises(UnknownNameError, match="left_wrist"):
        RobotEnv(cell, options=WorkcellOptions(cameras=("wrist",)))


def test_pixels_are_those_of_two_wrists_and_of_a_camera_of_both():
    options = WorkcellOptions(cameras=SPEC.cameras, image_size=(32, 32), estimates=False)
    try:
        cell = make(options)
    except RenderError as error:
        pytest.skip(f"cannot render: {error}")
    env = RobotEnv(cell, options=options)
    seen = env.start(100, "e").observation
    frames = [seen[f"images/{camera}"] for camera in ("front", "left_wrist", "right_wrist")]
    assert all(frame.shape == (32, 32, 3) for frame in frames)
    orange = [int(((frame[..., 0] > 150) & (frame[..., 2] < 90)).sum()) for frame in frames]
    assert orange[1] > 10, "the left hand is over the bar"
    assert orange[2] == 0, "the right hand does not see it yet"
    env.close()


def test_the_same_seed_gives_the_same_episode_and_each_arm_its_own_noise(hands):
    env, _ = hands
    played = [play(env, 105, demonstrate=True).steps for _ in range(2)]
    assert len(played[0]) == len(played[1])
    for a, b in zip(*played, strict=True):
        assert all(np.array_equal(a.observation[key], b.observation[key]) for key in a.observation)
    first = played[0][0].observation
    assert not np.array_equal(first["state/left/wrench"], first["state/right/wrench"])
