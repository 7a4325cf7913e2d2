"""Chunks whose every number says when it was planned and for when, so that a misaligned one cannot pass."""

import time

import numpy as np
import pytest

from robot_rl.base_policy import chunk_player
from robot_rl.base_policy import planner as planning
from robot_rl.base_policy.chunk_player import ChunkPlayer
from robot_rl.base_policy.contract import ActionChunk, BasePolicy, BaseSpec
from robot_rl.base_policy.planner import Beside, InTurn
from robot_rl.config.components import BaseConfig
from robot_rl.data.schema import Episode, Source
from robot_rl.errors import BasePolicyError

PERIOD = 10**8
START = 5 * 10**9


class Tagged(BasePolicy):
    """Plans (step of the plan / 100, step that it is for / 100)."""

    name = "tagged"
    identity = "1"

    def __init__(self, horizon=4, history=1, seconds=0.0, grippers=0):
        self.spec = BaseSpec({}, 2, grippers, 0.1, horizon, history, ahead=True)
        self.plans, self.seconds, self.fails, self.seeds, self.asked = [], seconds, None, [], 0

    def begin(self, seed, environment):
        self.seeds.append(seed)

    def plan(self, history):
        self.asked += 1
        time.sleep(self.seconds)
        if self.fails is not None:
            raise self.fails
        self.plans.append([one.stamp for one in history])
        now = step_of(history[-1].stamp)
        ahead = np.arange(self.spec.horizon)
        actions = np.stack([np.full(len(ahead), now), now + ahead], 1) / 100
        return ActionChunk(actions, history[-1].stamp + PERIOD * ahead)


def step_of(stamp):
    return round((stamp - START) / PERIOD)


def stamp(step):
    return START + step * PERIOD


def play(player, steps, led=(), jitter=0):
    rows = [player.begin(3, None, stamp(0), {})]
    for step in range(1, steps):
        off = jitter * (-1) ** step
        rows.append(player.observe(stamp(step) + off, {}, led=step in led))
    return np.round(100 * np.stack(rows)).astype(int).tolist()


def player(base=None, delay=0, planner=None, **settings):
    base = base or Tagged()
    config = BaseConfig(**{"replan": 2, "blend": 0, **settings})
    return ChunkPlayer(base, planner or InTurn(base, delay), config)


def test_a_chunk_is_played_by_time_and_planned_anew_after_some_steps():
    assert play(player(), 5) == [[0, 0], [0, 1], [2, 2], [2, 3], [4, 4]]
    assert play(player(replan=9), 6) == [[0, 0], [0, 1], [0, 2], [0, 3], [4, 4], [4, 5]], "used up"


