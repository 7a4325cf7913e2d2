"""Who led each of several arms, in stores, journals and exports, beside episodes of one arm."""

from dataclasses import replace

import numpy as np
import pytest
from tagged import assert_same, steps, valid

from robot_rl.data.episode_facts import EpisodeFacts
from robot_rl.data.formats.lerobot_export import export_lerobot
from robot_rl.data.formats.lerobot_import import LeRobotReader
from robot_rl.data.schema import ARMS_VERSION, SCHEMA_VERSION, EpisodeBuilder, Source
from robot_rl.data.store.codec import decode, encode
from robot_rl.data.store.journal import JournalWriter, read_journal
from robot_rl.data.store.store import EpisodeStore
from robot_rl.data.store.verify import check_episode
from robot_rl.errors import DataError

WHO = np.array([[0, 2], [0, 0], [2, 3], [2, 2], [1, 0]], np.int8)
POSES = {"right": [0.5, 0.0, 0.2, 3.1, 0.0, 0.0], "left": [0.4, 0.1, 0.2, 0.0, 3.1, 0.0]}


@pytest.fixture
def played():
    facts = {"task": "handover", "T_base_reset": POSES["right"], "T_base_reset_of_arms": POSES}
    return replace(valid(3, 5), arm_sources=WHO, schema_version=ARMS_VERSION, metadata=facts)


def with_arms(played):
    return [replace(step, arm_sources=row) for step, row in zip(steps(played), WHO, strict=True)]


def test_it_comes_back_from_a_file_with_the_names_of_the_arms_in_their_order(played):
    back = decode(encode(played))
    np.testing.assert_array_equal(back.arm_sources, WHO)
    assert back.arm_sources.dtype == np.int8
    assert_same(back, played)
    assert back.facts.arms == ("right", "left")
    assert back.facts.T_base_reset_of_arms["left"] == tuple(POSES["left"])
    np.testing.assert_array_equal(back.step(2).arm_sources, WHO[2])
    assert list(check_episode(back)) == []


def test_episodes_of_one_arm_are_written_as_before():
    builder = EpisodeBuilder("tagged-1")
    one = valid(1, 4)
    for step in steps(one):
        builder.add(replace(step, episode_id="tagged-1"))
    made = builder.finish(one.observation(4), int(one.stamp_obs[4]))
    assert (made.schema_version, made.arm_sources) == (SCHEMA_VERSION, None)
    assert decode(encode(made)).arm_sources is None
    assert b"arm_sources" not in encode(made)
    assert EpisodeFacts({}).arms == ()


@pytest.mark.parametrize("whole", [True, False])
def test_it_survives_a_killed_recorder(played, tmp_path, whole):
    journal = JournalWriter(tmp_path / "one.journal", played.episode_id, played.metadata)
    for step in with_arms(played):
        journal.write(step)
    if whole:
        journal.finish(played)
    journal.close()
    back = read_journal(tmp_path / "one.journal").episode()
    np.testing.assert_array_equal(back.arm_sources, WHO[: len(back)])
    assert (len(back), back.schema_version, back.facts.arms) == (5 if whole else 4, ARMS_VERSION, ("right", "left"))


def test_it_is_built_of_steps_all_of_which_have_it(played, tmp_path):
    first, second, *_ = with_arms(played)
    builder = EpisodeBuilder(played.episode_id)
    for step in (first, second):
        builder.add(step)
    built = builder.finish(played.observation(5), 10**12)
    assert (built.schema_version, built.arm_sources.tolist()) == (ARMS_VERSION, WHO[:2].tolist())
    builder = EpisodeBuilder(played.episode_id)
    for step in (first, replace(second, arm_sources=None)):
        builder.add(step)
    with pytest.raises(DataError, match="1 of 2 steps are of several arms"):
        builder.finish(played.observation(5), 10**12)
    journal = JournalWriter(tmp_path / "one.journal", played.episode_id, {})
    journal.write(first)
    with pytest.raises(DataError, match="some of the steps up to step 1 only are of several arms"):
        journal.write(replace(second, arm_sources=None))
    journal.close()


def test_a_store_holds_both_and_an_export_brings_both_back(played, tmp_path):
    pytest.importorskip("pyarrow")
    one = valid(7, 3)
    with EpisodeStore.create(tmp_path / "store", {"task": "handover"}) as store:
        store.append(played)
        store.append(one)
    with EpisodeStore.open(tmp_path / "store") as store:
        export_lerobot(store, tmp_path / "lerobot", fps=10)
    back = {made.episode_id: made for made in LeRobotReader(tmp_path / "lerobot").episodes()}
    np.testing.assert_array_equal(back[played.episode_id].arm_sources, WHO)
    assert_same(back[played.episode_id], played)
    assert back[one.episode_id].arm_sources is None


def test_what_cannot_be_is_refused_or_named(played):
    with pytest.raises(DataError, match=r"arm_sources in schema version 2; 3 is the first that has them"):
        replace(played, schema_version=SCHEMA_VERSION)
    for wrong in (WHO[:4], WHO[:, :1], WHO[:, 0]):
        with pytest.raises(DataError, match=r"arm_sources has shape .*, expected \(5, number of arms, 2 or more\)"):
            replace(played, arm_sources=wrong)
    with pytest.raises(DataError, match=r"arm_sources has \[7\], which are no sources of an action"):
        replace(played, arm_sources=np.where(WHO == Source.HOLD, 7, WHO).astype(np.int8))
    unnamed = replace(played, metadata={})
    assert ("arm_sources", "is of 2 arms, and the facts name none") in list(check_episode(unnamed))
    for poses in ([1, 2], {"left": POSES["left"]}, {"left": [1.0], "right": POSES["right"]}):
        with pytest.raises(DataError, match="T_base_reset_of_arms"):
            _ = EpisodeFacts({"T_base_reset_of_arms": poses}).arms
