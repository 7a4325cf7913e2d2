"""Pickles of SERL and HIL-SERL become episodes, and nothing that they name runs."""

import collections
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from robot_rl.data.formats.inert_pickle import OpaqueObject, load_inert
from robot_rl.data.formats.serl_import import SerlReader, serl_files
from robot_rl.data.schema import Source
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError


def observation(step):
    """As HIL-SERL's wrappers return it: an axis of the history in front; every value tells its step."""
    return {
        "state": np.full((1, 5), step, np.float32),
        "wrist_1": np.full((1, 8, 8, 3), step % 256, np.uint8),
    }


def transitions(steps, first=0, *, success=True):
    return [
        {
            "observations": observation(first + t),
            "actions": np.full(4, t / 100, np.float64),
            "next_observations": observation(first + t + 1),
            "rewards": int(success and t == steps - 1),
            "masks": 1.0 - (t == steps - 1),
            "dones": t == steps - 1,
            "infos": {"succeed": success and t == steps - 1},
        }
        for t in range(steps)
    ]


def written(path, value, protocol=pickle.DEFAULT_PROTOCOL):
    path.write_bytes(pickle.dumps(value, protocol))
    return path


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_demonstrations_become_episodes_step_by_step(tmp_path, protocol):
    both = [*transitions(3), *transitions(5, first=40, success=False)]
    first, second = SerlReader(written(tmp_path / "demos.pkl", both, protocol)).episodes()
    assert (len(first), len(second)) == (3, 5)
    assert first.observations["state/state"][:, 0].tolist() == [0, 1, 2, 3]
    assert second.observations["images/wrist_1"][:, 0, 0, 0].tolist() == [40, 41, 42, 43, 44, 45]
    assert second.observations["images/wrist_1"].shape == (6, 8, 8, 3)
    np.testing.assert_allclose(second.action[:, 0], np.arange(5) / 100, rtol=1e-6)
    assert first.reward.tolist() == [0, 0, 1]
    assert set(first.source) == {Source.HUMAN}


def test_success_terminates_and_a_time_out_truncates(tmp_path):
    both = [*transitions(3), *transitions(3, first=40, success=False)]
    success, time_out = SerlReader(written(tmp_path / "demos.pkl", both)).episodes()
    assert (success.terminated[-1], success.truncated[-1], success.facts.success) == (True, False, True)
    assert (time_out.terminated[-1], time_out.truncated[-1], time_out.facts.success) == (False, True, False)


def test_stamps_count_at_the_rate_of_control(tmp_path):
    (episode,) = SerlReader(written(tmp_path / "demos.pkl", transitions(3)), rate=20.0).episodes()
    assert np.diff(episode.stamp_obs).tolist() == [50_000_000] * 3


def test_buffers_of_a_run_follow_each_other_by_number(tmp_path):
    steps = transitions(6)
    written(tmp_path / "transitions_1000.pkl", steps[4:])
    written(tmp_path / "transitions_500.pkl", steps[:4])
    (episode,) = SerlReader(tmp_path, source=Source.POLICY).episodes()
    assert episode.observations["state/state"][:, 0].tolist() == list(range(7))
    assert set(episode.source) == {Source.POLICY}


def test_a_recording_that_ends_within_an_episode_is_cut_there(tmp_path):
    (episode,) = SerlReader(written(tmp_path / "demos.pkl", transitions(6)[:4])).episodes()
    assert (len(episode), bool(episode.truncated[-1])) == (4, True)
    assert episode.facts.cut == "the recording ends within the episode"


def test_a_gap_between_transitions_separates_episodes(tmp_path):
    steps = transitions(6)
    first, second = SerlReader(written(tmp_path / "demos.pkl", steps[:2] + steps[4:])).episodes()
    assert (len(first), len(second)) == (2, 2)


def test_observations_before_flattening_keep_their_names(tmp_path):
    (step,) = transitions(1)
    for key in ("observations", "next_observations"):
        step[key] = collections.OrderedDict(
            state={"tcp_pose": np.zeros(6), "tcp_vel": np.ones(6)}, images={"side": np.zeros((8, 8, 3), np.uint8)}
        )
    (episode,) = SerlReader(written(tmp_path / "demos.pkl", [step])).episodes()
    assert sorted(episode.observations) == ["images/side", "state/tcp_pose", "state/tcp_vel"]


