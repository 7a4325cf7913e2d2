from dataclasses import replace

import numpy as np
import pytest
from base_policy_contract import MOVES, OBSERVATIONS, TASK, BasePolicyContract, demonstrations, history, setup_of
from documents import ADD, Example

from robot_rl.base_policy.contract import BASE_GROUP, ActionChunk, BaseSetup, checked_chunk, make_base
from robot_rl.env.choice import join_grippers, split_grippers
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.env.registry import names
from robot_rl.errors import BasePolicyError, CheckpointError, DataError, UnknownNameError
from robot_rl.spec import ArraySpec


@pytest.fixture(scope="module", params=["clone", "chunk"])
def cloned(request):
    setup = setup_of(request.param)
    base = make_base(setup)
    assert not base.trained
    with pytest.raises(BasePolicyError, match="is not trained yet"):
        base.plan(history())
    reports = []
    figures = base.train(demonstrations(), lambda *report: reports.append(report))
    assert reports[-1][:2] == (150, 150)
    assert figures["steps"] == 80
    return setup, base


class TestCloned(BasePolicyContract):
    @pytest.fixture
    def setup(self, cloned):
        return cloned[0]

    @pytest.fixture
    def base(self, cloned):
        return cloned[1]

    def test_it_does_what_was_demonstrated(self, base):
        errors, closed = [], []
        for seed in range(10):
            base.begin(seed, None)
            now = history(1, seed)
            action = checked_chunk(base.plan(now), base).actions[0]
            errors.append(np.abs(action[:2] - now[-1].observation["state/way"]).mean())
            closed.append(action[2] == -1.0)
        assert np.mean(errors) < 0.2
        assert np.mean(closed) >= 0.9

    def test_one_of_other_observations_is_refused(self, setup, base):
        fewer = {"state/way": OBSERVATIONS["state/way"]}
        other = BaseSetup("", TASK, fewer, setup.config, base.state_dict())
        with pytest.raises(CheckpointError, match=r"was trained with observations .*state/width"):
            make_base(other)


class TestOfThePage(BasePolicyContract):
    @pytest.fixture
    def setup(self, tmp_path, monkeypatch):
        Example.read(ADD / "base_policy.md").load("straight", tmp_path, monkeypatch)
        return setup_of("straight")

    @pytest.fixture
    def base(self, setup):
        return make_base(setup)


TWO = replace(TASK, choices=9, arms=("left", "right"))
OPEN, CLOSE = 1.0, -1.0


def grippers_at(way):
    return [OPEN, CLOSE] if way[0] > 0 else [CLOSE, OPEN]


def of_two(episode):
    entries = [join_grippers(grippers_at(way)) for way in episode.observations["state/way"][:-1]]
    action = np.column_stack([episode.action[:, :2], entries]).astype(np.float32)
    poses = {"T_base_reset_of_arms": {arm: [0.0] * 6 for arm in TWO.arms}}
    return replace(episode, action=action, metadata={**episode.metadata, **poses})


@pytest.fixture(scope="module", params=["clone", "chunk"])
def taught(request):
    setup = replace(setup_of(request.param), task=TWO)
    more = replace(setup.config.base, updates=500)
    base = make_base(replace(setup, config=replace(setup.config, base=more)))
    base.train((of_two(one) for one in demonstrations()), lambda *report: None)
    return setup, base


class TestClonedForTwoArms(BasePolicyContract):
    """Its arms go to where it is shown, and both grippers change at once; what lies between means nothing."""

    @pytest.fixture
    def setup(self, taught):
        return taught[0]

    @pytest.fixture
    def base(self, taught):
        return taught[1]

    def test_both_grippers_do_what_was_demonstrated(self, base):
        right = []
        base.begin(0, None)
        for start in range(18):  # as in the first demonstration
            seen = history(2, start)
            chunk = checked_chunk(base.plan(seen), base)
            assert chunk.actions.shape == (base.spec.horizon, 3)
            pairs = [split_grippers(entry, 2) for entry in chunk.actions[:, -1]]
            assert all(pair in ([OPEN, CLOSE], [CLOSE, OPEN]) for pair in pairs), "no pair that nobody made"
            made = pairs[0]
            way = seen[-1].observation["state/way"]
            if abs(way[0]) > 0.1:  # nearer to 0 hardly anybody could tell
                right.append(made == grippers_at(way))
        assert len(right) > 10
        assert np.mean(right) >= 0.8

    @pytest.mark.parametrize(("arms", "has"), [((), "one arm"), (("right", "left"), "the arms right, left")])
    def test_a_task_of_one_arm_or_of_arms_in_another_order_is_refused(self, setup, base, arms, has):
        other = BaseSetup("", replace(TWO, arms=arms), OBSERVATIONS, setup.config, base.state_dict())
        said = f"does not fit line: it moves the arms left, right, and line has {has}; take a base of these"
        with pytest.raises(BasePolicyError, match=said):
            make_base(other)

    def test_demonstrations_of_one_arm_teach_it_nothing(self, setup):
        with pytest.raises(DataError, match=r"base \w+: demo-0 is of one arm, expected the arms left, right"):
            make_base(setup).train(demonstrations(), lambda *report: None)


