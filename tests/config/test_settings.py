"""Properties of every setting: whatever is declared can be written, read, refused, described and found by its name."""

import dataclasses
import json
from typing import Literal, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robot_rl.config import nodes
from robot_rl.config.components import TrainConfig
from robot_rl.config.describe import list_keys
from robot_rl.config.field_types import annotations_of, bare_type, mark_of, section_type
from robot_rl.config.labelling import LabelConfig
from robot_rl.config.load import ALIASES, config_from_dict, config_to_dict, dump_config, load_component, load_config
from robot_rl.config.randomization import RandomizationConfig
from robot_rl.config.schedule import Scheduled
from robot_rl.config.yaml_file import dump_yaml, parse_yaml
from robot_rl.errors import ConfigError

CONFIGS = [TrainConfig, LabelConfig, RandomizationConfig]
NODES = [kind for name, kind in vars(nodes).items() if name.endswith("NodeConfig")]
KEYS = [described.key for described in list_keys()]


def bounds(annotation):
    """Smallest and largest number that an annotation admits, as far as it names any."""
    low, high = -1e6, 1e6
    for entry in getattr(annotation, "__metadata__", ()):
        for bound in getattr(entry, "metadata", ()):
            low = max(low, getattr(bound, "ge", low), getattr(bound, "gt", low - 1e-3) + 1e-3)
            high = min(high, getattr(bound, "le", high), getattr(bound, "lt", high + 1e-3) - 1e-3)
    return low, high


def pattern_of(annotation):
    """The pattern of a text, or None."""
    rules = (rule for entry in getattr(annotation, "__metadata__", ()) for rule in getattr(entry, "metadata", ()))
    return next((rule.pattern for rule in rules if getattr(rule, "pattern", None)), None)


def values_of(name, annotation):
    """A strategy of valid values of one setting, plain as in YAML."""
    bare, (low, high) = bare_type(annotation), bounds(annotation)
    if scheduled := mark_of(annotation, Scheduled):
        low = max(-1e6, *(bound + 1e-3 for bound in (scheduled.gt, scheduled.ge) if bound is not None), -1e6)
        numbers = st.integers(1, 2**31) if scheduled.whole else st.floats(low, scheduled.le or 1e6)
        points = st.dictionaries(st.integers(1, 10**6), numbers, max_size=3)
        return numbers | st.builds(lambda first, rest: {0: first, **rest}, numbers, points)
    if name == "image_size":
        return st.sampled_from([32, 128, 224])
    if name == "cameras":
        return st.lists(st.sampled_from(["front", "wrist", "top"]), min_size=1, max_size=3)
    if name == "arm":  # a path, which is made absolute
        return st.none() | st.sampled_from(["/arms/ur5e.xml", "/arm.yaml"])
    if name == "return_range":
        return st.none() | st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2)
    if name == "order":  # of stages, each with a name and a judge
        return st.sampled_from([[], ["lifted=task"], ["lifted=classifier:one.pt", "aligned=person"]])
    if bare is bool:
        return st.booleans()
    if bare is int:
        return st.integers(int(max(low, -(2**31))), int(min(high, 2**31)))
    if bare is float:
        return st.floats(low, high, allow_nan=False)
    if bare is str:
        return st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=20)
    if get_origin(bare) is Literal:
        return st.sampled_from(get_args(bare))
    if get_origin(bare) is tuple:
        return st.lists(values_of("", get_args(bare)[0]), min_size=name == "history", max_size=4)
    (item,) = (one for one in get_args(bare) if one is not type(None))
    if pattern := pattern_of(annotation):
        return st.none() | st.from_regex(pattern, fullmatch=True).filter(lambda text: len(text) <= 20)
    return st.none() | values_of("", item)


def trees_of(config_type):
    """A strategy of nested settings of which any may be left out."""
    fields = {
        name: trees_of(section) if (section := section_type(annotation)) else values_of(name, annotation)
        for name, annotation in annotations_of(config_type).items()
    }
    return st.fixed_dictionaries({}, optional=fields)


