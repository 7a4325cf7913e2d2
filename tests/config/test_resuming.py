"""Which settings a resumed run may change is marked on the field, and nowhere else."""

import dataclasses

import pytest

from robot_rl.config.components import EncoderConfig, EvaluationConfig, TrainConfig
from robot_rl.config.describe import list_keys
from robot_rl.config.load import config_to_dict, load_config, load_run_config
from robot_rl.config.randomization import WorldConfig
from robot_rl.config.resuming import (
    RENAMED,
    WITHOUT,
    RenamedSetting,
    renamed_setting,
    resumable_changes,
    with_new_names,
    with_saved_cameras,
)
from robot_rl.config.reward import BudgetConfig, RewardConfig, ShapingConfig
from robot_rl.config.yaml_file import dump_yaml
from robot_rl.errors import ConfigError

FREE = {
    *("env_steps", "processes", "realtime", "reaction_time", "max_lead_steps", "checkpoint_interval", "calibrations"),
    *("keep_checkpoints", "learners"),
    *("environment.python", "intervention.enabled"),
    *("encoder.crops", "encoder.shift", "encoder.precision"),
    *(f"evaluation.{field.name}" for field in dataclasses.fields(EvaluationConfig)),
    *("reward.truth", "sac.deployed_noise"),
    *(f"reward.budget.{field.name}" for field in dataclasses.fields(BudgetConfig)),
}
CONDITIONAL = {"reward.path", "reward.shaping.head", "world.arm"}
"""Free only where the run knows the content of the file."""

OTHERS = {
    "intervention.also": "[late]",
    "encoder.image_size": "256",
    "world.arm": "arm.xml",
    "world.card": "SUCCESS",
    "environment.return_range": "[0.0, 2.0]",
    "reward.stages.order": "[lifted=task]",
}


def other_value(described):
    """A valid value that is not the default, as an override."""
    default, kind = described.default, described.type
    if described.key in OTHERS:
        return OTHERS[described.key]
    if isinstance(default, bool):
        return str(not default).lower()
    if isinstance(default, tuple):
        return "[7]" if "int" in kind or "float" in kind else "[other]"
    if " or " in kind and "'" in kind:
        return next(one for one in kind.replace("'", "").split(" or ") if one != default)
    if kind == "1 or 2":
        return "2"
    if isinstance(default, str):
        return "other"
    if isinstance(default, dict):  # a schedule
        return "0.7"
    if isinstance(default, float) or default is None:
        return str(0.97 * (default or 0.5))
    return str(default + 1)


def may_change(before, after):
    return resumable_changes(before, after) == after


def test_a_configuration_without_cameras_takes_those_of_the_run():
    run = TrainConfig(encoder=EncoderConfig(cameras=("wrist",), crops=2))
    assert with_saved_cameras(run, TrainConfig()).encoder == EncoderConfig(cameras=("wrist",))
    other = TrainConfig(encoder=EncoderConfig(cameras=("front",)))
    assert with_saved_cameras(run, other) is other


@pytest.mark.parametrize("described", list_keys(), ids=lambda one: one.key)
def test_each_setting_by_itself(described):
    before, after = TrainConfig(), load_config(None, [f"{described.key}={other_value(described)}"])
    assert before != after
    assert may_change(before, after) == (described.key in FREE)
    marked = any("resumed" in note for note in described.notes)
    assert marked == (described.key in FREE | CONDITIONAL)


def test_files_whose_content_the_run_knows_may_lie_elsewhere():
    def shaped(head):
        return TrainConfig(reward=RewardConfig(shaping=ShapingConfig(head=head)))

    assert may_change(shaped("a.pt"), shaped("b.pt"))
    assert not may_change(shaped("a.pt"), shaped(""))
    assert not may_change(shaped(""), shaped("a.pt"))

    def armed(file):
        return TrainConfig(world=WorldConfig(arm=file))

    assert may_change(armed("a.xml"), armed("b.xml"))
    assert not may_change(armed("a.xml"), armed(None))

    def rewarded(kind, path):
        return TrainConfig(reward=RewardConfig(kind=kind, path=path))

    assert may_change(rewarded("classifier", "a.pt"), rewarded("classifier", "b.pt"))
    assert not may_change(rewarded("labels", "a"), rewarded("labels", "b"))
    assert not may_change(rewarded("classifier", "a.pt"), rewarded("labels", "a.pt"))


def test_nothing_else_of_a_section_changes_with_what_may():
    before = TrainConfig()
    after = TrainConfig(encoder=EncoderConfig(crops=2, bottleneck=4), env_steps=7)
    taken = resumable_changes(before, after)
    assert (taken.encoder.crops, taken.env_steps) == (2, 7)
    assert taken.encoder.bottleneck == before.encoder.bottleneck
    assert resumable_changes(before, before) == before


# ------------------------------------------------------------------ names of earlier revisions


def test_an_old_value_is_refused_with_the_new_one_and_read_from_an_old_run(tmp_path):
    with pytest.raises(ConfigError, match=r"reward\.kind \(command line\): 'vlm' was renamed; use reward\.kind=labels"):
        load_config(None, ["reward.kind=vlm"])
    file = tmp_path / "config.yaml"
    file.write_text("seed: 3\nreward: {kind: vlm, path: some/store}\n")
    with pytest.raises(ConfigError, match="was renamed"):
        load_config(file)


@pytest.mark.parametrize("entry", RENAMED, ids=lambda one: one.key)
def test_each_new_name_exists_and_the_old_one_does_not(entry):
    keys = {one.key: one for one in list_keys()}
    assert entry.new_key in keys
    if entry.value is None:
        assert entry.key not in keys
    else:
        assert repr(entry.value) not in keys[entry.new_key].type
        assert repr(entry.new_value) in keys[entry.new_key].type


def test_names_of_today_stay_as_they_are():
    tree = config_to_dict(TrainConfig())
    assert with_new_names(tree) == tree
    assert renamed_setting("reward.kind", "labels") is None


def test_a_key_that_moved_is_put_where_it_is_now(monkeypatch):
    moved = RenamedSetting("replay.size", "replay.capacity")
    monkeypatch.setattr("robot_rl.config.resuming.RENAMED", (moved,))
    assert with_new_names({"replay": {"size": 5, "batch_size": 2}}) == {"replay": {"capacity": 5, "batch_size": 2}}
    with pytest.raises(ConfigError, match=r"replay\.size.*was renamed; use replay\.capacity"):
        load_config(None, ["replay.size=5"])


def test_a_run_from_before_a_setting_goes_on_without_what_it_does(tmp_path):
    before, some = config_to_dict(TrainConfig()), tmp_path / "some.yaml"
    for section, values in WITHOUT.items():
        for name in values:
            del before[section][name]
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(dump_yaml(before))
    new.write_text(dump_yaml(config_to_dict(TrainConfig())))
    some.write_text("seed: 3\n")
    assert load_run_config(old).sac.imitation == 0.0
    assert load_run_config(old, ["sac.imitation=0.5"]).sac.imitation == 0.5
    assert load_run_config(new) == TrainConfig()
    assert load_run_config(old, instead=some) == TrainConfig(seed=3), "a person's file leaves out what has its default"