def test_ours_are_registered():
    assert {"clone", "chunk"} <= set(names(BASE_GROUP))


def test_an_unknown_kind_is_named_with_those_that_exist():
    with pytest.raises(UnknownNameError, match=r"base policy 'chunks'.*chunk.*did you mean"):
        make_base(setup_of("chunks"))


def test_a_file_that_is_not_there_is_named_with_its_cure():
    with pytest.raises(BasePolicyError, match=r"no file gone\.pt; `robot-rl base train` makes one"):
        make_base(setup_of("chunk", "gone.pt"))


@pytest.mark.parametrize(
    ("task", "observations", "said"),
    [
        ({"action_size": 4}, {}, "its actions have 3 numbers with a gripper, those of other 4 with a gripper"),
        ({"choices": 0}, {}, "3 numbers with a gripper, those of other 3 without a gripper"),
        ({"choices": 5}, {}, "it plans no choices but those of grippers, and other has 5 of them"),
        ({"choices": 9}, {}, "3 numbers with a gripper, those of other 3 with 2 grippers"),
        ({"arms": ("a", "b")}, {}, "it moves one arm, and other has the arms a, b; take a base of these"),
        ({"control_period": 0.02}, {}, r"it plans every 0\.1 s, and other is controlled every 0\.02 s"),
        (
            {"actions": MOVES.replace("0.01", "0.02")},
            {},
            r"an action of it is x 0\.01 m, y 0\.01 m, gripper, every 0\.1 s, and one of other is x 0\.02 m, y 0\.02 m",
        ),
        ({}, {"state/way": ArraySpec((3,))}, r"its state/way has shape \(2,\), that of other \(3,\)"),
        ({}, {"state/width": None}, "it needs state/width, and other has state/way"),
    ],
)
def test_a_base_for_another_environment_is_refused_with_both_sides(cloned, task, observations, said):
    from robot_rl.base_policy.contract import check_fit

    facts = {"max_steps": 30, "control_period": 0.1, "action_size": 3, "choices": 3, **task}
    given = {key: spec for key, spec in {**OBSERVATIONS, **observations}.items() if spec is not None}
    setup = BaseSetup("", EnvironmentSpec("other", **facts), given, cloned[0].config)
    with pytest.raises(BasePolicyError, match=f"base {cloned[0].config.base.kind} does not fit other: .*{said}"):
        check_fit(cloned[1], setup)


def test_a_file_of_before_does_not_say_what_its_actions_move_and_is_believed(cloned):
    setup, base = cloned
    state = base.state_dict()
    assert state.pop("actions") == MOVES
    other = replace(setup.task, actions=MOVES.replace("x", "z"))
    assert make_base(replace(setup, task=other, state=state)).identity == base.identity


STAMPS = 10**9 + 10**8 * np.arange(2)


@pytest.mark.parametrize(
    ("actions", "stamps", "said"),
    [
        (np.zeros((2, 4)), STAMPS, r"shape \(2, 4\).*expected \(up to \d, 3\)"),
        (np.zeros((0, 3)), STAMPS[:0], "shape"),
        (np.zeros(3), STAMPS[:1], "shape"),
        (np.zeros((2, 3)), STAMPS[:1], r"with \(1,\) stamps"),
        (np.full((2, 3), np.nan), STAMPS, "NaN or an infinity; nothing is carried out"),
        (np.full((2, 3), 30.0), STAMPS, "an action of 30, and actions lie in .* normalised in another way"),
        (np.zeros((2, 3)), STAMPS[::-1], "time stamps do not increase"),
    ],
)
def test_an_answer_that_cannot_be_carried_out_is_refused_by_name(cloned, actions, stamps, said):
    with pytest.raises(BasePolicyError, match=f"base {cloned[0].config.base.kind} answered.*{said}"):
        checked_chunk(ActionChunk(actions, stamps), cloned[1])


def test_a_grippers_entry_is_one_of_three_and_the_rest_is_clipped(cloned):
    actions = np.array([[1.2, 0.0, -0.7], [0.0, -1.5, 0.3]])
    chunk = checked_chunk(ActionChunk(actions, STAMPS), cloned[1])
    np.testing.assert_array_equal(chunk.actions, [[1.0, 0.0, -1.0], [0.0, -1.0, 0.0]])
