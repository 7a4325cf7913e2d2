"""Interventions of operators: how often, for how long, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from robot_rl.data.interventions import interventions
from robot_rl.data.schema import OPERATOR_SOURCES
from robot_rl.data.store.store import EpisodeStore
from robot_rl.viz.learning_curve import BLUE, ORANGE, WINDOW, rolling_mean
from robot_rl.viz.png import write_png


def intervention_plot(store: EpisodeStore, log: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write a PNG: intervention rate and length over the online steps, and the reasons that were given.

    Args:
        store: Episodes of a run.
        log: Rows of its record of actions and notes of operators.
        path: The PNG.

    Raises:
        RunDirectoryError: if it cannot be written.
    """
    steps, rates, places, lengths = 0, [], [], []
    ends = []
    for episode in store.episodes():
        if episode.facts.demonstration:
            continue
        for one in interventions(episode):
            places.append(steps + one.start)
            lengths.append(one.seconds)
        steps += len(episode)
        ends.append(steps)
        rates.append(float(np.isin(episode.source, OPERATOR_SOURCES).mean()))
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    rate, length, why = figure.subplots(1, 3)
    rate.plot(ends, rates, ".", color=ORANGE, alpha=0.3, markeredgewidth=0, label="one episode")
    rate.plot(ends, rolling_mean(rates), color=ORANGE, linewidth=1.8, label=f"mean over the last {WINDOW} episodes")
    rate.set_title("Steps led by a person", loc="left", fontsize=11)
    rate.set_ylabel("share of the steps of an episode")
    rate.set_ylim(-0.03, 1.03)
    rate.legend(fontsize=8.5, framealpha=0.85)
    length.plot(places, lengths, "o", color=BLUE, alpha=0.6, markersize=4, markeredgewidth=0)
    length.set_title(f"Length of each take-over ({len(lengths)} of them)", loc="left", fontsize=11)
    length.set_ylabel("length [s]")
    length.set_ylim(bottom=0)
    reasons = Counter(str(row["text"]) for row in log if row["kind"] == "reason")
    reasons["not given"] = max(len(lengths) - sum(reasons.values()), 0)
    rows = [(reason, count) for reason, count in reversed(reasons.most_common()) if count]
    why.barh([reason for reason, _ in rows], [count for _, count in rows], color=ORANGE, height=0.6)
    why.set_title("Reasons of the operator", loc="left", fontsize=11)
    why.set_xlabel("number of take-overs")
    why.set_xlim(0, max((count for _, count in rows), default=1) * 1.05)
    why.xaxis.get_major_locator().set_params(integer=True)
    for axes in (rate, length, why):
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in (rate, length):
        axes.set_xlabel("env steps of the training")
        axes.set_xlim(0, max(steps, 1))
    write_png(figure, path, dpi=120)