@settings(max_examples=40, deadline=None)
@given(tree=trees_of(TrainConfig))
def test_any_valid_settings_are_kept_and_come_back_from_their_file(tree, tmp_path_factory):
    config = config_from_dict(tree)

    def check(given, made):
        for key, value in given.items():
            check(value, made[key]) if isinstance(value, dict) else None
            assert isinstance(value, dict) or made[key] == value

    check(tree, config_to_dict(config))
    assert config_from_dict(config_to_dict(config)) == config
    path = tmp_path_factory.mktemp("config") / "config.yaml"
    dump_config(config, path)
    assert load_config(path) == config


@settings(max_examples=25, deadline=None)
@given(tree=trees_of(TrainConfig))
def test_settings_count_the_same_as_a_file_and_as_overrides(tree, tmp_path_factory):
    def flat(part, prefix=""):
        for key, value in part.items():
            section = isinstance(value, dict) and 0 not in value
            yield from flat(value, f"{prefix}{key}.") if section else [(prefix + key, value)]

    path = tmp_path_factory.mktemp("config") / "some.yaml"
    path.write_text(dump_yaml(tree), encoding="utf-8")
    overrides = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in flat(tree)]
    assert load_config(path) == load_config(None, [one.removesuffix("...\n") for one in overrides])


@settings(max_examples=40, deadline=None)
@given(key=st.sampled_from(KEYS), position=st.integers(0, 30), letter=st.sampled_from("qxz"))
def test_a_mistyped_key_is_refused_with_the_right_one(key, position, letter):
    section, _, name = key.rpartition(".")
    at = 1 + position % len(name)
    wrong = f"{section}.{name[:at]}{letter}{name[at:]}".lstrip(".")
    with pytest.raises(ConfigError, match="unknown key") as error:
        load_config(None, [f"{wrong}=1"])
    assert str(error.value).startswith(f"{wrong} (command line)")
    if len(name) > 3:
        assert f"did you mean '{key}'" in str(error.value)


@pytest.mark.parametrize("key", KEYS)
def test_a_key_without_its_section_is_found(key):
    name = key.rpartition(".")[2]
    twins = [one for one in KEYS if one.rpartition(".")[2] == name]
    if name in annotations_of(TrainConfig) or name in ALIASES:
        return  # at the top level it means something else
    with pytest.raises(ConfigError) as error:
        load_config(None, [f"{name}=1"])
    assert any(f"did you mean '{twin}'" in str(error.value) for twin in twins)


@pytest.mark.parametrize("key", KEYS)
def test_a_value_of_no_valid_type_is_refused_with_what_is_valid(key):
    described = next(one for one in list_keys() if one.key == key)
    with pytest.raises(ConfigError) as error:
        load_config(None, [f"{key}={{a: 1}}"])
    assert str(error.value).startswith(f"{key}")
    assert described.type.split()[0] in str(error.value)


@pytest.mark.parametrize("config_type", [*CONFIGS, *NODES], ids=lambda kind: kind.__name__)
def test_every_setting_is_described_and_its_default_is_valid(config_type):
    described = list_keys(config_type)
    assert len({one.key for one in described}) == len(described) > 0
    for one in described:
        assert one.doc.endswith((".", "]")), one.key
        assert one.type
        assert one.key in one.text()
        assert one.row()["help"] == one.doc


@pytest.mark.parametrize("config_type", [*CONFIGS, *NODES], ids=lambda kind: kind.__name__)
def test_every_section_is_frozen_and_refuses_unknown_names(config_type):
    config = config_type()
    first = dataclasses.fields(config_type)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(config, first, None)
    with pytest.raises(ValueError, match="Unexpected keyword argument"):
        config_type(no_such_setting=1)


def test_another_configuration_is_loaded_by_the_same_rules(tmp_path):
    path = tmp_path / "labeller.yaml"
    path.write_text("endpoint: {model: judge}\n")
    loaded = load_component(LabelConfig, path, ["frames.count=3"])
    assert (loaded.endpoint.model, loaded.frames.count) == ("judge", 3)
    with pytest.raises(ConfigError, match=r"frames\.cuont.*did you mean 'frames\.count'"):
        load_component(LabelConfig, path, ["frames.cuont=3"])


@pytest.mark.parametrize("text", ["0E0", "1e5", "3.e-1", "null", "yes", "1_0e3", "2001-01-01", "~"])
def test_a_text_that_looks_like_something_else_stays_a_text(text):
    assert parse_yaml(dump_yaml({"task": text}), "some") == {"task": text}
