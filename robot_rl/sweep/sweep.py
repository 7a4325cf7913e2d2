"""A sweep in a directory: rounds of suggested trials, each a run of its own, halved rung by rung.

`sweep.json` holds what was suggested and the scores of the rungs that are complete. It is written between rungs only;
whatever is killed, the same command goes on from there, and the runs of the rung that was interrupted resume.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.bench.jobs import FailedJob
from robot_rl.config.load import flat_settings
from robot_rl.errors import ConfigError, RunDirectoryError
from robot_rl.sweep.sampler import suggest
from robot_rl.sweep.schedule import Schedule, best_of
from robot_rl.sweep.space import Space
from robot_rl.sweep.trial import TrialRun
from robot_rl.system.atomic_file import to_json, write_atomically, writing
from robot_rl.system.checked_json import parse_json, read_object
from robot_rl.system.directory_lock import Lock
from robot_rl.system.printable import one_line, some

SWEEP = "sweep.json"
FORMAT = 1
"""Version of that file."""

Play = Callable[[Sequence[TrialRun]], Sequence[FailedJob[TrialRun]]]
"""Plays the runs that have no result; returns those that failed."""


@dataclass
class SweepRound:
    """One round.

    Attributes:
        trials: Settings of each trial, by its number.
        rungs: For each complete rung, the scores of the trials that played it, by number; None of one that failed.
    """

    trials: dict[int, dict[str, Any]]
    rungs: list[dict[int, float | None]]

    def scores(self, rung: int) -> dict[int, float]:
        """Return the scores at a rung, without failed trials."""
        if rung >= len(self.rungs):
            return {}
        return {number: score for number, score in self.rungs[rung].items() if score is not None}


class Sweep:
    """A sweep in a directory. Use it in a `with` statement: one process at a time has it.

    Args:
        path: The directory.
        task: Name of the task.
        space: What varies.
        schedule: How many trials, how long.
        seeds: Seeds of the runs of each trial; its score is the mean over them.
        seed: Of the suggestions.

    Raises:
        RunDirectoryError: if the directory is in use, or holds something else.
        ConfigError: if it holds a sweep of another space or schedule.
    """

    def __init__(
        self, path: Path, task: str, space: Space, schedule: Schedule, seeds: Sequence[int], seed: int = 0
    ) -> None:
        self.path, self.task, self.space, self.schedule, self.seeds, self.seed = (
            path,
            task,
            space,
            schedule,
            tuple(seeds),
            seed,
        )
        self.rounds: list[SweepRound] = []
        self.failures: list[FailedJob[TrialRun]] = []
        file = path / SWEEP
        if path.exists() and not file.exists() and any(one.name != "lock" for one in path.iterdir()):
            raise RunDirectoryError(f"{path} is not empty and no sweep; choose another directory")
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(path / "lock")
        try:
            if file.exists():
                self._load(file)
            else:
                self._save()
        except (RunDirectoryError, ConfigError):
            self._lock.close()
            raise

    def __enter__(self) -> Sweep:
        """Return the sweep itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Let go of the directory."""
        self._lock.close()

    def run(self, play: Play) -> None:
        """Play all that is left.

        Args:
            play: Plays runs. What it raises ends the sweep, which can be continued.
        """
        for one in self.rounds:
            self._play_round(one, play)
        for trials in self.schedule.rounds_after(self._begun):
            chosen = suggest(self.space, self.scored(), len(trials), self.seed, len(self.rounds))
            self.rounds.append(SweepRound(dict(zip(trials, chosen, strict=True)), []))
            self._save()
            self._play_round(self.rounds[-1], play)

    def retry_failed(self, play: Play) -> None:
        """Play trials again that failed in complete rungs, and those of them in later rungs that are good enough.

        Nothing else changes: trials that went on in their place stay, and so do later suggestions.
        """
        for one in self.rounds:
            again: set[int] = set()
            for rung, scores in enumerate(one.rungs):
                if rung:
                    again &= set(self.schedule.promoted(one.scores(rung - 1)))
                again |= {number for number, score in scores.items() if score is None}
                if again:
                    scores |= self._played({number: one.trials[number] for number in sorted(again)}, rung, play)
                    self._save()

    def _play_round(self, one: SweepRound, play: Play) -> None:
        for rung in range(self.schedule.rungs):
            if rung < len(one.rungs):
                continue
            numbers = list(one.trials) if rung == 0 else self.schedule.promoted(one.scores(rung - 1))
            if not numbers or (rung and not one.scores(rung - 1)):
                return
            one.rungs.append(self._played({number: one.trials[number] for number in numbers}, rung, play))
            self._save()

    def _played(self, trials: Mapping[int, Mapping[str, Any]], rung: int, play: Play) -> dict[int, float | None]:
        """Play trials up to a rung; return their scores."""
        runs = {number: self.runs_of(chosen, number, rung) for number, chosen in trials.items()}
        self.failures += play([run for own in runs.values() for run in own])
        return {number: _score(own) for number, own in runs.items()}

    def runs_of(self, chosen: Mapping[str, Any], number: int, rung: int) -> list[TrialRun]:
        """Return the runs of a trial up to a rung, one for each seed."""
        steps = self.schedule.steps_at(rung)
        return [
            TrialRun(
                number,
                self.space.config(self.task, seed, steps, chosen),
                self.path / "trials" / f"{number:03d}" / f"seed-{seed}",
            )
            for seed in self.seeds
        ]

    # What is known.

    @property
    def _begun(self) -> int:
        """Trials that were suggested; a larger budget goes on after them, also where the last round was a short one."""
        return sum(len(one.trials) for one in self.rounds)

    def scored(self) -> list[tuple[dict[str, Any], float]]:
        """Return settings and score of each trial that has one, for suggestions: that of its last rung.

        A trial that was stopped early scores no better than those of its round that went on.
        """
        found = []
        for one in self.rounds:
            worst_later = np.inf
            for rung in range(len(one.rungs) - 1, -1, -1):
                later = one.rungs[rung + 1] if rung + 1 < len(one.rungs) else {}
                for number, score in one.scores(rung).items():
                    if number not in later:
                        found.append((number, one.trials[number], min(score, float(worst_later))))
                worst_later = min([worst_later, *one.scores(rung).values()])
        return [(chosen, score) for _, chosen, score in sorted(found, key=lambda row: row[0])]

    @property
    def failed(self) -> list[str]:
        """The trials without a score, each with its reason, which only the call in which it failed knows."""
        known = {failure.job.number for failure in self.failures}
        return [str(failure) for failure in self.failures] + [
            f"trial {number}: it failed in an earlier call; --retry-failed plays it again"
            for one in self.rounds
            for rung in one.rungs
            for number, score in rung.items()
            if score is None and number not in known
        ]

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each trial: number, settings, and its score at each rung that it reached, by env steps."""
        rows = []
        for one in self.rounds:
            for number, chosen in one.trials.items():
                rungs = range(len(one.rungs))
                scores_at = {
                    self.schedule.steps_at(rung): one.scores(rung)[number]
                    for rung in rungs
                    if number in one.scores(rung)
                }
                rows.append({"trial": number, "settings": chosen, "scores": scores_at})
        return rows

    def best(self) -> tuple[int, dict[str, Any], float] | None:
        """Return number, settings and score of the best trial; None where none has a score."""
        scores: list[dict[int, float]] = [{} for _ in range(self.schedule.rungs)]
        for one in self.rounds:
            for rung in range(len(one.rungs)):
                scores[rung] |= one.scores(rung)
        if not any(scores):
            return None
        rung, number = best_of(scores)
        chosen = next(one.trials[number] for one in self.rounds if number in one.trials)
        return number, chosen, scores[rung][number]

    # Its file.

    def _facts(self) -> dict[str, Any]:
        axes = {key: asdict(axis) for key, axis in self.space.axes.items()}
        facts = {
            "format": FORMAT,
            "task": self.task,
            "seed": self.seed,
            "seeds": list(self.seeds),
            "space": axes,
            "settings": list(self.space.settings),
            "schedule": {key: value for key, value in asdict(self.schedule).items() if key != "budget"},
        }
        return dict(parse_json(to_json(facts)))

    def _save(self) -> None:
        rounds = [{"trials": one.trials, "rungs": one.rungs} for one in self.rounds]
        write_atomically(self.path / SWEEP, to_json({**self._facts(), "rounds": rounds}, indent=2) + "\n")

    def _load(self, file: Path) -> None:
        try:
            saved = read_object(file)
            rounds = saved.pop("rounds")
            self.rounds = [
                SweepRound(
                    {int(number): dict(chosen) for number, chosen in one["trials"].items()},
                    [{int(number): score for number, score in rung.items()} for rung in one["rungs"]],
                )
                for one in rounds
            ]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise RunDirectoryError(f"{file} is not as a sweep writes it: {error!r}") from error
        mine = self._facts()
        here, there = (flat_settings({key: facts[key] for key in mine if key in facts}) for facts in (mine, saved))
        if changed := sorted(key for key in here | there if here.get(key) != there.get(key)):
            both = [f"{key}={_shown(there, key)}, here {_shown(here, key)}" for key in changed]
            raise ConfigError(
                f"{self.path} holds a sweep with {some(both, between='; ')}; continue it with the same, or choose "
                "another --out (more trials are possible: a larger --budget)"
            )
        if self._begun > self.schedule.budget:
            raise ConfigError(
                f"{self.path} has {self._begun} trials already, --budget {self.schedule.budget} is less; give at least "
                f"{self._begun}"
            )


def _shown(facts: Mapping[str, Any], key: str) -> str:
    """Return a fact of a sweep for a message."""
    return one_line(str(facts[key])) if key in facts else "nothing"


def _score(runs: Sequence[TrialRun]) -> float | None:
    """Return the mean score of the runs of a trial; None if one of them failed."""
    return float(np.mean([run.score for run in runs])) if all(run.finished for run in runs) else None
