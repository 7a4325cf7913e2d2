"""`robot-rl label calibrate | report | compare | apply`: how far labels can be trusted, and what is made of them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from robot_rl.cli.parts.command import MakeParser, Reply, share_below_one
from robot_rl.errors import ConfigError


def add_judgement_commands(commands: Any, add: MakeParser) -> None:
    """Add these sub-commands of `robot-rl label`."""
    calibrate = add(
        commands,
        "calibrate",
        _calibrate,
        "fit probability and threshold of success to episodes whose outcome is known",
        example="robot-rl label calibrate runs/one",
    )
    _labelled(calibrate)
    calibrate.add_argument("--name", default="success", metavar="NAME", help="of the labels (default: success)")
    calibrate.add_argument(
        "--share",
        type=share_below_one,
        default=0.5,
        metavar="X",
        help="of the known episodes to fit to; a report takes the rest (default: 0.5)",
    )
    calibrate.add_argument(
        "--max-false-positives",
        type=share_below_one,
        metavar="X",
        help="of the failures, that may count as a success where the threshold is chosen (default: 0.001)",
    )
    calibrate.add_argument("--seed", type=int, default=0, metavar="N", help="which episodes are fitted to (default: 0)")

    report = add(
        commands,
        "report",
        _report,
        "report how far labels can be trusted, and for what",
        example="robot-rl label report runs/one",
    )
    _labelled(report)
    report.add_argument("--name", metavar="NAME", help="of the labels (default: the only ones)")
    report.add_argument("--progress", default="", metavar="NAME", help="overlay whose rewards are the true progress")
    report.add_argument(
        "--plain",
        type=Path,
        metavar="STORE",
        help="the same episodes, by id, without what is in view in these, e.g. writing: how many answers it changes",
    )

    alpha = add(
        commands,
        "alpha",
        _alpha,
        "show what scores would be with another score.alpha, against the known outcomes",
        example="robot-rl label alpha runs/one",
    )
    _labelled(alpha)
    alpha.add_argument("--name", default="score", metavar="NAME", help="of the labels (default: score)")
    alpha.add_argument("--out", type=Path, metavar="FILE", help="picture of the curve (default: beside the labels)")

    compare = add(
        commands,
        "compare",
        _compare,
        "put labellers of success side by side, on the episodes of all of them",
        example="robot-rl label compare runs/one --name clip --name head",
    )
    _labelled(compare)
    compare.add_argument(
        "--name",
        action="append",
        required=True,
        metavar="NAME",
        help="of labels; the others are compared with the first",
    )

    apply = add(
        commands,
        "apply",
        _apply,
        "make rewards of labels, beside the recorded ones, if they are good for that",
        example="robot-rl label apply runs/one --rewards judged",
    )
    _labelled(apply)
    apply.add_argument("--name", default="success", metavar="NAME", help="of the labels (default: success)")
    apply.add_argument("--rewards", required=True, metavar="NAME", help="of the rewards, a new name")
    apply.add_argument("--progress", default="", metavar="NAME", help="overlay whose rewards are the true progress")
    apply.add_argument(
        "--discount",
        type=share_below_one,
        default=0.96,
        metavar="X",
        help="that is learned with, for progress and scores (default: 0.96)",
    )
    apply.add_argument(
        "--features",
        choices=("state", "frames"),
        default="state",
        help="of a moment, for preferences: what it is a reward of (default: state)",
    )
    apply.add_argument(
        "--as",
        dest="use",
        choices=("shaping", "reward"),
        default="shaping",
        help="of scores: shape the recorded rewards, or replace them, which takes --allow-uncalibrated "
        "(default: shaping)",
    )
    apply.add_argument("--allow-uncalibrated", action="store_true", help="though the labels are not shown to be fit")


def _labelled(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("store", type=Path, metavar="STORE", help="directory of a store with labels, or of a run")
    parser.add_argument(
        "--truth",
        type=Path,
        metavar="FILE",
        help="CSV of episode_id,success that counts instead of the recorded outcomes",
    )


def _calibrate(arguments: argparse.Namespace) -> Reply:
    import numpy as np

    from robot_rl.data.store.layout import find_store
    from robot_rl.data.store.store import EpisodeStore
    from robot_rl.reward.label_store import LabelStore
    from robot_rl.reward.query import QueryKind
    from robot_rl.reward.validation.calibration_plot import draw_calibration
    from robot_rl.reward.validation.current_labels import current_labels
    from robot_rl.reward.validation.ground_truth import read_truth
    from robot_rl.reward.validation.probability_calibration import calibrate
    from robot_rl.reward.validation.report import success_columns
    from robot_rl.reward.validation.threshold import DRAWN_AT, MAX_FALSE_POSITIVES, threshold_curve

    allowed = MAX_FALSE_POSITIVES if arguments.max_false_positives is None else arguments.max_false_positives
    path, name = find_store(arguments.store), arguments.name
    with EpisodeStore.open(path) as store, LabelStore(path) as labels:
        if (kind := labels.kind(name)) is not QueryKind.SUCCESS:
            raise ConfigError(f"labels {name!r} are of kind {kind}; only those of success are calibrated")
        truth = read_truth(store, outcomes=arguments.truth)
        current = current_labels(store, labels.labels(name))
        columns = success_columns(current.labels, truth, labels.trained_on(name))
        known = np.flatnonzero(np.isfinite(columns.probability))
        drawn = np.random.default_rng(arguments.seed).permutation(known)
        chosen = np.sort(drawn[: max(1, round(arguments.share * len(drawn)))])
        found = calibrate(
            name,
            tuple(columns.episodes[index] for index in chosen),
            columns.truth[chosen],
            columns.probability[chosen],
            max_false_positives=allowed,
        )
        out = labels.calibration_path(name)
        found.write(out)
    happened, probability = columns.truth[chosen], columns.probability[chosen]
    draw_calibration(found, happened, probability, picture := out.with_suffix(".png"))
    curve = threshold_curve(found(probability), happened, [*DRAWN_AT, found.threshold])
    facts = {"slope": found.slope, "offset": found.offset, "threshold": found.threshold}
    answer = {
        "name": name,
        **facts,
        "episodes": len(chosen),
        "successes": found.successes,
        "curve": [point._asdict() for point in curve],
        "file": out,
        "picture": picture,
    }
    lines = [
        f"fitted to {len(chosen)} episodes, {found.successes} of them successes: "
        f"p' = sigmoid({found.slope:.3f} logit p {found.offset:+.3f}), a success from {found.threshold:.3f}",
        *(_curve_line(point, chosen=point.threshold == found.threshold) for point in curve),
        f"kept in {out}, drawn in {picture.name}; `robot-rl label report` takes the other "
        f"{len(known) - len(chosen)} episodes",
    ]
    lines += [f"note: {note}" for note in current.notes]
    if found.slope <= 0:
        lines.append("the model answers the opposite of the truth, or nothing; inspect its answers before you go on")
    return Reply(answer, lines)


def _curve_line(point: Any, *, chosen: bool) -> str:
    """Return what a threshold gives, for people."""
    return (
        f"  from {point.threshold:.3f}: {point.found} of {point.successes} successes found, "
        f"{point.false_positives} of {point.failures} failures called one" + ("   <- chosen" if chosen else "")
    )


def _report(arguments: argparse.Namespace) -> Reply:
    from dataclasses import asdict, replace

    from robot_rl.data.store.layout import find_store
    from robot_rl.data.store.store import EpisodeStore
    from robot_rl.reward.label_store import LabelStore
    from robot_rl.reward.query import QueryKind
    from robot_rl.reward.validation.answer_flips import LabelledSide, answer_flips, read_side
    from robot_rl.reward.validation.current_labels import current_labels, served_by_several
    from robot_rl.reward.validation.ground_truth import read_truth
    from robot_rl.reward.validation.probability_calibration import read_calibration
    from robot_rl.reward.validation.report import make_report
    from robot_rl.reward.validation.verdict import verdict_of

    path = find_store(arguments.store)
    with EpisodeStore.open(path) as store, LabelStore(path) as labels:
        names = labels.names()
        if arguments.name is None and len(names) != 1:
            arguments.parser.error(f"--name is one of {', '.join(names) or '(there are no labels)'}")
        name = arguments.name or names[0]
        kind, file = labels.kind(name), labels.calibration_path(name)
        current = current_labels(store, labels.labels(name))
        calibration = read_calibration(file) if file.exists() else None
        truth = read_truth(store, outcomes=arguments.truth, progress=arguments.progress)
        found = make_report(kind, current.labels, truth, calibration, labels.trained_on(name))
        settings, revision = labels.settings(name), str(labels.identity(name).get("revision", ""))
        if kind is QueryKind.PROGRESS and settings.get("backend") == "head":
            from robot_rl.reward.potential.shaping_certificate import certify_head  # here, as it imports torch

            made = certify_head(Path(settings["head"]), revision, verdict_of(found), found.compared)
            found = replace(found, notes=[*found.notes, made])
        if arguments.plain is not None:
            if kind is not QueryKind.SUCCESS:
                raise ConfigError(f"--plain is for labels of success, {name!r} are of kind {kind}; leave it out")
            flips = answer_flips(
                LabelledSide(current.labels, truth),
                read_side(arguments.plain, name, labels.identity(name), arguments.truth),
                calibration,
                labels.trained_on(name),
            )
            found = replace(
                found,
                figures={**found.figures, **flips.figures},
                gates=[*found.gates, flips.gate],
                notes=[*found.notes, f"{flips.pairs} episodes are compared with the same ones in {arguments.plain}"],
            )
    found = replace(found, notes=[*found.notes, *current.notes, *served_by_several(current.labels)])
    read = ", ".join(f"{count} {status}" for status, count in found.statuses.items())
    lines = [f"{found.labels} {kind} labels {name!r} ({read}); {found.compared} are compared with the truth"]
    lines += [figure_line(key, figure) for key, figure in found.figures.items() if key != "calibrated"]
    for verdict in (*found.gates, *([found.sequential] if found.sequential else [])):
        lines.append(str(verdict))
        lines += [f"    {reason}" for reason in verdict.shortcomings]
        lines += [f"    {verdict.remedy}"] if verdict.remedy else []
    lines += [f"note: {note}" for note in found.notes]
    figures = {key: figure._asdict() for key, figure in found.figures.items()}
    gates = [_as_dict(gate) for gate in found.gates]
    sequential = _as_dict(found.sequential) if found.sequential else None
    answer = {"name": name, **asdict(found), "figures": figures, "gates": gates, "sequential": sequential}
    return Reply(answer, lines)


def _as_dict(gate: Any) -> dict[str, Any]:
    return {"use": gate.use, "fitness": gate.fitness, "passed": gate.passed, "reasons": gate.reasons}


def figure_line(name: str, figure: Any) -> str:
    """Return a figure and its interval, for people."""
    if figure.value != figure.value:
        return f"  {name:<40} not known"
    return f"  {name:<40} {figure.value:7.3f}   {figure.low:.3f} to {figure.high:.3f}"


def _alpha(arguments: argparse.Namespace) -> Reply:
    from robot_rl.data.store.layout import find_store
    from robot_rl.data.store.store import EpisodeStore
    from robot_rl.reward.label_store import LABELS, LabelStore
    from robot_rl.reward.labels.alpha_curve import alpha_curve, draw_alpha_curve
    from robot_rl.reward.query import QueryKind
    from robot_rl.reward.validation.current_labels import current_labels
    from robot_rl.reward.validation.ground_truth import read_truth

    path, name = find_store(arguments.store), arguments.name
    with EpisodeStore.open(path) as store, LabelStore(path) as labels:
        if (kind := labels.kind(name)) is not QueryKind.SCORE:
            raise ConfigError(f"labels {name!r} are of kind {kind}; only scores have an alpha")
        used = float(labels.identity(name).get("alpha", 0.0))
        current = current_labels(store, labels.labels(name))
        found = alpha_curve(current.labels, read_truth(store, outcomes=arguments.truth))
    out = arguments.out or path / LABELS / f"{name}.alpha.png"
    draw_alpha_curve(found, used, out)
    lines = [f"{found.episodes} episodes of known outcome, {found.successes} of them successes; by their last frame:"]
    for point in found.points:
        chosen = "   <- of these labels" if abs(point.alpha - used) < 1e-9 else ""
        auc = f"{point.auc.value:.3f} ({point.auc.low:.3f} to {point.auc.high:.3f})"
        lines.append(f"  alpha {point.alpha:.1f}: ROC-AUC {auc}, distance to the outcomes {point.distance:.3f}{chosen}")
    lines += [f"note: {note}" for note in current.notes]
    if found.worse:
        lines.append(
            f"alpha {', '.join(f'{alpha:.1f}' for alpha in found.worse)} separates less than alpha 0: the baseline is "
            "not what it should be, or not below the goal"
        )
    lines.append(f"drawn in {out}; label anew with --set score.alpha=X under another --name to use one")
    points = [{"alpha": p.alpha, "auc": p.auc._asdict(), "distance": p.distance} for p in found.points]
    answer = {"name": name, "episodes": found.episodes, "successes": found.successes, "points": points, "picture": out}
    return Reply(answer, lines)


def _compare(arguments: argparse.Namespace) -> Reply:
    from robot_rl.data.store.layout import find_store
    from robot_rl.data.store.store import EpisodeStore
    from robot_rl.reward.label_store import LabelStore
    from robot_rl.reward.query import QueryKind
    from robot_rl.reward.validation.comparison import compare_success
    from robot_rl.reward.validation.current_labels import current_labels
    from robot_rl.reward.validation.ground_truth import read_truth
    from robot_rl.reward.validation.probability_calibration import read_calibration

    path = find_store(arguments.store)
    with EpisodeStore.open(path) as store, LabelStore(path) as labels:
        if odd := [name for name in arguments.name if labels.kind(name) is not QueryKind.SUCCESS]:
            raise ConfigError(f"labels {', '.join(odd)} are not of success; only those can be compared")
        files = {name: labels.calibration_path(name) for name in arguments.name}
        rows = {name: current_labels(store, labels.labels(name)) for name in arguments.name}
        found = compare_success(
            {name: current.labels for name, current in rows.items()},
            read_truth(store, outcomes=arguments.truth),
            {name: read_calibration(file) for name, file in files.items() if file.exists()},
            [episode for name in arguments.name for episode in labels.trained_on(name)],
        )
    first = arguments.name[0]
    lines = [f"{found.episodes} episodes that all of them judged"]
    lines += [figure_line(f"{name}: ROC-AUC", figure) for name, figure in found.auc.items()]
    for name, figure in found.difference.items():
        lines.append(figure_line(f"{name} - {first}", figure) + f"   kappa {found.kappa[name]:.3f}")
    lines += [f"note: {name}: {note}" for name, current in rows.items() for note in current.notes]
    answer = {
        "episodes": found.episodes,
        "auc": {name: figure._asdict() for name, figure in found.auc.items()},
        "difference": {name: figure._asdict() for name, figure in found.difference.items()},
        "kappa": found.kappa,
    }
    return Reply(answer, lines)


def _apply(arguments: argparse.Namespace) -> Reply:
    from dataclasses import asdict

    from robot_rl.data.store.layout import find_store
    from robot_rl.data.store.operator_labels import check_not_of_operators
    from robot_rl.data.store.store import EpisodeStore
    from robot_rl.reward.label_store import LabelStore
    from robot_rl.reward.labels.apply import apply_labels, check_certified
    from robot_rl.reward.preference.rewards import apply_preferences
    from robot_rl.reward.query import QueryKind
    from robot_rl.reward.validation.current_labels import current_labels
    from robot_rl.reward.validation.ground_truth import read_truth
    from robot_rl.reward.validation.probability_calibration import read_calibration
    from robot_rl.reward.validation.verdict import judge_labels
    from robot_rl.system.process import one_thread

    check_not_of_operators(arguments.rewards)
    path, name = find_store(arguments.store), arguments.name
    with EpisodeStore.open(path) as store, LabelStore(path) as labels:
        kind, file = labels.kind(name), labels.calibration_path(name)
        current = current_labels(store, labels.labels(name))
        rows = current.labels
        calibration = read_calibration(file) if file.exists() else None
        truth = read_truth(store, outcomes=arguments.truth, progress=arguments.progress)
        scores = kind is QueryKind.SCORE
        judged = None if scores else judge_labels(kind, rows, truth, calibration, labels.trained_on(name))
        instead = arguments.use == "reward"
        if instead and not scores:
            raise ConfigError(f"--as reward is for labels of kind score, {name!r} are of kind {kind}; leave it out")
        harmless = scores and not instead  # it leaves the best policy as it is
        verdict = check_certified(kind, judged, arguments.allow_uncalibrated or harmless)
        provenance = {
            "labels": name,
            "kind": str(kind),
            "labeller": labels.identity(name),
            "calibrated": calibration is not None,
            "certified": verdict.passed,
            "fitness": verdict.fitness,
            "reasons": list(verdict.reasons),
            **({"used_as": arguments.use} if scores else {}),
        }
        answer: dict[str, Any] = {
            "rewards": arguments.rewards,
            "certified": verdict.passed,
            "fitness": verdict.fitness,
            "outdated": current.outdated,
        }
        if kind is QueryKind.PREFERENCE:
            one_thread()
            fit = apply_preferences(store, arguments.rewards, rows, provenance, of=arguments.features)
            answer |= {"episodes": len(store), **asdict(fit)}
            right = "not known" if fit.accuracy is None else f"{fit.accuracy:.0%}"
            lines = [
                f"{len(store)} episodes have rewards {arguments.rewards!r} now, of {fit.pairs} pairs; "
                f"right about {right} of the {fit.held_out} that it was not fitted to"
            ]
        else:
            done = apply_labels(
                store,
                arguments.rewards,
                rows,
                kind,
                provenance,
                calibration=calibration,
                discount=arguments.discount,
                instead=instead,
            )
            answer |= asdict(done)
            lines = [
                f"{done.episodes} episodes have rewards {arguments.rewards!r} now, "
                f"{len(done.without)} have no label for it"
            ]
            if done.positive is not None:
                lines.append(f"{done.positive} of them are rewarded as a success")
    lines += [f"note: {note}" for note in current.notes]
    if harmless:
        lines.append("a similarity that shapes: without a passed gate it may cost time, but not change the best policy")
    elif not verdict.passed:
        lines.append(f"{verdict}: what is learned from these rewards may be how to deceive the labeller")
    return Reply(answer, lines)
