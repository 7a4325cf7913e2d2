"""The runs of a suite or sweep that are there already: which count as those that it asks for."""

from dataclasses import replace

import pytest

from robot_rl.bench.training_job import SUMMARY, TrainingJob
from robot_rl.config.components import EvaluationConfig, SACConfig, TrainConfig
from robot_rl.errors import ConfigError, DataError
from robot_rl.run.directory.run_directory import RunDirectory

CONFIG = TrainConfig(task="reach", env_steps=60)


class Job(TrainingJob):
    part_of = "suite"

    def __init__(self, config, path):
        self.config, self.path = config, path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sac": SACConfig(discount=0.9)}, "other settings than this suite's"),
        ({"env_steps": 40}, "was made with 60 env steps, this suite has 40"),
        ({"evaluation": EvaluationConfig(episodes=7)}, "was evaluated otherwise than this suite asks for"),
    ],
)
def test_a_run_that_was_made_otherwise_is_refused(tmp_path, changes, message):
    path = tmp_path / "run"
    Job(CONFIG, path).check()
    RunDirectory.create(path, CONFIG).close()
    (path / SUMMARY).write_text("{}")
    Job(CONFIG, path).check()
    Job(replace(CONFIG, env_steps=80), path).check()
    with pytest.raises(ConfigError, match=message):
        Job(replace(CONFIG, **changes), path).check()


def test_a_result_of_fewer_steps_is_none_and_one_that_cannot_be_read_is_named(tmp_path):
    path = tmp_path / "run"
    RunDirectory.create(path, CONFIG).close()
    (path / SUMMARY).write_text('{"env_steps": 60}')
    assert Job(CONFIG, path).finished
    longer = Job(replace(CONFIG, env_steps=80), path)
    assert not longer.finished
    assert "--resume" in longer.command()
    for spoilt in ("", "[]"):
        (path / SUMMARY).write_text(spoilt)
        with pytest.raises(DataError, match=r"summary\.json: (cannot be read|is no summary)"):
            Job(CONFIG, path).summary()
