"""Wherever two arms are and are wanted, they go to where they keep their distance, all the way."""

import numpy as np
import pytest

from robot_rl.env.cell_geometry.capsule import Capsule, KeepOutLimits
from robot_rl.env.cell_geometry.keep_out import ArmMotion, ArmShape, KeepOut
from robot_rl.geometry import Pose, quat_from_rotvec, yaw_pose

LIMITS = KeepOutLimits(distance=0.02, slack=0.0, horizon=0.6)
SHAPE = (Capsule((0, -0.05, 0), (0, 0.05, 0), 0.03), Capsule((0, 0, 0), (0, 0, -0.2), 0.04))
BASES = {"left": yaw_pose(0.0, 0.5, 0.0, -np.pi / 2), "right": yaw_pose(0.0, -0.5, 0.0, np.pi / 2)}
DOWN = np.array([0.0, 1.0, 0.0, 0.0])


def keep_out(limits=LIMITS):
    return KeepOut(limits, {name: ArmShape(base, SHAPE) for name, base in BASES.items()})


def motion(x, y=0.0, z=0.2, *, to=(0.0, 0.0, 0.0), turn=0.0, to_turn=0.0, velocity=(0, 0, 0), box=1.0):
    """An arm whose tcp is `x` in front of its base and is wanted `to` away from there."""
    here = Pose(np.array([x, y, z]), yaw_pose(0, 0, 0, turn).quaternion)
    here = Pose(here.position, (here @ Pose(np.zeros(3), DOWN)).quaternion)
    target = Pose(
        here.position + to, (here @ Pose(np.zeros(3), quat_from_rotvec(np.array([0, 0, to_turn])))).quaternion
    )
    start = here.position
    return ArmMotion(here, np.array(velocity, float), target, lambda p: start + np.clip(p - start, -box, box))


def apart(keep, motions, targets, share=1.0):
    placed = {}
    for name, m in motions.items():
        here, there = m.T_base_tcp, targets[name]
        placed[name] = Pose(here.position + share * (there.position - here.position), there.quaternion)
    return keep.distance(placed)


def test_the_distance_is_that_of_the_nearest_capsules():
    keep = keep_out()
    assert keep.distance({"left": motion(0.4).T_base_tcp, "right": motion(0.4).T_base_tcp}) == pytest.approx(0.2 - 0.08)
    turned = {"left": motion(0.4, turn=np.pi / 2).T_base_tcp, "right": motion(0.4).T_base_tcp}
    assert keep.distance(turned) == pytest.approx(0.2 - 0.05 - 0.03 - 0.04)


def test_far_apart_nothing_is_changed():
    motions = {"left": motion(0.1, to=(0.02, 0, 0)), "right": motion(0.1, to=(0, 0.02, 0.01))}
    targets = keep_out().limit(motions)
    for name, m in motions.items():
        assert targets[name].position.tolist() == m.T_base_target.position.tolist()


def test_each_stays_on_its_side_whatever_the_other_one_does():
    keep = keep_out()
    motions = {"left": motion(0.42, to=(0.08, 0.0, 0.0)), "right": motion(0.42, to=(0.08, 0.0, 0.0))}
    targets = keep.limit(motions)
    assert apart(keep, motions, targets) == pytest.approx(0.02, abs=1e-4)
    for waits in motions:
        late = {**targets, waits: motions[waits].T_base_tcp}
        assert apart(keep, motions, late) >= 0.02
    # They do not tunnel through each other, however far away they are wanted.
    through = {name: motion(0.42, to=(0.4, 0.0, 0.0)) for name in motions}
    beyond = keep.limit(through)
    assert all(apart(keep, through, beyond, share) >= 0.0199 for share in np.linspace(0, 1, 20))


def test_it_slides_along_the_other_arm():
    targets = keep_out().limit({"left": motion(0.45, to=(0.05, 0.02, 0.0)), "right": motion(0.45)})
    assert targets["left"].position[1] == pytest.approx(0.02, abs=2e-3)
    assert targets["left"].position[0] < 0.46


def test_an_arm_that_approaches_is_stopped_earlier():
    fast = keep_out().limit({"left": motion(0.44, to=(0.05, 0, 0), velocity=(0.1, 0, 0)), "right": motion(0.44)})
    slow = keep_out().limit({"left": motion(0.44, to=(0.05, 0, 0)), "right": motion(0.44)})
    assert slow["left"].position[0] - fast["left"].position[0] == pytest.approx(0.1 * LIMITS.braking, abs=1e-4)


