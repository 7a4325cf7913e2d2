from dataclasses import replace

import pytest
from algorithm_contract import CONFIG, AlgorithmContract, setup
from documents import ADD, Example

from robot_rl.config.components import AlgorithmConfig, ReplayConfig, TrainConfig
from robot_rl.env.registry import names
from robot_rl.errors import ConfigError, PluginError, UnknownNameError
from robot_rl.learn.algorithms.base import ALGORITHM_GROUP, make_algorithm


def by_name(name):
    """Make the algorithm that is registered under a name."""

    def make(given):
        algorithm = replace(given.config.algorithm, name=name)
        return make_algorithm(replace(given, config=replace(given.config, algorithm=algorithm)))

    return make


@pytest.mark.parametrize("name", ["sac", "iql", "bc"])
class TestOurs(AlgorithmContract):
    @pytest.fixture
    def make(self, name):
        return by_name(name)


class TestOfThePage(AlgorithmContract):
    @pytest.fixture
    def make(self, tmp_path, monkeypatch):
        Example.read(ADD / "algorithm.md").load("td3", tmp_path, monkeypatch)
        return by_name("td3")


def test_ours_are_registered():
    assert {"sac", "iql", "bc"} <= set(names(ALGORITHM_GROUP))


def test_an_unknown_algorithm_is_named_with_those_that_exist():
    with pytest.raises(UnknownNameError, match=r"algorithm.*'?td5'?.*sac"):
        by_name("td5")(setup())


def test_what_is_no_algorithm_is_refused(tmp_path, monkeypatch):
    page = ADD / "algorithm.md"
    Example(page, {"pyproject.toml": '[project.entry-points."robot_rl.algorithms"]\nbad = "builtins:repr"\n'}).install(
        tmp_path
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PluginError, match="made a str"):
        by_name("bad")(setup())


@pytest.mark.parametrize("option", ["noise", "noise=", "noise=loud"])
def test_options_are_numbers(option):
    config = replace(CONFIG, algorithm=AlgorithmConfig(options=(option,)))
    with pytest.raises(ConfigError, match="expected noise=<number>"):
        setup(config=config).options(noise=0.1)


def test_options_change_the_defaults():
    config = replace(CONFIG, algorithm=AlgorithmConfig(options=("noise=0.5",)))
    assert setup(config=config).options(noise=0.1, rate=2.0) == {"noise": 0.5, "rate": 2.0}


def test_cloning_of_its_own_actions_is_refused():
    imitating = TrainConfig(replay=ReplayConfig(demo_fraction=0.5))
    with pytest.raises(ConfigError, match=r"replay\.demo_fraction=1"):
        by_name("bc")(setup(config=imitating))
    by_name("bc")(setup(config=replace(imitating, env_steps=0)))
