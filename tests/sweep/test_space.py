import pytest

from robot_rl.errors import ConfigError
from robot_rl.sweep.space import Range, ValueList, read_space

SPACE = """
space:
  sac.learning_rate: {low: 1e-4, high: 1e-3, log: true}
  update_to_data: [2, 8]
  sac.n_step: {low: 1, high: 5}
  sac.hidden_sizes: [[32, 32], [64, 64, 64]]
settings:
  demonstrations: 4
  sac.target_entropy: null
"""


def test_a_space_gives_configurations(tmp_path):
    path = tmp_path / "space.yaml"
    path.write_text(SPACE.replace("  sac.target_entropy: null\n", ""))
    space = read_space(path, "reach")
    assert space.axes["sac.learning_rate"] == Range(1e-4, 1e-3, log=True)
    assert space.axes["sac.n_step"].whole and not space.axes["sac.learning_rate"].whole
    assert space.axes["sac.hidden_sizes"] == ValueList(("[32, 32]", "[64, 64, 64]"))
    chosen = {
        "sac.learning_rate": 5e-4,
        "update_to_data": "8",
        "sac.n_step": 2,
        "sac.hidden_sizes": "[64, 64, 64]",
    }
    config = space.config("reach", 104, 500, chosen)
    assert (config.task, config.seed, config.env_steps, config.demonstrations) == ("reach", 104, 500, 4)
    assert (config.sac.learning_rate, config.update_to_data, config.sac.n_step) == (5e-4, 8, 2)
    assert config.sac.hidden_sizes == (64, 64, 64)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "expected `space`, a mapping of settings"),
        ("space: {}", "expected `space`, a mapping of settings"),
        ("spaces: {}", "expected `space`"),
        ("space: {update_to_data: [1, 2]}\nsetting: {}", "unknown keys setting; valid: space, settings"),
        ("space: {update_to_data: [1, 2]}\nsettings: [a]", "settings must be a mapping"),
        ("space: {seed: [1, 2]}", "seed cannot be set here: the sweep gives task, seeds and steps"),
        ("space: {update_to_data: 4}", "update_to_data: expected a list of values, or low and high"),
        ("space: {update_to_data: [4]}", "update_to_data: a list needs at least two values"),
        (
            "space: {update_to_data: [4, 4]}",
            "update_to_data: a list needs at least two values to choose from, each once",
        ),
        ("space: {update_to_data: [1, 2]}\nsettings: {update_to_data: 3}", "update_to_data is under `space` and under"),
        (
            "space: {sac.discount: [0.9, 0.99]}\nsettings: {sac: {discount: 0.9}}",
            "sac.discount is under `space` and under",
        ),
        ("space: {sac.learning_rate: {low: 1, high: 1}}", "low must be less than high, got 1 and 1"),
        ("space: {sac.learning_rate: {low: 0, high: 1, log: true}}", "needs low above 0, got 0"),
        ("space: {sac.learning_rate: {low: a, high: 1}}", "must be numbers"),
        ("space: {sac.learning_rate: {low: 0.1, high: 1, steps: 3}}", "expected a list of values, or low and high"),
        ("space: {sac.learning_rate: {low: 0.1, high: 1, log: true, step: 0.1}}", "goes without log"),
        ("space: {sac.discount: {low: 0.25, high: 0.75, step: 5}}", "a step above the whole range leaves one value"),
        ("space: {sac.learning_rat: {low: 0.1, high: 1}}", "sac.learning_rat.*unknown key"),
        ("space: {update_to_data: {low: 0, high: 4}}", "update_to_data"),
        ("space: {algorithm.name: [sac, bc]}\nsettings: {nothing: 1}", "nothing"),
    ],
)
def test_a_wrong_space_is_refused_in_one_line(tmp_path, text, message):
    path = tmp_path / "space.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as error:
        read_space(path, "reach")
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
