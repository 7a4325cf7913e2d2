"""What a new run takes over from another one: policy, critics and replay, each by itself.

The new run keeps a copy of them (`initial.pt`), so that it needs the other one no more, also if it is killed before its
first checkpoint. Optimizers begin anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.config.components import TrainConfig
from robot_rl.config.load import config_to_dict
from robot_rl.data.replay.dealt_ring import side_by_side
from robot_rl.data.replay.row_moments import RowMoments
from robot_rl.env.environment import Environment, acts_otherwise
from robot_rl.errors import CheckpointError
from robot_rl.learn.checkpoint import load_checkpoint, save_checkpoint
from robot_rl.learn.learner import in_present_form
from robot_rl.learn.learner_port import LearnerPort
from robot_rl.run.lineage.source_run import SourceRun, state_shapes

PARTS = ("policy", "critics", "replay", "demonstrations")
FILE = "initial.pt"
KIND = "initial parts"
NETWORKS = (
    "sac.hidden_sizes",
    "sac.ensemble_size",
    "sac.critic_loss",
    "sac.goal_weight",
    "replay.history",
    "base.kind",
    "base.correction",
    "algorithm.chunk",
)
"""Settings by which the shapes of networks differ."""
SEEN = ("replay.history", "base.kind")
"""Settings by which what networks see, or what their output is, differs in the same shapes."""
SEEN_IN_IMAGES = tuple(f"encoder.{name}" for name in ("name", "cameras", "image_size", "projection"))
"""More of them, of a policy that sees."""
OF_OTHERS = tuple(
    f"environment.{name}" for name in ("reward", "reward_scale", "success", "success_ends", "action_repeat")
)
"""Settings by which the rewards of an environment of others differ, in replay and in recorded episodes."""
REWARDS = ("reward.kind", "reward.shaping", "reward.stages", *OF_OTHERS)
"""Settings by which the rewards in replay differ."""
_POLICY, _GRIPPER, _HEAD = "policy", "gripper.", "head."

Fit = Callable[[str], CheckpointError]


@dataclass(frozen=True)
class InitialParts:
    """Parts of another run's checkpoint.

    Attributes:
        parts: Of `PARTS`, those that are taken.
        state: State of the other run's learner, without what is not taken.
        layout: Shapes of the arrays that the other run observed; empty if not known.
        config: The other run's configuration, as plain values.
        facts: The other run; recorded as the origin of the new one.
    """

    parts: tuple[str, ...]
    state: dict[str, Any]
    layout: dict[str, tuple[int, ...]]
    config: dict[str, Any]
    facts: dict[str, Any]

    @classmethod
    def of(cls, source: SourceRun, parts: tuple[str, ...]) -> InitialParts:
        """Take parts of a run.

        Raises:
            CheckpointError: if its algorithm has no such part.
        """
        learner = in_present_form(source.state["learner"])
        name, algorithm = learner["algorithm_name"], learner["algorithm"]
        modules = algorithm.get("modules", {})
        wanted: dict[str, Any] = {}
        if "policy" in parts or "critics" in parts:
            needed = [_POLICY] if "critics" not in parts else [_POLICY, "critic", "critic_target"]
            if missing := [module for module in needed if module not in modules]:
                lacking = "critics" if _POLICY in modules else "networks that can be taken"
                raise CheckpointError(
                    f"{source.path}: its algorithm {name} has no {lacking} ({', '.join(missing)}); leave them out of "
                    "--init"
                )
            wanted["modules"] = modules
            wanted["log_temperature"] = algorithm.get("log_temperature")
        moments = learner.get("moments")
        if moments is not None and "demonstrations" in parts:  # the new run counts them when it takes them over
            moments = _without(moments, learner["demos"]["state"])
        state: dict[str, Any] = {"algorithm": wanted, "moments": moments}
        if "replay" in parts:
            online = learner["online"]
            if "robots" in online:  # of a fleet
                online = side_by_side(list(online["robots"].values()))
            state |= {"online": online, "hindsight": learner.get("hindsight")}
        facts = {"how": "init", "parts": list(parts), **source.facts()}
        return cls(parts, state, source.state_layout(), config_to_dict(source.config), facts)

    @property
    def demonstrations(self) -> Path | None:
        """Store of the run whose demonstrations are taken; None if they are not."""
        return Path(self.facts["run"]) / "episodes" if "demonstrations" in self.parts else None

    def save(self, run: Path) -> None:
        """Write them into the directory of the new run."""
        payload = {
            "parts": list(self.parts),
            "state": self.state,
            "layout": {key: list(shape) for key, shape in self.layout.items()},
        }
        save_checkpoint(run / FILE, payload, kind=KIND, metadata={"origin": self.facts["run"]})

    @classmethod
    def of_run(cls, run: Path, facts: Mapping[str, Any], config: TrainConfig) -> InitialParts:
        """Read those that a run keeps, which fitted when it was begun.

        Raises:
            CheckpointError: if they are gone or cannot be read.
        """
        content = load_checkpoint(run / FILE, kind=KIND)
        layout = {key: tuple(shape) for key, shape in content["layout"].items()}
        return cls(tuple(content["parts"]), content["state"], layout, config_to_dict(config), dict(facts))

    def give(self, learner: LearnerPort, env: Environment, config: TrainConfig) -> None:
        """Put them into a new learner.

        Raises:
            CheckpointError: if they do not fit; the error names what, and what would.
        """
        self._check_observations(env)
        self._check_actions(env)
        if "replay" in self.parts:
            self._check_settings(
                "replay", ("task", *REWARDS), config, "its rewards and scenes are others; leave replay out of --init"
            )
            self._check_settings(
                "replay", ("algorithm.chunk",), config, "its windows are others; leave replay out of --init"
            )
        if "demonstrations" in self.parts:
            cure = "their rewards are others; leave demonstrations out of --init"
            self._check_settings("demonstrations", OF_OTHERS, config, cure)
        state = learner.state_dict()
        if "policy" in self.parts or "critics" in self.parts:
            self._give_networks(state["algorithm"], config)
            state["standardised"] = True
        if self.state["moments"] is not None and "moments" in state and self.parts != ("demonstrations",):
            state["moments"] = self.state["moments"]
        if "replay" in self.parts:
            state["online"] = _renamed(self._fitting_replay(state["online"], config))
            if self.state.get("hindsight") is not None and "hindsight" in state:
                state["hindsight"] = self.state["hindsight"]
        learner.load_state_dict(state)

    def _check_observations(self, env: Environment) -> None:
        """Refuse observations of other names or shapes."""
        if not self.layout or self.parts == ("demonstrations",):
            return
        here = state_shapes((key, spec.shape) for key, spec in env.observation_specs.items())
        if here == self.layout:
            return
        there_only = [f"{key} {shape}" for key, shape in self.layout.items() if here.get(key) != shape]
        here_only = [f"{key} {shape}" for key, shape in here.items() if self.layout.get(key) != shape]
        raise self._misfit(
            f"it observed other things: only there {', '.join(there_only) or 'nothing'}; only here "
            f"{', '.join(here_only) or 'nothing'}; valid: a run with the same observations (--obs, task)"
        )

    def _check_actions(self, env: Environment) -> None:
        """Refuse networks and replay of actions that moved something else."""
        there, here = self.facts.get("actions"), env.environment_spec
        if self.parts != ("demonstrations",) and acts_otherwise(there, here):
            raise self._misfit(
                f"an action of it is {there}, and one of {here.name} is {here.actions} here; set axes, steps and "
                "period of the task as they were, or begin a run without it"
            )

    def _check_settings(self, what: str, keys: tuple[str, ...], config: TrainConfig, cure: str) -> None:
        """Refuse a part if one of these settings differs."""
        here = config_to_dict(config)
        for key in keys:
            was, now = _at(self.config, key), _at(here, key)
            if was != now:
                raise self._misfit(f"its {what} cannot be taken: {key} is {was!r} there and {now!r} here; {cure}")

    def _give_networks(self, algorithm: dict[str, Any], config: TrainConfig) -> None:
        """Replace the parameters that are taken in the state of a new algorithm."""
        mine, given = algorithm.get("modules", {}), self.state["algorithm"]["modules"]
        chosen = [name for name in ("critic", "critic_target", "gripper_target") if "critics" in self.parts]
        if missing := [name for name in (_POLICY, *chosen) if (name in given) != (name in mine)]:
            raise self._misfit(
                f"its algorithm has {', '.join(given)}, {config.algorithm.name} has {', '.join(mine) or 'none of them'}"
                f" ({missing[0]} differs); leave out of --init what does not fit"
            )
        seen = SEEN if config.observations == "state" else (*SEEN, *SEEN_IN_IMAGES)
        if config.sac.critic_loss == "hl_gauss" and "critics" in self.parts:
            seen = (*seen, "environment.return_range")  # which the histogram divides
        self._check_settings("networks", seen, config, "set it alike, or leave networks out of --init")
        taken = [_POLICY, *(name for name in chosen if name in mine)]
        for name in taken:
            for key in sorted(mine[name].keys() | given[name].keys()):
                if name == _POLICY and not self._takes(key):
                    continue
                was, now = (tuple(one[name][key].shape) if key in one[name] else None for one in (given, mine))
                if was != now:
                    self._check_settings("networks", NETWORKS, config, "set it alike, or leave networks out of --init")
                    raise self._misfit(
                        f"its networks do not fit: {name}.{key} is {was or 'missing'} there and {now or 'missing'} "
                        "here; valid: a run with the same observations, actions and encoder"
                    )
                mine[name][key] = given[name][key]
        temperature = self.state["algorithm"]["log_temperature"]
        if "policy" in self.parts and temperature is not None and "log_temperature" in algorithm:
            algorithm["log_temperature"] = temperature

    def _takes(self, key: str) -> bool:
        """Return whether a parameter of the policy is taken; what sees is shared by policy and critics."""
        if key.startswith(_HEAD):
            return True
        return ("critics" if key.startswith(_GRIPPER) else "policy") in self.parts

    def _fitting_replay(self, mine: Mapping[str, Any], config: TrainConfig) -> dict[str, Any]:
        """Return the replay that is taken, if a new one can hold it."""
        given: dict[str, Any] = self.state["online"]
        if mine.get("images_by") != given.get("images_by"):
            raise self._misfit(
                f"its replay has images by {given.get('images_by') or 'nobody'}, and this run's by "
                f"{mine.get('images_by') or 'nobody'}; choose the same encoder, or leave replay out of --init"
            )
        if (rows := len(given["state"])) > config.replay.capacity:
            raise self._misfit(f"its replay has {rows} rows; set replay.capacity to that at least")
        for key in ("state", "action"):
            was, now = (np.shape(one[key])[1:] for one in (given, mine))
            if was != now:
                raise self._misfit(
                    f"its replay has {key}s of shape {was}, this run's {now}; leave replay out of --init"
                )
        return given

    def _misfit(self, text: str) -> CheckpointError:
        return CheckpointError(f"--init-from {self.facts['run']}: {text}")


def _without(moments: Mapping[str, Any], rows: np.ndarray) -> dict[str, Any]:
    """Return moments in which these rows are not counted."""
    counted = RowMoments(len(moments["mean"]))
    counted.load_state_dict(moments)
    counted.forget(np.asarray(rows))
    return counted.state_dict()


def _renamed(memory: Mapping[str, Any]) -> dict[str, Any]:
    """Return a replay whose episodes have other names, so that no label meant for one of this run reaches them.

    Its steps count as simulated where that is of interest.
    """
    names = {key: [f"initial {name}" if name else "" for name in memory.get(key, ())] for key in _NAMED}
    renamed = {key: np.array(values, np.str_) for key, values in names.items() if key in memory}
    return {**memory, **renamed, "simulated": np.ones(len(memory["reward"]), bool)}


_NAMED = ("episode_names", "undecided")


def _at(tree: Mapping[str, Any], key: str) -> Any:
    value: Any = tree
    for name in key.split("."):
        value = value[name] if isinstance(value, Mapping) else None
    return value


def parts_of(text: str) -> tuple[str, ...]:
    """Return the parts that a list names, e.g. `policy,critics`.

    Raises:
        ValueError: if one is unknown or none is named.
    """
    names = tuple(dict.fromkeys(_stripped(text)))
    if not names or (unknown := [name for name in names if name not in PARTS]):
        wrong = f"unknown part {unknown[0]!r}" if names else "no part"
        raise ValueError(f"{wrong}; valid: {', '.join(PARTS)}, separated by commas")
    return names


def _stripped(text: str) -> Iterator[str]:
    return (part.strip() for part in text.split(",") if part.strip())
