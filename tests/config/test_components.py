"""Bounds, units and contradictions of the configurations, each checked at its edges."""

import dataclasses
import json
import math
from typing import Literal, get_args, get_origin

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from robot_rl.config import nodes
from robot_rl.config.command_limits import CommandLimits
from robot_rl.config.components import AlgorithmConfig, BaseConfig, IQLConfig, ReplayConfig, TrainConfig
from robot_rl.config.consistency import check_consistent
from robot_rl.config.describe import key_names, list_keys
from robot_rl.config.environment import EnvironmentConfig
from robot_rl.config.field_types import annotations_of, bare_type
from robot_rl.config.labelling import LabelConfig
from robot_rl.config.load import config_to_dict, load_component
from robot_rl.config.randomization import DynamicsConfig, LooksConfig, RandomizationConfig
from robot_rl.errors import ConfigError

NODES = [kind for name, kind in vars(nodes).items() if name.endswith("NodeConfig")]
FLAT = [CommandLimits, LooksConfig, DynamicsConfig, *NODES]
ALL = [TrainConfig, LabelConfig, RandomizationConfig, CommandLimits, *NODES]
NUMBERS = [(kind, one) for kind in FLAT for one in list_keys(kind) if one.type.startswith(("float", "int"))]
CHOICES = [(kind, name) for kind in NODES for name, one in annotations_of(kind).items() if get_origin(one) is Literal]


def identify(case):
    return case.__name__ if isinstance(case, type) else getattr(case, "key", str(case))


def bounds_of(described):
    """Return the limits of a number as {sign: limit}, from its description."""
    parts = described.type.partition(" ")[2].split(" and ")
    return {sign: float(limit) for sign, limit in (part.split() for part in parts if part)}


# ------------------------------------------------------------------ consistency


@settings(max_examples=40, deadline=None)
@given(
    realtime=st.booleans(),
    processes=st.sampled_from([1, 2]),
    env_steps=st.sampled_from([0, 1, 500]),
    offline_steps=st.sampled_from([0, 1, 500]),
    pixels=st.booleans(),
)
def test_each_contradiction_is_refused_and_nothing_else_is(realtime, processes, env_steps, offline_steps, pixels):
    config = TrainConfig(
        observations="pixels" if pixels else "state",
        realtime=realtime,
        processes=processes,
        env_steps=env_steps,
        offline=IQLConfig(steps=offline_steps),
    )
    if realtime and processes == 1:
        with pytest.raises(ConfigError, match=r"realtime=true with processes=1.*set processes=2"):
            check_consistent(config)
        check_consistent(dataclasses.replace(config, processes=2, env_steps=1))
    elif env_steps == 0 == offline_steps:
        with pytest.raises(ConfigError, match=r"env_steps=0 and offline\.steps=0.*set one of them"):
            check_consistent(config)
    else:
        check_consistent(config)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"algorithm": AlgorithmConfig(name="iql")}, "base.kind=chunk with algorithm.name=iql: only sac"),
        ({"offline": IQLConfig(steps=5)}, r"offline\.steps=5.*set offline\.steps=0"),
        (
            {"demonstrations": 0},
            "demonstrations=0: there is nothing to learn it from; set demonstrations, or base.path",
        ),
        ({"env_steps": 0, "offline": IQLConfig()}, "env_steps=0.*robot-rl base train"),
        ({"replay": ReplayConfig(hindsight_goals=4)}, r"replay\.hindsight_goals=4: what the base would have proposed"),
        ({"base": BaseConfig(), "warmup": "base"}, r"warmup=base with base\.kind=none"),
    ],
)
def test_a_base_needs_demonstrations_and_an_algorithm_that_corrects_it(changes, said):
    config = TrainConfig(base=BaseConfig(kind="chunk"))
    check_consistent(config)
    check_consistent(dataclasses.replace(config, warmup="base"))
    check_consistent(dataclasses.replace(config, demonstrations=0, base=BaseConfig(kind="chunk", path="base.pt")))
    with pytest.raises(ConfigError, match=said):
        check_consistent(dataclasses.replace(config, **changes))


def test_take_overs_of_nobody_are_refused_where_a_run_begins():
    lone = EnvironmentConfig(takeovers=0.25)
    config = TrainConfig(task="gym:Pendulum-v1", environment=lone)
    with pytest.raises(ConfigError, match=r"takeovers=0\.25 without environment\.expert.*; set environment\.expert"):
        check_consistent(config)
    check_consistent(config, resumed=True)
    check_consistent(dataclasses.replace(config, environment=dataclasses.replace(lone, expert="metaworld")))


def test_the_defaults_are_consistent_with_state_and_with_pixels():
    check_consistent(TrainConfig())
    check_consistent(TrainConfig(observations="pixels", realtime=True))


# ------------------------------------------------------------------ numbers


@pytest.mark.parametrize(("kind", "described"), NUMBERS, ids=identify)
def test_a_number_is_accepted_up_to_its_bound_and_refused_beyond(kind, described):
    whole = described.type.startswith("int")
    for sign, limit in bounds_of(described).items():
        up = sign.startswith(">")
        inside = limit if sign.endswith("=") else math.nextafter(limit, math.inf if up else -math.inf)
        outside = limit - (1 if up else -1) if sign.endswith("=") else limit
        cast = int if whole else float
        assert getattr(kind(**{described.key: cast(inside)}), described.key) == inside
        with pytest.raises(ValidationError) as error:
            kind(**{described.key: cast(outside)})
        assert error.value.errors()[0]["loc"] == (described.key,)
    for wrong in (math.nan, math.inf, -math.inf, "1", True, None):
        with pytest.raises(ValidationError):
            kind(**{described.key: wrong})