class Trap:
    """Runs a program when it is unpickled as usual."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return subprocess.call, (["touch", str(self.mark)],)


def test_nothing_that_a_pickle_names_runs(tmp_path):
    steps = transitions(2)
    steps[0]["infos"] = {"note": Trap(tmp_path / "ran")}
    path = written(tmp_path / "demos.pkl", steps)
    assert isinstance(load_inert(path)[0]["infos"]["note"], OpaqueObject)
    (episode,) = SerlReader(path).episodes()
    assert len(episode) == 2
    assert not (tmp_path / "ran").exists()


def test_a_needed_value_of_another_package_is_named(tmp_path):
    steps = transitions(2)
    steps[1]["actions"] = Trap(tmp_path / "ran")
    with pytest.raises(DataError, match=r"transition 1, actions: an object of subprocess\.call, must be an array"):
        list(SerlReader(written(tmp_path / "demos.pkl", steps)).episodes())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"demos": []}, "holds a dict; SERL writes a list of transitions"),
        ([{"observations": {}}], "must have observations, actions, next_observations, rewards, dones"),
        ([{**transitions(1)[0], "observations": {}}], "observations: a dict, must be a dictionary of"),
        ([{**transitions(1)[0], "actions": "left"}], "actions: a str, must be an array of numbers"),
        ([{**transitions(1)[0], "observations": {"a\nb": "left"}}], "observations, a b: a str, must be an array"),
        ([{**transitions(1)[0], "actions": np.full(4, 3.0)}], r"actions up to 3, must lie in \[-1, 1\]"),
        ([{**transitions(1)[0], "actions": np.array([None])}], "type 'O8'; numbers, booleans and short texts are read"),
    ],
)
def test_what_is_no_list_of_transitions_is_refused_by_name(tmp_path, wrong, message):
    with pytest.raises(DataError, match=message):
        list(SerlReader(written(tmp_path / "demos.pkl", wrong)).episodes())


def test_actions_and_observations_that_change_their_size_are_refused(tmp_path):
    for key, value, message in (
        ("actions", np.zeros(7), "actions of 4 and 7 elements"),
        ("next_observations", {"state": np.zeros((1, 6), np.float32)}, "observations change from"),
    ):
        steps = transitions(3)
        steps[2][key] = value
        with pytest.raises(DataError, match=message):
            list(SerlReader(written(tmp_path / "demos.pkl", steps)).episodes())


@given(place=st.integers(0, 10_000), value=st.integers(0, 255), kept=st.integers(0, 10_000))
@example(place=45, value=10, kept=0)  # a line break in the name of a function
def test_a_damaged_pickle_is_read_or_refused_in_one_line(tmp_path_factory, place, value, kept):
    content = bytearray(pickle.dumps(transitions(2)))
    content[place % len(content)] = value
    path = tmp_path_factory.mktemp("pickle") / "demos.pkl"
    path.write_bytes(content[: kept % len(content) + 1] if kept % 2 else content)
    try:
        list(SerlReader(path).episodes())
    except DataError as error:
        assert "\n" not in str(error)


def test_sizes_that_are_not_true_take_no_memory(tmp_path):
    # BYTEARRAY8 with a length of 2^40
    path = tmp_path / "demos.pkl"
    path.write_bytes(b"\x80\x05\x96" + (1 << 40).to_bytes(8, "little") + b"few")
    with pytest.raises(DataError, match="cannot be read as a pickle"):
        load_inert(path)


def test_a_number_of_an_object_that_is_not_true_takes_no_memory_and_no_time(tmp_path):
    # LONG_BINPUT of 2^32 - 1: Python's own reader makes a table of as many entries, 64 GiB
    path = tmp_path / "demos.pkl"
    path.write_bytes(b"\x80\x04]r\xff\xff\xff\xff.")
    began = time.monotonic()
    with pytest.raises(DataError, match="byte 3 keeps an object as number 4294967295, after 2 operations"):
        load_inert(path)
    assert time.monotonic() - began < 1.0


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_of_every_protocol_are_read(tmp_path, protocol):
    path = tmp_path / "demos.pkl"
    path.write_bytes(pickle.dumps([{"a": [1.5, "x" * 300], "b": (None, True)}] * 300, protocol))
    assert load_inert(path) == [{"a": [1.5, "x" * 300], "b": (None, True)}] * 300


def test_pickles_are_found_by_their_ending(tmp_path):
    written(tmp_path / "demos.pkl", [])
    (tmp_path / "notes.txt").write_text("none")
    assert serl_files(tmp_path) == [tmp_path / "demos.pkl"]
    with pytest.raises(DataError, match="no pickle there"):
        SerlReader(tmp_path / "notes.txt")


def test_the_command_makes_a_store(tmp_path):
    written(tmp_path / "demos.pkl", transitions(3))
    command = [sys.executable, "-m", "robot_rl", "data", "import", str(tmp_path / "demos.pkl"), "--out"]
    subprocess.run([*command, str(tmp_path / "store")], check=True, capture_output=True)
    with EpisodeStore.open(tmp_path / "store") as store:
        assert [len(store.read(name)) for name in store.ids()] == [3]
    wrong = subprocess.run(
        [*command, str(tmp_path / "other"), "--mapping", "map.yaml"], check=False, capture_output=True, text=True
    )
    assert (wrong.returncode, "--mapping is for bags" in wrong.stderr) == (2, True)
    assert not (tmp_path / "other").exists()
