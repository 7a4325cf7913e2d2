"""The guards of two arms as one: what must hold one holds both, and a command passes whole or not at all."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robot_rl.arm.several_guards import SeveralGuards
from robot_rl.cell.cell_guards import guards_for
from robot_rl.cell.latch_file import LatchFile
from robot_rl.cell.task_file import task_content
from robot_rl.clock import NS_PER_S
from robot_rl.config.command_limits import CommandLimits
from robot_rl.config.yaml_file import dump_yaml
from robot_rl.env.cell_geometry.capsule import Capsule, KeepOutLimits
from robot_rl.env.cell_geometry.keep_out import ArmMotion
from robot_rl.env.command_limits import LATCHED, CommandGuard
from robot_rl.env.robot_io import Command, SetPoint
from robot_rl.env.task import ArmSpec, TaskSpec, Workspace
from robot_rl.env.task_arms import keep_out_of
from robot_rl.errors import ActionError, CommandRefusedError, ConfigError, UnknownNameError
from robot_rl.geometry import Pose

LIMITS = CommandLimits()
KEEP_OUT = KeepOutLimits(distance=0.02, tool_distance=(0.1, 0.6), horizon=0.6)
BASES = {"left": (0.0, 0.3, 0.0), "right": (0.0, -0.3, 0.0)}
BALL = (Capsule((0, 0, 0), (0, 0, 0), 0.03),)
DOWN = np.array([0.0, 1.0, 0.0, 0.0])
HERE = {"left": Pose(np.array([0.5, 0.0, 0.2]), DOWN), "right": Pose(np.array([0.4, 0.1, 0.3]), DOWN)}
NOW = 10 * NS_PER_S


class Cell:
    def __init__(self):
        self.guards = {arm: CommandGuard(LIMITS) for arm in HERE}
        self.both = SeveralGuards(self.guards)
        self.measure(NOW)

    def measure(self, stamp, **poses):
        for arm, guard in self.guards.items():
            guard.measured_pose(poses.get(arm, HERE[arm]), stamp)
            guard.measured_wrench(np.zeros(6), stamp)


def to(left=(0.0, 0.0, 0.0), right=(0.0, 0.0, 0.0), stamp=NOW, ttl=0.3):
    offsets = {"left": np.array(left), "right": np.array(right)}
    points = {arm: SetPoint(Pose(HERE[arm].position + offset, DOWN)) for arm, offset in offsets.items()}
    return Command.of_arms(stamp, ttl, points)


def test_a_command_within_the_limits_is_the_same_object():
    command = to((0.01, 0.0, 0.0), (0.0, -0.01, 0.0))
    assert Cell().both.check(command, NOW).command is command


def test_the_limits_of_one_arm_change_its_set_point_only_and_a_long_life_is_cut_for_both():
    guarded = Cell().both.check(to((0.1, 0.0, 0.0), (0.0, 0.01, 0.0), ttl=3.0), NOW)
    assert set(guarded.limited) == {"left speed", "left ttl", "right ttl"}
    points = guarded.command.arms
    lead = LIMITS.max_speed * LIMITS.reaction_time
    assert points["left"].T_base_target.position - HERE["left"].position == pytest.approx([lead, 0.0, 0.0])
    assert points["right"].T_base_target.position - HERE["right"].position == pytest.approx([0.0, 0.01, 0.0])
    assert guarded.command.ttl == LIMITS.max_ttl
    assert guarded.command.T_base_target is points["left"].T_base_target


@given(*[st.lists(st.floats(-2, 2), min_size=3, max_size=3)] * 2)
def test_each_arm_has_the_limits_that_it_has_alone(left, right):
    alone = {}
    for arm, offset in (("left", left), ("right", right)):
        guard = Cell().guards[arm]
        target = Pose(HERE[arm].position + np.array(offset), DOWN)
        alone[arm] = guard.check(Command(NOW, 0.3, target), NOW).command.T_base_target.position
    both = Cell().both.check(to(left, right), NOW).command.arms
    assert all(np.array_equal(both[arm].T_base_target.position, alone[arm]) for arm in HERE)


def test_what_holds_one_arm_holds_both_and_names_it():
    cell = Cell()
    later = NOW + NS_PER_S
    cell.guards["left"].measured_pose(HERE["left"], later)
    assert cell.both.stale(later) == "arm left: the arm's wrench is 1.00 s old, allowed are 0.20 s"
    cell.guards["left"].measured_wrench(np.zeros(6), later)
    with pytest.raises(CommandRefusedError, match=r"arm right: the arm's pose is 1\.00 s old"):
        cell.both.check(to(stamp=later), later)

    cell.measure(later + 1)
    cell.guards["right"].measured_wrench(np.array([90.0, 0, 0, 0, 0, 0]), later + 2)
    assert cell.both.tripped == "arm right: contact force of 90 N, allowed are 80 N"
    with pytest.raises(CommandRefusedError, match=f"{LATCHED}arm right: contact force"):
        cell.both.check(to(stamp=later + 3), later + 3)
    cell.both.release()
    cell.both.trip("the operator wants it")
    assert cell.both.tripped == "the operator wants it"
    cell.both.release()
    assert cell.both.tripped is None


def test_one_release_ends_the_stops_of_both_arms_and_both_are_named_before_it():
    cell = Cell()
    cell.measure(NOW + 1, left=Pose(np.array([0.2, 0.0, 0.2]), DOWN))
    cell.guards["right"].measured_wrench(np.array([90.0, 0, 0, 0, 0, 0]), NOW + 2)
    cell.both.trip("the operator wants it")
    operators, left, right = cell.both.tripped.split("; arm ")
    assert operators == "the operator wants it"
    assert left.startswith("left: the tcp is 100 mm outside the box; bring it inside by hand")
    assert right == "right: contact force of 90 N, allowed are 80 N"
    cell.both.release()
    assert cell.both.tripped is None


def test_a_latched_stop_that_is_kept_over_restarts_names_each_reason_once(tmp_path):
    file, pressed = tmp_path / "latched", NOW + 2
    reasons = []
    for force in (90.0, 95.0, 100.0):  # each process finds the stop of the one before, and the arm still too firm
        cell, latch = Cell(), LatchFile(file)
        if latch.reason is not None:
            cell.both.trip(latch.reason)
        cell.guards["right"].measured_wrench(np.array([force, 0, 0, 0, 0, 0]), pressed)
        cell.both.trip("the operator wants it")
        latch.follow(cell.both.tripped)
        reasons.append(cell.both.tripped)
    first = "the operator wants it; arm right: contact force of 90 N, allowed are 80 N"
    assert reasons == [first] * 3
    cell.measure(NOW + 3, left=Pose(np.array([0.2, 0.0, 0.2]), DOWN))
    assert cell.both.tripped.startswith(f"{first}; arm left: the tcp is 100 mm outside the box"), "another arm is new"
    cell.both.release()
    assert cell.both.tripped is None


def test_a_refusal_and_the_stop_after_it_leave_no_arm_ahead_of_the_other():
    cell = Cell()
    cell.measure(NOW + 1, right=Pose(np.array([0.704, 0.0, 0.2]), DOWN))
    assert cell.both.outside == pytest.approx(0.004)
    with pytest.raises(CommandRefusedError, match="arm left: it was made before the last one"):
        cell.guards["left"].stop(NOW + 5)
        cell.both.check(to(stamp=NOW + 4), NOW + 4)
    cell.both.stop(NOW + 6)
    later = NOW + NS_PER_S // 10
    cell.measure(later)
    assert cell.both.check(to((0.01, 0.0, 0.0), stamp=later), later).limited == ()


def test_a_command_for_other_arms_is_refused():
    with pytest.raises(ActionError, match="one set-point for the arms left, right"):
        Cell().both.check(Command(NOW, 0.3, HERE["left"]), NOW)


def test_an_arm_may_have_limits_of_its_own(tmp_path):
    differing = ["left.max_speed=0.1", "right.box_low=[0.3, -0.05, 0.0]"]
    guards = guards_for(LIMITS, tuple(HERE), arm_limits=differing)
    assert guards.each["left"].limits == replace(LIMITS, max_speed=0.1)
    assert guards.each["right"].limits == replace(LIMITS, box_low=(0.3, -0.05, 0.0))
    guards.whole.lower("max_speed", 0.2)
    assert [guard.limits.max_speed for guard in guards.each.values()] == [0.1, 0.2]
    guards.whole.lower("max_speed", 0.25)
    assert [guard.limits.max_speed for guard in guards.each.values()] == [0.1, 0.2]
    with pytest.raises(ConfigError, match="may only be lowered"):
        guards.whole.lower("max_speed", -1.0)
    with pytest.raises(ConfigError, match="box_low counts from the start"):
        guards.whole.lower("box_low", 0.1)


@pytest.mark.parametrize(
    ("entry", "error", "text"),
    [
        ("left.max_sped=0.1", UnknownNameError, "unknown limit in arm_limits 'max_sped'; .*did you mean 'max_speed'"),
        ("lift.max_speed=0.1", UnknownNameError, "unknown arm in arm_limits 'lift'; valid: left, right; did you mean"),
        ("max_speed=0.1", ConfigError, r"'max_speed=0\.1' has to be ARM\.LIMIT=VALUE, e\.g\. left\.max_speed=0\.1"),
        ("a.b", ConfigError, "has to be ARM"),
        ("left.max_speed=-1", ConfigError, r"arm_limits: left\.max_speed: Input should be greater than 0"),
        ("left.box_low=[0.9, 0, 0]", ConfigError, "arm left: box_low .* have to be three numbers each"),
        ("left.box_low=[0.9", ConfigError, "is not YAML"),
    ],
)
def test_a_wrong_limit_of_an_arm_is_one_clear_line(entry, error, text):
    with pytest.raises(error, match=text):
        guards_for(LIMITS, tuple(HERE), arm_limits=[entry])


def test_limits_of_an_arm_that_is_not_there_or_appear_twice_are_refused():
    with pytest.raises(ConfigError, match=r"arm_limits: left\.max_speed appears twice"):
        guards_for(LIMITS, tuple(HERE), arm_limits=["left.max_speed=0.1", " left.max_speed=0.2"])
    with pytest.raises(ConfigError, match="arm_limits name left, and there is one arm, without a name"):
        guards_for(LIMITS, arm_limits=["left.max_speed=0.1"])


def test_a_limit_is_lowered_for_both():
    cell = Cell()
    cell.both.lower("max_speed", 0.1)
    leads = cell.both.check(to((0.1, 0, 0), (0.1, 0, 0)), NOW).command.arms
    for arm, point in leads.items():
        assert np.linalg.norm(point.T_base_target.position - HERE[arm].position) <= 0.1 * LIMITS.reaction_time + 1e-12
    with pytest.raises(ConfigError, match="counts from the start"):
        cell.both.lower("max_age", 0.1)


class Meeting:
    """Two balls as arms, which go where they are sent at once, and can meet."""

    def __init__(self, folder):
        box = Workspace((-1, -1, -1), (1, 1, 1), yaw=3.0, tilt=1.0)
        arms = {arm: ArmSpec(box, base_position=place, capsules=BALL) for arm, place in BASES.items()}
        self.spec = TaskSpec.of_arms(
            arms, name="meeting", instruction="", max_steps=9, control_period=0.1, keep_out=KEEP_OUT
        )
        self.file = folder / "meeting.yaml"
        self.file.write_text(dump_yaml(task_content(self.spec)))
        self.guards = guards_for(LIMITS, (), str(self.file))
        self.true = keep_out_of(self.spec.arms, KEEP_OUT)
        self.at = {"left": Pose(np.array([0.5, -0.1, 0.2]), DOWN), "right": Pose(np.array([0.5, 0.1, 0.2]), DOWN)}
        self.now, self.twists = NOW, dict.fromkeys(BASES, np.zeros(6))

    def send(self, wanted):
        """Send both there; returns what passed."""
        self.now += NS_PER_S // 10
        for arm, guard in self.guards.each.items():
            guard.measured_pose(self.at[arm], self.now)
            guard.measured_wrench(np.zeros(6), self.now)
            guard.measured_twist(self.twists[arm], self.now)
        points = {arm: SetPoint(Pose(np.array(place), DOWN)) for arm, place in wanted.items()}
        command = Command.of_arms(self.now, 0.3, points)
        safe = self.guards.whole.check(command, self.now)
        for arm, point in safe.command.arms.items():
            assert np.linalg.norm(point.T_base_target.position - self.at[arm].position) <= LEAD + 1e-12
            self.at[arm] = point.T_base_target
        return command, safe


LEAD = LIMITS.max_speed * LIMITS.reaction_time
INWARDS = {"left": -0.003, "right": 0.003}
"""Rather towards each other [m]."""
PLACES = st.lists(st.floats(-0.4, 1.0), min_size=3, max_size=3)


@settings(max_examples=25)
@given(st.lists(st.tuples(PLACES, PLACES), min_size=1, max_size=10))
def test_arms_are_kept_apart_wherever_they_are_sent(tmp_path_factory, ways):
    cell = Meeting(tmp_path_factory.mktemp("cell"))
    for left, right in ways:
        for _ in range(5):
            cell.send({"left": left, "right": right})
            assert cell.true.distance(cell.at) >= KEEP_OUT.distance - 1e-4


def test_two_arms_on_their_way_to_one_place_stop_before_it_and_it_is_said(tmp_path):
    cell, said = Meeting(tmp_path), set()
    for _ in range(40):  # the middle between their bases
        _, safe = cell.send({"left": (0.5, -0.4, 0.2), "right": (0.5, 0.4, 0.2)})
        said |= set(safe.limited)
    assert {"left keep-out", "right keep-out"} <= said
    assert cell.true.distance(cell.at) == pytest.approx(KEEP_OUT.tool_distance[0] - 0.06, abs=2e-3)


def test_what_the_policys_side_has_kept_apart_passes_as_it_is(tmp_path):
    cell = Meeting(tmp_path)
    rng, moved = np.random.default_rng(0), 0

    def confine(place):
        return np.clip(place, LIMITS.box_low, LIMITS.box_high)

    for _ in range(200):
        cell.twists = {arm: rng.normal(0.0, 0.02, 6) for arm in BASES}
        ways = {arm: rng.uniform(-0.012, 0.012, 3) + np.array([0.0, inwards, 0.0]) for arm, inwards in INWARDS.items()}
        wanted = {arm: Pose(confine(at.position + ways[arm]), DOWN) for arm, at in cell.at.items()}
        targets = cell.true.limit(
            {arm: ArmMotion(cell.at[arm], cell.twists[arm][:3], pose, confine) for arm, pose in wanted.items()}
        )
        moved += any(not np.array_equal(targets[arm].position, wanted[arm].position) for arm in BASES)
        command, safe = cell.send({arm: pose.position for arm, pose in targets.items()})
        assert safe.command is command
    assert moved > 20


def test_an_arm_whose_speed_is_not_known_holds_both_and_a_file_of_other_arms_is_refused(tmp_path):
    cell = Meeting(tmp_path)
    for guard in cell.guards.each.values():
        guard.measured_pose(HERE["left"], NOW)
        guard.measured_wrench(np.zeros(6), NOW)
    assert cell.guards.whole.stale(NOW) == "arm left: the arm's twist is not known: nothing valid has come"
    with pytest.raises(ConfigError, match=r"arms are a, b, and .*meeting\.yaml is for left, right; leave arms out"):
        guards_for(LIMITS, ("a", "b"), str(cell.file))
    assert guards_for(LIMITS, ("right", "left"), str(cell.file)).arms == ("left", "right")
    assert guards_for(LIMITS, (), "").arms == ()


def test_tools_that_are_too_far_apart_are_not_drawn_together(tmp_path):
    cell = Meeting(tmp_path)
    cell.at = {"left": Pose(np.array([0.5, 0.29, 0.2]), DOWN), "right": Pose(np.array([0.5, -0.29, 0.2]), DOWN)}
    assert cell.at["left"].position[1] - cell.at["right"].position[1] + 0.6 > KEEP_OUT.tool_distance[1]
    command, safe = cell.send({arm: pose.position for arm, pose in cell.at.items()})
    assert safe.command is command


def test_poses_that_were_measured_too_far_apart_hold_both(tmp_path):
    cell = Meeting(tmp_path)
    for arm, guard in cell.guards.each.items():
        stamp = NOW - (NS_PER_S // 10 if arm == "left" else 0)
        guard.measured_pose(cell.at[arm], stamp)
        guard.measured_wrench(np.zeros(6), stamp)
        guard.measured_twist(np.zeros(6), stamp)
    apart = "the arms' poses were measured 0.100 s apart, allowed are 0.050 s"
    assert cell.guards.whole.stale(NOW) == apart
    points = {arm: SetPoint(pose) for arm, pose in cell.at.items()}
    with pytest.raises(CommandRefusedError, match=apart):
        cell.guards.whole.check(Command.of_arms(NOW, 0.3, points), NOW)


def test_an_arm_that_is_pushed_back_is_not_jerked_back(tmp_path):
    """At 100 Hz, with the arms nearer than they may be: the way back begins slowly, the way on ends at once."""
    cell = Meeting(tmp_path)
    cell.at = {"left": Pose(np.array([0.5, -0.25, 0.2]), DOWN), "right": Pose(np.array([0.5, 0.29, 0.2]), DOWN)}
    assert cell.true.distance(cell.at) < KEEP_OUT.distance
    leads = [{arm: np.zeros(3) for arm in cell.at}]
    for number in range(12):
        for arm, guard in cell.guards.each.items():
            stamp = NOW + number * NS_PER_S // 100
            guard.measured_pose(cell.at[arm], stamp)
            guard.measured_wrench(np.zeros(6), stamp)
            guard.measured_twist(np.zeros(6), stamp)
        points = {arm: SetPoint(pose) for arm, pose in cell.at.items()}
        safe = cell.guards.whole.check(Command.of_arms(stamp, 0.3, points), stamp)
        leads.append({arm: p.T_base_target.position - cell.at[arm].position for arm, p in safe.command.arms.items()})
    change = LIMITS.max_acceleration * LIMITS.reaction_time / 100
    for before, after in itertools.pairwise(leads[1:]):
        assert all(np.linalg.norm(after[arm] - before[arm]) <= change + 1e-9 for arm in cell.at)
    assert leads[-1]["left"][1] > 0.01 and leads[-1]["right"][1] < -0.01


@pytest.mark.parametrize("wanted", [(0.5, -0.1, 0.2), (0.25, -0.3, 0.2)])
def test_an_arm_that_comes_into_its_box_waits_for_the_one_in_its_way_which_can_be_led_away(tmp_path, wanted):
    cell = Meeting(tmp_path)
    cell.at = {"left": Pose(np.array([0.25, -0.3, 0.2]), DOWN), "right": Pose(np.array([0.355, 0.3, 0.2]), DOWN)}
    before = cell.true.distance(cell.at)
    with pytest.raises(CommandRefusedError, match="arm left: the tcp is 50 mm outside the box"):
        cell.send({"left": wanted, "right": (0.355, 0.3, 0.2)})
    cell.guards.whole.release()
    for _ in range(10):
        _, safe = cell.send({"left": wanted, "right": (0.355, 0.3, 0.2)})
        assert "left keep-out" in safe.limited
        assert cell.true.distance(cell.at) >= before - 1e-9
    for _ in range(20):
        cell.send({"left": wanted, "right": (0.65, 0.3, 0.2)})
        assert cell.true.distance(cell.at) >= before - 1e-9
    assert not cell.guards.whole.inwards_only


PUSHED = st.tuples(st.floats(0.22, 0.29), st.floats(-0.3, 0.3), st.floats(0.1, 0.3))


@settings(max_examples=25)
@given(PUSHED, PLACES, st.lists(st.tuples(PLACES, PLACES), min_size=1, max_size=5))
def test_an_arm_outside_its_box_comes_no_nearer_to_the_other_one(tmp_path_factory, left, right, ways):
    cell = Meeting(tmp_path_factory.mktemp("cell"))
    in_box = np.clip(right, LIMITS.box_low, LIMITS.box_high)
    cell.at = {"left": Pose(np.array(left), DOWN), "right": Pose(in_box, DOWN)}
    least = min(cell.true.distance(cell.at), KEEP_OUT.distance)
    with pytest.raises(CommandRefusedError, match="outside the box"):
        cell.send(dict.fromkeys(BASES, (0.5, 0.0, 0.2)))
    cell.guards.whole.release()
    for wanted in ways:
        for _ in range(5):
            cell.send(dict(zip(BASES, wanted, strict=True)))
            assert cell.true.distance(cell.at) >= least - 1e-4


def test_the_wrench_of_one_arm_is_limited_alone_and_the_other_arm_keeps_its_own():
    limits = replace(LIMITS, max_feedforward_force=10.0)
    guards = {arm: CommandGuard(limits) for arm in HERE}
    for arm, guard in guards.items():
        guard.measured_pose(HERE[arm], NOW)
        guard.measured_wrench(np.zeros(6), NOW)
    hard, soft = np.array([0.0, 20.0, 0, 0, 0, 0]), np.array([0.0, 5.0, 0, 0, 0, 0])
    points = {"left": SetPoint(HERE["left"], wrench=hard), "right": SetPoint(HERE["right"], wrench=soft)}
    guarded = SeveralGuards(guards).check(Command.of_arms(NOW, 0.3, points), NOW)
    assert guarded.limited == ("left wrench",)
    assert guarded.command.arms["left"].wrench == pytest.approx(0.5 * hard)
    assert guarded.command.arms["right"].wrench == pytest.approx(soft)
    assert guarded.command.wrench is guarded.command.arms["left"].wrench


def test_arms_that_a_keep_out_keeps_apart_are_pushed_by_no_wrench():
    limits = replace(LIMITS, max_feedforward_force=10.0)
    guards = {arm: CommandGuard(limits, needs_twist=True) for arm in HERE}
    arms = {
        arm: ArmSpec(Workspace((0, 0, 0), (1, 1, 1), 1.0, 1.0), base_position=place, capsules=BALL)
        for arm, place in BASES.items()
    }
    both = SeveralGuards(guards, keep_out_of(arms, KEEP_OUT))
    for arm, guard in guards.items():
        guard.measured_pose(HERE[arm], NOW)
        guard.measured_wrench(np.zeros(6), NOW)
        guard.measured_twist(np.zeros(6), NOW)
    points = {arm: SetPoint(pose) for arm, pose in HERE.items()}
    points["left"] = replace(points["left"], wrench=np.array([0.0, 1.0, 0, 0, 0, 0]))
    with pytest.raises(CommandRefusedError, match="wrench of left could push arms together that keep_out keeps apart"):
        both.check(Command.of_arms(NOW, 0.3, points), NOW)