def test_too_close_they_go_back_and_one_that_cannot_holds_while_the_other_makes_room():
    keep = keep_out()
    motions = {"left": motion(0.456), "right": motion(0.456)}  # 8 mm apart
    assert apart(keep, motions, keep.limit(motions)) >= 0.02
    caught = {"left": motion(0.456, box=1e-9), "right": motion(0.456, to=(0.02, 0, 0))}
    targets = keep.limit(caught)
    assert targets["left"].position.tolist() == caught["left"].T_base_tcp.position.tolist()
    assert apart(keep, caught, targets) >= 0.02
    both = {name: motion(0.456, to=(0.02, 0, 0), box=1e-9) for name in BASES}
    held = keep.limit(both)
    for name, m in both.items():
        assert held[name].position.tolist() == m.T_base_tcp.position.tolist(), "none has a way back: all hold"


def test_while_one_arm_has_no_place_the_other_one_does_nothing_but_go_away():
    keep = keep_out()
    caught = motion(0.43, velocity=(0.5, 0, 0), box=1e-9)  # too fast for where it is
    for way, goes in (((0.0, 0.02, 0.0), False), ((0.0, 0.0, 0.02), False), ((-0.02, 0.0, 0.0), True)):
        motions = {"left": caught, "right": motion(0.43, to=way)}
        targets = keep.limit(motions)
        moved = targets["right"].position - motions["right"].T_base_tcp.position
        assert moved.tolist() == pytest.approx(list(way) if goes else [0.0, 0.0, 0.0])
        assert targets["left"].position.tolist() == caught.T_base_tcp.position.tolist()


def test_an_arm_outside_its_workspace_does_not_come_in_where_another_one_is_in_its_way():
    keep = keep_out()
    outside = motion(0.43)
    inside = ArmMotion(
        outside.T_base_tcp, np.zeros(3), outside.T_base_target, lambda p: np.maximum(p, [0.6, -1.0, 0.0])
    )  # beyond the other arm
    motions = {"left": inside, "right": motion(0.43)}
    targets = keep.limit(motions)
    assert targets["left"].position.tolist() == outside.T_base_tcp.position.tolist()
    beside = ArmMotion(
        outside.T_base_tcp, np.array([0.5, 0.0, 0.0]), outside.T_base_target, lambda p: np.minimum(p, [1.0, 1.0, 0.15])
    )
    lowered = keep.limit({"left": beside, "right": motion(0.3)})["left"]
    assert lowered.position[2] == pytest.approx(0.15), "nothing is in the way into this workspace"


def test_it_turns_only_as_far_as_it_can():
    keep = keep_out()
    motions = {"left": motion(0.43, to_turn=1.5, box=1e-9), "right": motion(0.43)}
    targets = keep.limit(motions)
    assert apart(keep, motions, targets) >= 0.0199
    free = {"left": motion(0.2, to_turn=1.5), "right": motion(0.2)}
    assert keep.limit(free)["left"].quaternion.tolist() == free["left"].T_base_target.quaternion.tolist()


def test_tools_stay_within_their_largest_distance():
    keep = keep_out(KeepOutLimits(tool_distance=(0.0, 0.5)))
    motions = {"left": motion(0.27, to=(-0.06, 0, 0)), "right": motion(0.27)}
    targets = keep.limit(motions)
    tools = [(BASES[name] @ targets[name]).position for name in ("left", "right")]
    assert np.linalg.norm(tools[0] - tools[1]) == pytest.approx(0.5)


def test_random_targets_of_arms_that_move_alone_or_together_never_come_too_close():
    keep, rng = keep_out(), np.random.default_rng(0)
    for _ in range(300):
        motions = {
            name: motion(
                rng.uniform(0.3, 0.44), *rng.uniform((-0.1, 0.15), (0.1, 0.3)), to=rng.uniform(-0.1, 0.1, 3),
                turn=rng.uniform(-0.7, 0.7), to_turn=rng.uniform(-0.1, 0.1),
            )
            for name in BASES
        }  # fmt: skip
        before = keep.distance({name: m.T_base_tcp for name, m in motions.items()})
        targets = keep.limit(motions)
        for moving in (("left", "right"), ("left",), ("right",)):
            there = {name: targets[name] if name in moving else m.T_base_tcp for name, m in motions.items()}
            assert keep.distance(there) >= min(0.02, before) - 1e-4
