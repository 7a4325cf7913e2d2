import dataclasses
from pathlib import Path

import pytest

from robot_rl.config.components import SACConfig, TrainConfig
from robot_rl.config.describe import list_keys
from robot_rl.config.load import config_from_dict, config_to_dict, dump_config, load_config
from robot_rl.errors import ConfigError


def write(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text)
    return path


def test_without_file_and_overrides_it_is_the_defaults():
    assert load_config() == TrainConfig()


def test_overrides_win_over_the_file_and_leave_the_rest(tmp_path):
    path = write(tmp_path, "seed: 3\nsac:\n  n_step: 1\n  discount: 0.9\n")
    config = load_config(path, ["sac.discount=0.95", "task=reach", "task=cube_lift"])
    assert config == TrainConfig(seed=3, task="cube_lift", sac=SACConfig(n_step=1, discount=0.95))


def test_an_override_may_hold_a_section(tmp_path):
    path = write(tmp_path, "sac: {discount: 0.9}")
    assert load_config(path, ["sac={n_step: 5}"]).sac == SACConfig(n_step=5, discount=0.9)


@pytest.mark.parametrize("text", ["3e-4", "3.0e-4", "3E-4", "0.0003", ".3e-3", "+3e-4"])
def test_every_way_to_write_a_small_number_is_a_number(text):
    assert load_config(None, [f"sac.learning_rate={text}"]).sac.learning_rate == pytest.approx(3e-4)


def test_a_whole_number_serves_as_a_float():
    rate = load_config(None, ["sac.learning_rate=1"]).sac.learning_rate
    assert rate == 1.0
    assert isinstance(rate, float)


def test_lists_become_tuples():
    assert load_config(None, ["sac.hidden_sizes=[64, 32]"]).sac.hidden_sizes == (64, 32)


def test_empty_file_and_empty_section_are_the_defaults(tmp_path):
    assert load_config(write(tmp_path, "# nothing\n")) == TrainConfig()
    assert load_config(write(tmp_path, "sac:\n  # discount: 0.9\n")) == TrainConfig()


def test_written_and_read_back_it_is_equal(tmp_path):
    config = TrainConfig(seed=7, sac=SACConfig(hidden_sizes=(8, 8, 8), learning_rate=1e-5))
    dump_config(config, tmp_path / "config.yaml")
    assert load_config(tmp_path / "config.yaml") == config
    assert config_from_dict(config_to_dict(config)) == config


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("sac.discunt=1", ["sac.discunt", "did you mean 'sac.discount'?", "hidden_sizes", "command line"]),
        ("discount=0.9", ["discount", "did you mean 'sac.discount'?", "env_steps"]),
        ("sca.discount=0.9", ["sca", "did you mean 'sac'?"]),
        ("sac.discount=1.5", ["sac.discount", "1.5", "less than 1", "float > 0 and < 1"]),
        ("sac.discount=high", ["sac.discount", "'high'", "valid: float > 0 and < 1"]),
        ("sac.discount=.nan", ["sac.discount", "nan is not a finite number"]),
        ("sac.target_entropy_per_action=-.inf", ["sac.target_entropy_per_action", "-inf"]),
        ("sac.hidden_sizes=[64, 0]", ["sac.hidden_sizes[1]", "0 ", "list of int >= 1"]),
        ("sac.hidden_sizes=64", ["sac.hidden_sizes", "64 ", "a list"]),
        ("sac.clamp_targets=1", ["sac.clamp_targets", "valid: bool"]),
        ("seed=true", ["seed", "True", "int >= 0"]),
        ("seed=-1", ["seed", "-1", "int >= 0"]),
        ("env_steps=1e4", ["env_steps", "10000.0", "integer"]),
        ("device=gpu", ["device", "'gpu'", "'cpu' or 'cuda'"]),
        ("processes=3", ["processes", "3", "1 or 2"]),
        ("processes=1.0", ["processes", "1.0", "1 or 2"]),
        ("processes=true", ["processes", "True", "1 or 2"]),
        ("task=", ["task", "None", "str"]),
        ("sac=5", ["sac", "5 is not a section", "n_step"]),
        ("sac", ["'sac'", "expected key=value"]),
        ("sac..discount=1", ["expected key=value"]),
        ("task=[1", ["task=[1", "not YAML"]),
    ],
)
def test_a_wrong_override_is_explained(override, expected):
    with pytest.raises(ConfigError) as error:
        load_config(None, [override])
    for part in expected:
        assert part in str(error.value)


def test_all_problems_are_told_at_once_with_where_they_come_from(tmp_path):
    path = write(tmp_path, "seed: x\nsac: {n_steps: 2}\n")
    with pytest.raises(ConfigError) as error:
        load_config(path, ["replay.batch_size=0"])
    lines = str(error.value).splitlines()
    assert lines[0] == "invalid configuration:"
    assert [line.partition(":")[0] for line in lines[1:]] == [
        f"sac.n_steps ({path})",
        "replay.batch_size (command line)",
        f"seed ({path})",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("seed: 1\nseed: 2\n", "given twice: seed"),
        ("- seed\n", "list"),
        ("seed: [", "not YAML"),
        ("!!python/object/apply:os.getcwd []", "not YAML"),
        ("? [a]\n: 1\n", "not YAML"),
    ],
)
def test_a_wrong_file_is_explained(tmp_path, text, expected):
    path = write(tmp_path, text)
    with pytest.raises(ConfigError, match="configuration file") as error:
        load_config(path)
    assert expected in str(error.value)
    assert str(path) in str(error.value)


def test_a_file_that_cannot_be_read_is_explained(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        load_config(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot read"):
        load_config(tmp_path / "binary.yaml")


def test_list_keys_describes_every_key():
    keys = {described.key: described for described in list_keys()}

    def leaves(section, prefix=""):
        for name, value in section.items():
            section = isinstance(value, dict) and all(isinstance(key, str) for key in value)  # and no schedule
            yield from leaves(value, f"{prefix}{name}.") if section else [prefix + name]

    assert list(keys) == list(leaves(config_to_dict(TrainConfig())))
    assert keys["sac.discount"].type == "float > 0 and < 1 or null"
    assert keys["sac.hidden_sizes"].default == (256, 256)
    assert keys["device"].type == "'cpu' or 'cuda'"
    assert keys["seed"].doc == "Everything random follows from it."
    assert [key for key, described in keys.items() if not described.doc] == []


def test_configurations_cannot_be_changed_by_accident():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TrainConfig().seed = 1


def test_the_file_of_an_arm_is_found_from_elsewhere_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written = load_config(None, ["world.arm=arm.xml"])
    assert written.world.arm == str(tmp_path / "arm.xml")
    monkeypatch.chdir("/")
    assert config_from_dict(config_to_dict(written)).world.arm == written.world.arm


def test_a_wrong_schedule_in_place_of_a_number_of_the_file_is_one_of_the_command_line(tmp_path):
    with pytest.raises(ConfigError, match=r"sac\.learning_rate \(command line\): .* should have a value at step 0"):
        load_config(write(tmp_path, "sac: {learning_rate: 1.0e-3}"), ["sac.learning_rate={10: 1.0e-3}"])
