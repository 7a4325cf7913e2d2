"""Settings that are a number or a schedule over env steps."""

import json

import pytest

from robot_rl.config.components import SACConfig, TrainConfig
from robot_rl.config.load import config_from_dict, config_to_dict, dump_config, load_config
from robot_rl.config.schedule import held_at, value_at
from robot_rl.errors import ConfigError


def test_real_numbers_are_linear_between_the_points_and_whole_ones_hold():
    rate = load_config(None, ["sac.learning_rate={20000: 1e-4, 0: 3e-4}"]).sac.learning_rate
    assert list(rate) == [0, 20000], "in their order, however they were given"
    assert [value_at(rate, step) for step in (0, 10_000, 20_000, 10**9)] == pytest.approx([3e-4, 2e-4, 1e-4, 1e-4])
    ratio = load_config(None, ["update_to_data={0: 2, 100: 5}"]).update_to_data
    assert [held_at(ratio, step) for step in (0, 99, 100, 10**9)] == [2, 2, 5, 5]
    assert (value_at(0.5, 7), held_at(3, 7)) == (0.5, 3)
    jump = {0: 3.0, 9: 3.0, 10: 1.0}
    assert [value_at(jump, step) for step in (0, 9, 10)] == [3.0, 3.0, 1.0]


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("sac.learning_rate={10: 1e-4}", "should have a value at step 0"),
        ("sac.learning_rate={0: 1e-4, 10: 0}", "should be greater than 0 at step 10"),
        ("sac.learning_rate={0: 1e-4, 10: .inf}", "should be a number at step 10"),
        ("sac.learning_rate={0: 1e-4, soon: 1e-5}", "env steps as keys.*not 'soon'"),
        ("sac.learning_rate={0: 1e-4, -3: 1e-5}", "env steps as keys.*not -3"),
        ("sac.learning_rate={}", "should have a value at step 0"),
        ("sac.learning_rate=[1, 2]", "should be a number, or a schedule of them"),
        ("sac.learning_rate=0", "should be greater than 0"),
        ("sac.learning_rate=true", "should be a number"),
        ("sac.learning_rate=null", "should be a number"),
        ("update_to_data={0: 4, 5: 1.5}", "should be a whole number at step 5"),
        ("update_to_data=0", "should be greater than or equal to 1"),
        ("sac.temperature=-1", "should be greater than 0"),
    ],
)
def test_what_is_no_schedule_is_one_line(override, expected):
    with pytest.raises(ConfigError, match=expected) as caught:
        load_config(None, [override])
    assert "\n" not in str(caught.value)
    assert override.partition("=")[0] in str(caught.value)
    assert "Value error" not in str(caught.value)


def test_a_schedule_replaces_another_and_survives_files_and_messages(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("sac:\n  learning_rate: {0: 3e-4, 100: 1e-4}\n  discount: 0.9\n")
    config = load_config(file, ["sac.learning_rate={0: 1e-3, 50: 1e-5}", "update_to_data={0: 1, 7: 2}"])
    assert config.sac.learning_rate == {0: 1e-3, 50: 1e-5}
    assert config.sac.discount == 0.9
    dump_config(config, file)
    assert load_config(file) == config
    assert config_from_dict(json.loads(json.dumps(config_to_dict(config)))) == config
    assert TrainConfig(sac=SACConfig(temperature=1)).sac.temperature == 1.0