def test_time_stamps_may_jitter():
    assert play(player(), 5, jitter=PERIOD // 5) == play(player(), 5)


def test_a_late_chunk_is_joined_at_the_step_that_is_due():
    late = play(player(delay=1), 7)
    assert [row[1] for row in late[1:]] == list(range(1, 7)), "whatever comes late is for now"
    assert late[3:6] == [[2, 3], [2, 4], [4, 5]]


def test_nothing_is_proposed_while_there_is_no_chunk():
    made = player(Tagged(horizon=2), delay=3)
    assert (made.begin(3, None, stamp(0), {}) == 0).all()
    held = [made.holding]
    for step in range(1, 6):
        made.observe(stamp(step), {})
        held.append(made.holding)
    assert held[0], "the first chunk is on its way"
    assert all(held[:4]), "when it comes it is used up already"


def test_after_somebody_else_was_in_control_it_plans_anew():
    assert play(player(replan=4), 4, led=(2,)) == [[0, 0], [0, 1], [2, 2], [2, 3]]


def test_a_new_chunk_fades_in_but_for_a_gripper():
    base = Tagged(horizon=6)
    rows = play(player(base, replan=3, blend=2), 6)
    # planned at 0 and at 3: 1/3 and 2/3 of the way from the old to the new one
    assert [row[0] for row in rows] == [0, 0, 0, 1, 2, 3]
    gripper = player(Tagged(horizon=6, grippers=1), replan=3, blend=2)
    gripper.begin(3, None, stamp(0), {})
    assert gripper.observe(stamp(3), {})[1] == 0.0, "a whole action of the gripper"


def test_a_chunk_that_ends_a_hold_fades_in_from_rest():
    made = player(Tagged(horizon=6), delay=4, replan=6, blend=3)
    rows = [made.begin(3, None, stamp(0), {})]
    rows += [made.observe(stamp(step), {}) for step in range(1, 10)]
    due = [round(100 * float(row[1]), 3) for row in rows]
    # The first comes at step 4, and has two steps left. The second is asked for at step 6, and comes at 10.
    assert due == [0, 0, 0, 0, 4 / 4, 5 * 2 / 4, 0, 0, 0, 0]
    quick = player(Tagged(horizon=6), blend=3, replan=6)
    assert play(quick, 3) == [[0, 0], [0, 1], [0, 2]], "nothing was held before"


def test_it_gives_the_base_as_many_observations_as_it_wants():
    base = Tagged(history=3)
    play(player(base), 7)
    assert base.plans[-1] == [stamp(4), stamp(5), stamp(6)]
    assert base.plans[0] == [stamp(0)]
    assert base.seeds == [3]


def test_a_recorded_episode_is_looked_at_in_the_same_way():
    assert np.round(100 * player().replay(of_steps(6))).tolist() == play(player(), 7)


def of_steps(steps):
    return Episode(
        episode_id="one",
        observations={"state/x": np.zeros((steps + 1, 1), np.float32)},
        action=np.zeros((steps, 2), np.float32),
        action_policy=np.zeros((steps, 2), np.float32),
        source=np.full(steps, Source.SCRIPT, np.int8),
        reward=np.zeros(steps, np.float32),
        terminated=np.zeros(steps, bool),
        truncated=np.arange(steps) == steps - 1,
        stamp_obs=np.array([stamp(t) for t in range(steps + 1)]),
        stamp_action=np.array([stamp(t) for t in range(steps)]),
    )


# Beside control, on the wall clock.


def beside(base, limit=5.0, **settings):
    planner = Beside(base, limit)
    return player(base, planner=planner, **settings), planner


def until(condition, limit=5.0):
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_control_does_not_wait_for_a_slow_base_and_takes_its_chunk_at_the_right_place():
    base = Tagged(horizon=8, seconds=0.2)
    made, _ = beside(base)
    made.begin(0, None, stamp(0), {})
    assert made.holding
    waits, rows = [], []
    for step in range(1, 15):
        time.sleep(0.04)
        started = time.monotonic()
        action = made.observe(stamp(step), {})
        waits.append(time.monotonic() - started)
        if not made.holding:
            rows.append((step, round(100 * float(action[1]))))
    made.close()
    assert rows
    assert all(step == due for step, due in rows)
    assert np.median(waits) < 0.02, "a plan takes 0.2 s"


def test_the_arm_holds_while_a_base_stalls_and_goes_on_with_it():
    base = Tagged(horizon=2, seconds=0.05)
    made, planner = beside(base)
    made.begin(0, None, stamp(0), {})
    until(lambda: planner.ready)
    base.seconds = 0.2
    assert made.observe(stamp(1), {})[1] == pytest.approx(0.01)  # asks for the next one
    assert (made.observe(stamp(2), {}) == 0).all()
    assert (made.observe(stamp(3), {}) == 0).all()
    assert made.holding
    until(lambda: planner.ready)
    made.observe(stamp(4), {})  # too late for its two steps, and the next one is asked for
    assert made.holding
    until(lambda: planner.ready)
    assert made.observe(stamp(5), {})[1] == pytest.approx(0.05)
    assert not made.holding
    made.close()


@pytest.mark.parametrize("horizon", [1, 2, 4])
def test_a_fast_base_of_short_chunks_beside_control_is_played_without_a_hold(horizon, monkeypatch):
    monkeypatch.setattr(chunk_player, "PATIENCE", 10.0)  # as this machine may be busy
    made, planner = beside(Tagged(horizon), replan=4)
    rows = [(made.begin(0, None, stamp(0), {}), made.holding)]
    for step in range(1, 13):
        until(lambda: planner.ready or not planner.busy)
        rows.append((made.observe(stamp(step), {}), made.holding))
    made.close()
    assert not any(holding for _, holding in rows)
    assert [round(100 * float(action[1])) for action, _ in rows] == list(range(13))


def test_chunks_that_always_come_too_late_are_said_once_with_the_cure(caplog, monkeypatch):
    monkeypatch.setattr(chunk_player, "PATIENCE", 0.0)
    made, planner = beside(Tagged(horizon=1, seconds=0.03))
    made.begin(0, None, stamp(0), {})
    for step in range(1, chunk_player.LATE + 5):
        until(lambda: planner.ready)
        made.observe(stamp(step), {})
        assert made.holding
    made.close()
    (said,) = caplog.messages
    assert "base tagged: 10 chunks in a row came when their actions were over, so the arm holds" in said
    assert "1 of them, one for each 0.1 s; take a base that answers sooner, or one of longer chunks" in said


@pytest.mark.parametrize(
    ("fails", "said"),
    [
        (BasePolicyError("base tagged: the server is gone"), "base tagged: the server is gone"),
        (RuntimeError("out of memory"), "base tagged failed: RuntimeError: out of memory"),
    ],
)
def test_a_base_that_fails_ends_it_by_name(fails, said):
    base = Tagged(seconds=0.05)
    base.fails = fails
    made, planner = beside(base)
    made.begin(0, None, stamp(0), {})
    until(lambda: planner.ready)
    with pytest.raises(BasePolicyError, match=said):
        made.observe(stamp(1), {})
    made.close()


def test_a_base_that_does_not_answer_is_lost_by_name():
    made, _ = beside(Tagged(seconds=0.5), limit=0.1)
    made.begin(0, None, stamp(0), {})
    time.sleep(0.15)
    with pytest.raises(BasePolicyError, match=r"base tagged has not answered for 0\.1 s; the arm was stopped"):
        made.observe(stamp(1), {})
    made.close()


def test_time_that_goes_into_a_plan_of_the_last_episode_is_not_the_base_s_delay():
    base = Tagged(horizon=8, seconds=0.5)
    made, _ = beside(base, limit=0.8)
    made.begin(0, None, stamp(0), {})
    until(lambda: base.asked)
    made.begin(1, None, stamp(50), {})
    time.sleep(0.85)  # of which the plan of the last episode takes 0.5 s
    made.observe(stamp(51), {})
    until(lambda: base.plans[1:])
    time.sleep(0.05)
    assert made.observe(stamp(52), {})[1] == pytest.approx(0.52)
    made.close()


def test_a_base_that_is_stuck_in_the_last_episode_is_lost_too():
    base = Tagged(seconds=0.6)
    made, _ = beside(base, limit=0.2)
    made.begin(0, None, stamp(0), {})
    until(lambda: base.asked)
    made.begin(1, None, stamp(50), {})
    time.sleep(0.25)
    with pytest.raises(BasePolicyError, match="has not answered for"):
        made.observe(stamp(51), {})
    made.close()


def test_what_a_base_has_not_begun_with_is_dropped_at_the_end(monkeypatch):
    monkeypatch.setattr(planning, "END_LIMIT", 0.01)
    base = Tagged(seconds=0.3)
    made, _ = beside(base)
    made.begin(0, None, stamp(0), {})
    until(lambda: base.asked)
    made.begin(1, None, stamp(50), {})
    made.close()
    time.sleep(0.5)
    assert (base.seeds, base.asked) == ([0], 1)


def test_control_does_not_wait_at_the_start_of_an_episode_either():
    base = Tagged(horizon=8, seconds=0.3)
    made, planner = beside(base)
    made.begin(0, None, stamp(0), {})
    until(lambda: base.asked)
    started = time.monotonic()
    made.begin(1, None, stamp(50), {})
    assert time.monotonic() - started < 0.1, "a plan of the last episode is under way"
    until(lambda: planner.ready)
    assert base.seeds == [0, 1]
    assert base.plans == [[stamp(0)], [stamp(50)]]
    assert made.observe(stamp(53), {})[1] == pytest.approx(0.53)
    made.close()


def test_what_a_slow_base_would_have_proposed_along_a_recorded_episode_is_waited_for():
    base = Tagged(seconds=0.02)
    made, _ = beside(base)
    made.begin(0, None, stamp(90), {})
    recorded = made.replay(of_steps(6))
    made.close()
    np.testing.assert_array_equal(recorded, player().replay(of_steps(6)))
    assert recorded[1:].any()


def test_an_answer_of_the_last_episode_is_dropped():
    made, planner = beside(Tagged(seconds=0.05))
    made.begin(0, None, stamp(50), {})
    made.begin(1, None, stamp(0), {})
    until(lambda: planner.ready)
    assert made.observe(stamp(1), {})[1] == pytest.approx(0.01)
    made.close()