@pytest.mark.parametrize("kind", [CommandLimits, nodes.SafetyNodeConfig, nodes.CalibrateNodeConfig], ids=identify)
def test_a_box_holds_finite_numbers_in_order_by_default(kind):
    default = kind()
    assert len(default.box_low) == len(default.box_high) == 3
    assert all(low < high for low, high in zip(default.box_low, default.box_high, strict=True))
    for wrong in ((0.0, math.inf, 0.0), (math.nan, 0.0, 0.0), ("0", 0.0, 0.0), 0.5):
        with pytest.raises(ValidationError):
            kind(box_low=wrong)


def test_the_safety_node_has_the_limits_of_commands_with_the_same_defaults():
    limits, node = dataclasses.asdict(CommandLimits()), dataclasses.asdict(nodes.SafetyNodeConfig())
    assert {name: node[name] for name in limits} == limits
    of_arms = {"arms", "arm_limits", "task_file"}
    own = of_arms | {"required_nodes", "heartbeat_timeout", "liveliness_lease", "lockstep", "start_inactive"}
    assert set(node) - set(limits) == own | {"latch_file"}


def test_the_calibration_box_lies_inside_the_box_of_the_safety_node():
    inner, outer = nodes.CalibrateNodeConfig(), nodes.SafetyNodeConfig()
    assert all(low >= limit for low, limit in zip(inner.box_low, outer.box_low, strict=True))
    assert all(high <= limit for high, limit in zip(inner.box_high, outer.box_high, strict=True))
    assert (inner.speed, inner.turn_rate) <= (outer.max_speed, outer.max_turn_rate)


@pytest.mark.parametrize("kind", [LooksConfig, DynamicsConfig], ids=identify)
def test_every_width_of_a_draw_may_be_zero_and_a_share_stays_below_one(kind):
    off = kind(**{one.key: 0.0 for one in list_keys(kind)})
    assert set(dataclasses.asdict(off).values()) == {0.0}
    for one in list_keys(kind):
        assert bounds_of(one)[">="] == 0
        assert ("as a share" in one.doc) == (bounds_of(one).get("<") == 1), one.key


def test_dynamics_are_off_unless_they_are_set():
    assert set(dataclasses.asdict(RandomizationConfig().dynamics).values()) == {0.0}


# ------------------------------------------------------------------ choices, units, round trip


@pytest.mark.parametrize(("kind", "name"), CHOICES, ids=identify)
def test_a_node_accepts_each_choice_and_no_other(kind, name):
    choices = get_args(bare_type(annotations_of(kind)[name]))
    assert [getattr(kind(**{name: choice}), name) for choice in choices] == list(choices)
    for wrong in ("other", choices[-1].upper(), f" {choices[-1]}", None):
        with pytest.raises(ValidationError):
            kind(**{name: wrong})


@pytest.mark.parametrize("kind", [CommandLimits, *NODES], ids=identify)
def test_every_real_number_of_a_robot_has_its_unit(kind):
    without = [one.key for one in list_keys(kind) if "float" in one.type and "[" not in one.doc]
    assert without == []


@pytest.mark.parametrize("kind", ALL, ids=identify)
def test_the_names_of_settings_are_those_that_are_described(kind):
    assert key_names(kind) == [one.key for one in list_keys(kind)]


@pytest.mark.parametrize("kind", ALL, ids=identify)
def test_the_defaults_that_are_listed_are_accepted_and_change_nothing(kind):
    listed = [f"{one.key}={json.dumps(one.default)}" for one in list_keys(kind)]
    assert load_component(kind, None, listed) == kind()


@settings(max_examples=25, deadline=None)
@given(
    ends=st.floats(0, 1),
    side=st.integers(16, 4096),
    goals=st.lists(st.text("abc ,:#'\"", max_size=8), max_size=3),
    kind=st.sampled_from(["success", "progress", "preference", "score"]),
)
def test_a_labeller_comes_back_from_its_file(ends, side, goals, kind, tmp_path_factory):
    overrides = [f"pair_ends={ends!r}", f"frames.longest_side={side}", f"kind={kind}"]
    config = load_component(LabelConfig, None, [*overrides, f"score.goals={json.dumps(goals)}"])
    assert (config.pair_ends, config.frames.longest_side, config.score.goals) == (ends, side, tuple(goals))
    path = tmp_path_factory.mktemp("labeller") / "labeller.yaml"
    path.write_text(yaml.safe_dump(config_to_dict(config)), encoding="utf-8")
    assert load_component(LabelConfig, path) == config


@pytest.mark.parametrize("wrong", ["frames.longest_side=15", "frames.longest_side=4097", "pair_ends=1.01", "pairs=0"])
def test_a_labeller_out_of_bounds_is_refused_by_key(wrong):
    key = wrong.partition("=")[0]
    described = next(one for one in list_keys(LabelConfig) if one.key == key)
    with pytest.raises(ConfigError) as error:
        load_component(LabelConfig, None, [wrong])
    assert str(error.value).startswith(f"{key} (command line): ")
    assert str(error.value).endswith(f"valid: {described.type}")
