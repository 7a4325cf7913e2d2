"""The defaults for pixels hold however a configuration is made, and what is given is never replaced."""

import dataclasses
import pickle

import pytest

from robot_rl.config.components import EngineConfig, ReplayConfig, TrainConfig
from robot_rl.config.describe import list_keys
from robot_rl.config.load import config_from_dict, config_to_dict, dump_config, load_config

EXPECTED = {
    "env_steps": 8_000,
    "update_to_data": 4,
    "processes": 2,
    "engine.precision": "auto",
    "replay.capacity": 30_000,
    "replay.batch_size": 256,
}
"""As they were before they stood at the fields."""


def value(config, key):
    for name in key.split("."):
        config = getattr(config, name)
    return config


def write(folder, text):
    path = folder / "config.yaml"
    path.write_text(text)
    return path


MAKERS = {
    "object": lambda folder: TrainConfig(observations="pixels"),
    "by position": lambda folder: TrainConfig("peg_insert", "pixels"),
    "override": lambda folder: load_config(None, ["observations=pixels"]),
    "file": lambda folder: load_config(write(folder, "observations: pixels\nreplay:\n  # nothing\n")),
    "dict": lambda folder: config_from_dict({"observations": "pixels"}),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_they_hold_however_a_configuration_is_made(make, tmp_path):
    config, state = make(tmp_path), TrainConfig()
    different = {one.key for one in list_keys() if value(config, one.key) != value(state, one.key)}
    assert different == {*EXPECTED, "observations"}
    assert {key: value(config, key) for key in EXPECTED} == EXPECTED


def test_the_list_of_settings_shows_them():
    shown = {one.key: note for one in list_keys() for note in one.notes if note.startswith("with pixels")}
    assert shown == {key: f"with pixels: {default}" for key, default in EXPECTED.items()}


@pytest.mark.parametrize("key", EXPECTED)
def test_what_is_given_counts_even_if_it_is_the_default_of_state(key):
    default = value(TrainConfig(), key)
    config = load_config(None, ["observations=pixels", f"{key}={default}"])
    assert value(config, key) == default
    assert [other for other in EXPECTED if value(config, other) != EXPECTED[other]] == [key]


def test_a_section_that_is_given_is_completed():
    config = TrainConfig(observations="pixels", replay=ReplayConfig(batch_size=64), engine=EngineConfig(compile=True))
    assert config.replay == ReplayConfig(batch_size=64, capacity=30_000)
    assert config.engine == EngineConfig(compile=True, precision="auto")
    given = ReplayConfig(capacity=100_000)
    assert TrainConfig(observations="pixels", replay=given).replay == ReplayConfig(capacity=100_000, batch_size=256)
    assert given == ReplayConfig(), "the object that was given stays as it was"


def test_a_copy_keeps_what_it_is_a_copy_of(tmp_path):
    state = TrainConfig(env_steps=50)
    seen = dataclasses.replace(state, observations="pixels")
    assert (seen.env_steps, seen.replay.capacity) == (50, 30_000), "the steps were given, the capacity was not"
    written = tmp_path / "config.yaml"
    config = TrainConfig(observations="pixels", replay=ReplayConfig(capacity=100_000))
    dump_config(config, written)
    assert load_config(written) == config == config_from_dict(config_to_dict(config))
    assert pickle.loads(pickle.dumps(config)) == config


def test_state_keeps_its_defaults():
    assert TrainConfig(observations="state") == TrainConfig() == load_config(None, ["observations=state"])
    assert TrainConfig().processes == 1


def test_too_many_arguments_are_still_an_error():
    with pytest.raises(ValueError, match="Unexpected positional argument"):
        TrainConfig(*["pixels"] * 40)
