"""Summaries of runs and evaluations as lines of text."""

from __future__ import annotations

from typing import Any


def summary_lines(summary: dict[str, Any]) -> list[str]:
    """Return the lines of the summary of a run, or of an evaluation."""
    kind, value = ("success", "success_rate") if summary["success_rate"] is not None else ("return", "return_mean")
    low, high = summary[f"{kind}_ci95"]
    digits = ".3f" if kind == "success" else ".5g"
    changed = ", ".join(f"{key}={value}" for key, value in summary.get("changes", {}).items())
    lines = [f"in another world: {changed}"] if changed else []
    if noise := summary.get("deployed_noise"):
        lines.append(f"acting with {noise:g} of its noise")
    lines += [
        f"{kind} {summary[value]:{digits}} on {summary['episodes']} held-out resets of {summary['task']} "
        f"(95 % interval {low:{digits}} to {high:{digits}})"
    ]
    if summary["cycle_time_s"] is not None:
        demo, force = summary.get("demo_cycle_time_s"), summary["force_peak_p95_n"]
        lines.append(
            f"cycle time {summary['cycle_time_s']:.2f} s"
            + (f", demonstrations {demo:.2f} s" if demo else "")
            + (f"; peak force {force:.0f} N (95th percentile)" if force else "")  # 0: there is no sensor
        )
    if summary.get("stages"):
        lines.append("stages reached: " + ", ".join(f"{n} {share:.3f}" for n, share in summary["stages"].items()))
    if summary["metrics_at_success"]:
        facts = (f"{n} {m['mean']:.2g} (max {m['max']:.2g})" for n, m in summary["metrics_at_success"].items())
        lines.append("at success: " + ", ".join(facts))
    if summary["failures"]:
        lines.append("failures: " + ", ".join(f"{count} x {reason}" for reason, count in summary["failures"].items()))
    if summary.get("config", {}).get("realtime") and (timing := summary["timing"])["period_error_ms"]:
        error, age = timing["period_error_ms"], timing["observation_to_action_ms"]
        lines.append(
            f"control: period error {error['p50']:.1f} ms (p99 {error['p99']:.1f}), "
            f"observation to action {age['p50']:.1f} ms (p99 {age['p99']:.1f})"
        )
    if (labels := summary.get("labels")) is not None:
        lines += _labels_summary_lines(labels)
    if (preferences := summary.get("preferences")) is not None:
        lines += _preferences_summary_lines(preferences)
    if (average := summary.get("frequency_average")) is not None:
        rates = ", ".join(f"{row[value]:{digits}} at {row['rate_hz']:g} Hz" for row in average["by_rate"])
        lines.append(f"{kind} by decisions a second: {rates}; mean {average[value]:{digits}}")
    if summary["video"] is not None:
        lines.append(f"video: {summary['video']}")
    if summary.get("offline_updates"):
        config = summary["config"]
        what = "critic updates" if config.get("base", {}).get("kind", "none") == "none" else "updates of the base"
        lines.append(f"{summary['offline_updates']} {what} on {config['demonstrations']} episodes alone")
    if "person" in summary:
        lines.append(effort_text(summary["person"]))
    if "wall_s" in summary:
        lines.append(
            f"{summary['env_steps']} env steps ({summary['robot_minutes']:.1f} robot minutes), "
            f"{summary['updates']} critic updates, {summary['wall_s'] / 60:.1f} min"
        )
    return lines


def practice_lines(summary: dict[str, Any]) -> list[str]:
    """Return the lines of the summary of a practice."""
    lines = []
    for task, own in summary["tasks"].items():
        low, high = own["success_ci95"]
        where = f"{own['episodes']} {summary['evaluated']}"
        lines.append(
            f"{task}: success {own['success_rate']:.3f} on {where} (95 % interval {low:.3f} to {high:.3f}), "
            f"{own['env_steps']} env steps"
        )
    lines.append(
        f"{summary['robot_minutes']:.1f} robot minutes, {summary['between_minutes']:.1f} of them between episodes; "
        f"{summary['calls']} calls"
    )
    lines.append(effort_text(summary["person"]))
    return lines


def effort_text(figures: dict[str, Any]) -> str:
    """Return the price for a person, e.g. `4 min 10 s of human action: ...`."""
    acts = [f"led {figures['led_s']:.0f} s in {figures['takeovers']} take-overs"]
    acts += [f"demonstrated {figures['demonstration_s']:.0f} s"] if figures["demonstrations"] else []
    acts += [
        f"{figures[key]} {key.replace('_', ' ')}" for key in ("manual_resets", "labels", "presses") if figures[key]
    ]
    minutes, seconds = divmod(round(figures["seconds"]), 60)
    return f"{minutes} min {seconds} s of human action: {', '.join(acts)}"


def _preferences_summary_lines(pairs: dict[str, Any]) -> list[str]:
    """Return what rewarded the training, if that was learned from pairs."""
    accuracy = "not known" if pairs["accuracy"] is None else f"{pairs['accuracy']:.0%}"
    lines = [
        f"rewarded by {pairs['pairs']} pairs {pairs['labels']!r} of {pairs['model']} in {pairs['sessions']} sessions, "
        f"{pairs['queried']} queries, cost {pairs['cost']:.4g}; the reward predicts {accuracy} of held-out pairs"
    ]
    if pairs["auc"] is not None:
        lines.append(
            f"it separates the {pairs['judged']} online episodes of known outcome with an ROC-AUC of {pairs['auc']:.2f}"
        )
    if pairs["ended"]:
        lines.append(pairs["ended"])
    return lines + _risk_lines(pairs)


def labelling_text(labels: dict[str, Any]) -> str:
    """Return what labelling took."""
    speed = f", {labels['labels_per_s']:.2g} labels/s" if labels["labels_per_s"] is not None else ""
    return f"{labels['queried']} by queries{speed}, cost {labels['cost']:.4g}; {labels['cache_hits']} were known"


def _labels_summary_lines(labels: dict[str, Any]) -> list[str]:
    """Return what rewarded the training."""
    late = (
        f", lag {labels['lag_p50_s']:.1f} s (p95 {labels['lag_p95_s']:.1f} s)"
        if labels["lag_p50_s"] is not None
        else ""
    )
    lines = [f"rewarded by {labels['labelled']} labels {labels['labels']!r} of {labels['model']}{late}"]
    lines.append(labelling_text(labels))
    if labels["judged"]:
        lines.append(
            f"{labels['judged']} of them compared with the truth: hack gap {100 * labels['hack_gap']:+.1f} points, "
            f"{labels['alarms']} alarms"
        )
    if labels["ended"]:
        lines.append(f"no more labels since then: {labels['ended']}")
    return lines + _risk_lines(labels)


def _risk_lines(labels: dict[str, Any]) -> list[str]:
    """Return what a verdict on labels means, unless they are fit."""
    if labels["certified"]:
        return []
    fitness = labels.get("fitness", "not shown")  # runs of older revisions do not tell which
    verdict = "UNFIT as a reward" if fitness == "unfit" else "NOT SHOWN to be fit as a reward"
    return [f"labels {verdict}: what was learned may be how to deceive the labeller"]
