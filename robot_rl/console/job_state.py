"""The state of a job as pages show it. The control loop writes it, the console's thread reads it.

Everything here is cheap: the control loop never waits for a page.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from robot_rl.data.schema import CLASSIFIER_PROBABILITY, Episode, Observation, Source, Step
from robot_rl.env.episode_observer import EpisodeResult
from robot_rl.env.supervision import EVALUATING, NEXT_ARM
from robot_rl.env.task import Outcome, TaskSpec

CURVE_POINTS = 300
"""Points of a curve that a page gets; older ones are thinned out."""
EPISODE_FIELDS = ("success", "assisted", "intervention_rate", "cycle_time_s", "return", CLASSIFIER_PROBABILITY)
UPDATE_FIELDS = ("q_mean", "critic_loss", "updates_per_s", "utd")


class ArmBeside(NamedTuple):
    """An arm that is led by another hand than the chosen one.

    Attributes:
        name: Its name.
        heading: Where the x axis of the chosen arm's base points in its own base: turn about z [rad].
    """

    name: str
    heading: float


class JobState:
    """The state of a job; an observer of its rollouts, and a judge that only looks at what the judges before measured.

    Args:
        job: `demo`, `training`, or `robot`, whose buttons are those that its phase names.
        spec: The task.
        steps: Env steps that a training shall take; 0 for demonstrations.
    """

    def __init__(self, job: str, spec: TaskSpec, steps: int = 0) -> None:
        self._lock = threading.Lock()
        self._job = {
            "kind": job,
            "task": spec.name,
            "instruction": spec.instruction,
            "force_limit": spec.force_limit,
            "max_steps": spec.max_steps,
            "control_period": spec.control_period,
            "workspace": [spec.workspace.low, spec.workspace.high],
            "action_axes": spec.action_axes,
            "gripper": any(arm.gripper for arm in spec.each.values()),
            "arms": list(spec.arms),
            "env_steps": steps,
        }
        self._phase: dict[str, Any] = {"name": "starting", "text": "Starting", "requests": ()}
        self._episode: dict[str, Any] = {"id": None, "step": 0, "source": None}
        self._kept = {"count": 0, "wanted": 0}
        self._call = ""
        self.chosen: str | None = None
        """Which of several arms the page leads."""
        self._bases = {name: arm.T_cell_base for name, arm in spec.arms.items()}
        self._remarks: deque[dict[str, Any]] = deque(maxlen=8)
        self._ended: deque[dict[str, Any]] = deque(maxlen=30)
        self._curves: dict[str, list[dict[str, Any]]] = {"episode": [], "update": [], "curve": [], "label": []}
        self._measures: dict[str, float] = {}
        self._health: dict[str, Any] = {}
        self._counted = 0
        self.curves_version = 0
        """Changes whenever the curves do."""

    @property
    def beside(self) -> ArmBeside | None:
        """The arm that a second hand leads: the one after the chosen one; None where no other one is."""
        names, chosen = list(self._bases), self.chosen
        if chosen is None or len(names) < 2:
            return None
        other = names[(names.index(chosen) + 1) % len(names)]
        ahead = self._bases[other].inverse().matrix @ self._bases[chosen].matrix[:, 0]
        return ArmBeside(other, math.atan2(ahead[1], ahead[0]))

    # --------------------------------------------------- written by the job

    def phase(self, name: str, text: str, requests: tuple[str, ...]) -> None:
        """Set the phase, its description, and the requests that are valid in it."""
        with self._lock:
            self._phase = {"name": name, "text": text, "requests": requests}

    def call(self, text: str) -> None:
        """Set why the policy needs help; empty: it does not."""
        with self._lock:
            self._call = text

    def kept(self, count: int, wanted: int) -> None:
        """Set the number of demonstrations."""
        with self._lock:
            self._kept = {"count": count, "wanted": wanted}

    def remark(self, text: str) -> None:
        """Add a message for the operators."""
        with self._lock:
            self._counted += 1
            self._remarks.append({"number": self._counted, "time": time.time(), "text": text})

    def metric(self, kind: str, env_step: int, values: Mapping[str, Any]) -> None:
        """Add a record of the metrics."""
        with self._lock:
            self._health |= {"env_step": env_step}
            if kind == "update":
                self._health |= {name: values[name] for name in UPDATE_FIELDS if name in values}
            if kind == "episode" and "person" in values:
                self._health |= {"person": values["person"]}
            if kind == "curve":
                self._health |= {"success_alone": values.get("success_rate")}
            fields = {
                "episode": EPISODE_FIELDS,
                "update": ("q_mean",),
                "curve": ("success_rate",),
                "label": ("value",),
            }.get(kind)
            if fields is None:
                return
            rows = self._curves[kind]
            rows.append({"env_step": env_step, **{name: values.get(name) for name in fields}})
            if len(rows) > 2 * CURVE_POINTS and kind != "episode":
                del rows[:-CURVE_POINTS:2]
            self.curves_version += 1

    def choose(self, arm: str | None) -> None:
        """Set which of several arms the page leads; None if there is one, or the page leads none."""
        with self._lock:
            self.chosen = arm

    def measure(self, name: str, value: float) -> None:
        """Set a measure of the running episode's newest step."""
        with self._lock:
            self._measures[name] = value

    # ------------------------------------------- written by the control loop

    def begin(self) -> None:
        """Start an episode: nothing of it is measured yet."""
        with self._lock:
            self._measures = {}

    def judge(self, outcome: Outcome, observation: Mapping[str, np.ndarray], spec: TaskSpec) -> Outcome:
        """Show what a classifier finds of a step; return the outcome as it is."""
        del observation, spec
        if CLASSIFIER_PROBABILITY in outcome.metrics:
            self.measure("classifier", round(float(outcome.metrics[CLASSIFIER_PROBABILITY]), 4))
        return outcome

    # ----------------------------------------------- written by the rollout

    def named(self, episode_id: str) -> str:
        """Return the name under which pages see an episode."""
        return episode_id

    def on_start(self, episode_id: str, observation: Observation) -> None:
        """Show that an episode started."""
        del observation
        self.follow(self.named(episode_id), 0, None)

    def on_step(self, step: Step, next_observation: Observation) -> None:
        """Show a step."""
        del next_observation
        self.follow(self.named(step.episode_id), step.index + 1, Source(step.source))

    def follow(self, episode_id: str | None, step: int, source: Source | None) -> None:
        """Set the running episode, its number of steps, and the source of the newest; None if none runs."""
        with self._lock:
            self._episode = {"id": episode_id, "step": step, "source": None if source is None else source.name.lower()}

    def on_end(self, episode: Episode, result: EpisodeResult) -> None:
        """Add the row of an episode that is over, but of no evaluation: nobody labels those later."""
        if self._phase["name"] == EVALUATING:
            self.follow(self.named(episode.episode_id), result.steps, None)
            return
        self.ended(
            {
                "id": self.named(episode.episode_id),
                "demonstration": episode.facts.demonstration,
                "success": result.success,
                "failure": result.failure,
                "cut": episode.facts.cut,
                "steps": result.steps,
                "seconds": result.cycle_time,
                "led": result.operator_steps,
                "takeovers": result.takeovers,
                "force_peak": result.force_peak,
                "judge": episode.reward_source,
                "overruled": episode.facts.overruled,
                "label": None,
            }
        )

    def ended(self, row: dict[str, Any]) -> None:
        """Add a row of an episode that is over, in place of one of that name; see `recorded_episodes`."""
        with self._lock:
            before = [one for one in self._ended if one["id"] != row["id"]]
            self._ended = deque((*before, row), maxlen=self._ended.maxlen)
            self._episode = self._episode | {"source": None}

    # ---------------------------------------------- written by the operator

    def labelled(self, episode_id: str, success: bool, who: str) -> None:
        """Add the label of a recorded episode to its row."""
        with self._lock:
            label = {"success": success, "who": who}
            for place, row in enumerate(self._ended):
                if row["id"] == episode_id:
                    self._ended[place] = {**row, "label": label}

    # ------------------------------------------------- read by the console

    def state(self) -> dict[str, Any]:
        """Return everything that changes often."""
        with self._lock:
            return {
                "phase": self._phase,
                "episode": {**self._episode, "measures": dict(self._measures)},
                "kept": self._kept,
                "call": self._call,
                "chosen_arm": self.chosen,
                "remarks": list(self._remarks),
                "health": dict(self._health),
                "ended": list(self._ended),
                "curves_version": self.curves_version,
            }

    @property
    def job(self) -> dict[str, Any]:
        """The facts that do not change."""
        return self._job

    @property
    def requests(self) -> tuple[str, ...]:
        """Requests that are valid now: to the job, and to lead another arm."""
        with self._lock:
            return (*self._phase["requests"], *([NEXT_ARM] if self.chosen is not None else []))

    def episodes(self) -> list[dict[str, Any]]:
        """Return the points of all online episodes, in their order."""
        with self._lock:
            return list(self._curves["episode"])

    def curves(self) -> dict[str, Any]:
        """Return the points of the curves."""
        with self._lock:
            return {kind: list(rows[-2 * CURVE_POINTS :]) for kind, rows in self._curves.items()}
