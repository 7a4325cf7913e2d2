"""A labeller read for a training: it is judged by recorded outcomes, or by those of a person."""

import dataclasses

import pytest
from scenes import stamped_store

from robot_rl.config.labelling import LabelConfig
from robot_rl.config.load import config_to_dict
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.labels.labeller import read_labeller
from robot_rl.reward.labels.units import Units


@pytest.fixture
def labelled(tmp_path):
    """Six episodes, of which even ones are recorded as successes, and labels that say so of all six."""
    path = stamped_store(tmp_path / "s")
    config = dataclasses.replace(LabelConfig(), task="push it")
    identity = {"model": "m", "task": "push it", "camera": "front"}
    with EpisodeStore.open(path) as store, LabelStore(path, create=True) as labels:
        labels.begin("success", "success", identity, config_to_dict(config))
        for unit in Units(store, config, "push it"):
            key = unit.query().key(identity)
            labels.add("success", unit.subject, key, Answer(Status.OK, (0.9,)), identity)
    return path


def test_outcomes_by_a_person_count_instead_of_those_recorded(labelled, tmp_path):
    def precision(outcomes=None):
        gate = read_labeller(labelled, "success", allowed=True, outcomes=outcomes).gate
        return next(reason for reason in gate.reasons if "precision:" in reason)

    assert "unfit precision: 0.500" in precision()
    looked_up = tmp_path / "looked_up.csv"
    looked_up.write_text("episode_id,success\n" + "".join(f"episode-{n},yes\n" for n in range(6)))
    assert "not shown precision: 1.000" in precision(looked_up)
    looked_up.write_text("episode_id,success\nepisode-77,yes\n")
    with pytest.raises(DataError, match="no episode 'episode-77'"):
        precision(looked_up)
