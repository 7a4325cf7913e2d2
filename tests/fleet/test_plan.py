import pytest

from robot_rl.config.load import config_to_dict, load_config
from robot_rl.errors import ConfigError, UnknownNameError
from robot_rl.fleet.plan import differences, read_plan, simulated_plan

PLAN = """
train:
  task: reach
  env_steps: 100
  demonstrations: 5
  warmup_steps: 10
  update_to_data: {0: 2, 50: 4}
robots:
  arm1: {share: 2}
  arm2:
    env_steps: 7
    set: {randomization: {dynamics: {mass: 0.2}}, world: {friction: 0.8}}
  arm3:
"""


@pytest.fixture
def path(tmp_path):
    (tmp_path / "fleet.yaml").write_text(PLAN)
    return tmp_path / "fleet.yaml"


def test_the_parts_of_the_robots_add_up_to_the_whole():
    plan = simulated_plan(load_config(None, ["task=reach", "env_steps=100", "demonstrations=6"]), 4)
    each = [plan.config_of(name) for name in plan.robots]
    assert [config.env_steps for config in each] == [25] * 4
    assert [config.demonstrations for config in each] == [2, 2, 1, 1]
    assert sum(config.warmup_steps for config in each) == plan.train.warmup_steps
    assert len({config.seed for config in each}) == 4
    assert plan.whole() == plan.train


def test_a_plan_is_read_and_written(path, tmp_path):
    plan = read_plan(path, ["seed=3"])
    assert plan.shares == {"arm1": 2.0, "arm2": 1.0, "arm3": 1.0}
    assert [plan.config_of(name).env_steps for name in plan.robots] == [34, 7, 33]
    assert plan.whole().env_steps == 74
    assert plan.train.update_to_data == {0: 2, 50: 4}
    assert plan.config_of("arm2").world.friction == 0.8
    assert plan.config_of("arm1").world.friction != 0.8
    plan.write(tmp_path / "again.yaml")
    again = read_plan(tmp_path / "again.yaml")
    assert again == plan
    assert config_to_dict(again.config_of("arm2")) == config_to_dict(plan.config_of("arm2"))


def test_only_what_makes_policy_and_reward_has_to_be_alike(path):
    plan = read_plan(path)
    assert differences(plan.whole(), plan.config_of("arm2")) == []
    other = load_config(None, ["task=reach", "sac.discount=0.9", "replay.history=[0]"])
    assert differences(plan.train, other) == ["replay.history", "sac.discount"]


def test_a_fleet_that_sees_names_its_cameras(path):
    with pytest.raises(
        ConfigError, match=r"fleet.yaml: observations=pixels without encoder.cameras: .*name their cameras"
    ):
        read_plan(path, ["observations=pixels"])
    named = read_plan(path, ["observations=pixels", "encoder.cameras=[wrist]"]).train
    front = load_config(None, ["task=reach", "observations=pixels", "encoder.cameras=[front]", "warmup_steps=10"])
    assert differences(named, front) == ["encoder.cameras"]


def test_a_robot_that_names_no_cameras_agrees_with_one_that_does():
    old, new = load_config(None, ["encoder.cameras=[front, wrist]"]), load_config()
    assert differences(old, new) == differences(new, old) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- arm1", "expected `robots`, a mapping of names"),
        ("robots: {}", "expected `robots`, a mapping of names"),
        ("robots: {arm1: }\ntrains: {}", "unknown keys trains; valid: robots, train"),
        ("robots: {arm1: 3}", "robot arm1: expected a mapping of settings, got 3"),
        ("robots: {arm1: {shares: 2}}", "robot arm1: .*shares"),
        ("robots: {arm1: {share: 0}}", "robot arm1: .*share"),
        (
            "robots: {arm1: {console: 10.0.0.11:8480}}",
            "console of robot arm1: .* no address of a console; expected what",
        ),
        ("robots: {learner: }", "a robot cannot have the name of the learner"),
        ("robots: {a b: }", "'a b' is no name of a robot"),
        ("robots: {arm1: {set: {sac: {discount: 0.9}}}}", "robot arm1: under `set` are valid simulation, "),
        ("robots: {arm1: {set: {world: {frictions: 1}}}}", "frictions"),
        ("robots: {arm1: }\ntrain: {tusk: reach}", "tusk"),
        ("robots: {arm1: }\ntrain: {base: {kind: clone}}", "base.kind=clone without base.path: each robot would train"),
        (
            "robots: {arm1: }\ntrain: {base: {kind: chunk, path: base.pt, correction: noise}}",
            "base.correction=noise is not for fleets yet; set base.correction=residual",
        ),
        ("robots: {arm1: }\ntrain: {base: {kind: scripted}}", "base.kind=scripted: .* from a file: chunk or clone"),
        ("robots: {a: , b: , c: }\ntrain: {env_steps: 2}", "env_steps=2 for 3 robots"),
        (
            "robots: {arm1: , arm2: {set: {intervention: {call: {rule: doubt}}}}}",
            "robot arm2: intervention.call.rule=doubt asks the critics while an episode runs.*set it to time or none",
        ),
    ],
)
def test_a_wrong_plan_is_refused_in_one_line(tmp_path, text, message):
    path = tmp_path / "fleet.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as error:
        read_plan(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_robot_is_named(path):
    with pytest.raises(UnknownNameError, match="unknown robot 'arm4'; valid: arm1, arm2, arm3"):
        read_plan(path).config_of("arm4")
