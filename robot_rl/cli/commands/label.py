"""`robot-rl label`: commands that label episodes, train heads and check labellers; see also `label_report.py`."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from robot_rl.cli.commands.label_report import add_judgement_commands
from robot_rl.cli.parts.command import MakeParser, Reply, add_settings_flags, given_settings, share_below_one
from robot_rl.errors import InterruptedRunError
from robot_rl.system.process import LABELLING, make_way

logger = logging.getLogger(__name__)


def add_label_commands(commands: Any, add: MakeParser) -> None:
    """Add the sub-commands of `robot-rl label`."""
    run = add(
        commands,
        "run",
        _run,
        "have a vision-language model label the episodes of a store, beside what is recorded",
        example="robot-rl label run runs/one --url http://localhost:8000/v1",
    )
    run.add_argument("store", type=Path, nargs="?", metavar="STORE", help="directory of a store, or of a run")
    _settings(run)
    run.add_argument("--name", metavar="NAME", help="of the labels (default: their kind)")

    watch = add(
        commands,
        "watch",
        _watch,
        "label episodes as a training records them until Ctrl-C; alarm if labels go wrong",
        example="robot-rl label watch runs/one --url http://localhost:8000/v1",
    )
    watch.add_argument("store", type=Path, nargs="?", metavar="STORE", help="directory of a store, or of a run")
    _settings(watch)
    watch.add_argument("--name", metavar="NAME", help="of the labels (default: their kind)")
    watch.add_argument("--pause", type=float, default=2.0, metavar="S", help="between looks at the store (default: 2)")

    train = add(
        commands,
        "train",
        _train,
        "train a head on your own episodes, which then labels without a server",
        example="robot-rl label train runs/one --out head.pt",
    )
    train.add_argument("store", type=Path, metavar="STORE", help="directory of a store, or of a run")
    train.add_argument("--out", type=Path, required=True, metavar="FILE", help="file of the new head")
    train.add_argument(
        "--kind", choices=("success", "progress"), default="success", help="what it will label (default: success)"
    )
    train.add_argument(
        "--truth", type=Path, metavar="FILE", help="CSV of episode_id,success, instead of the episodes' own"
    )
    train.add_argument("--encoder", default="bundled", metavar="NAME", help="bundled, or random to compare with")
    train.add_argument("--size", type=int, default=128, choices=(64, 96, 128, 160, 192, 224), help="of frames [px]")
    train.add_argument("--camera", default="", metavar="NAME", help="whose frames (default: the only camera)")
    train.add_argument("--frames", type=int, metavar="N", help="of each episode, for progress (default: 32)")
    train.add_argument(
        "--share", type=share_below_one, default=0.5, metavar="X", help="of the episodes to train on (default: 0.5)"
    )
    train.add_argument("--seed", type=int, default=0, metavar="N", help="which episodes those are (default: 0)")
    train.add_argument(
        "--task", default="", metavar="TEXT", help="what the robot was to do (default: the store's task)"
    )

    add_judgement_commands(commands, add)

    doctor = add(
        commands,
        "doctor",
        _doctor,
        "try what a labeller needs, before it costs anything; exit with 1 if it fails",
        example="robot-rl label doctor --url http://localhost:8000/v1",
    )
    _settings(doctor)


def _settings(parser: argparse.ArgumentParser) -> None:
    kinds = ("success", "progress", "preference", "score")
    add_settings_flags(parser)
    parser.add_argument("--list-settings", action="store_true", help="print every setting with its default, and exit")
    parser.add_argument("--kind", choices=kinds, help="what to label (default: success)")
    parser.add_argument("--url", metavar="URL", help="OpenAI-compatible server, up to and with /v1")
    parser.add_argument("--model", metavar="NAME", help="as the server calls it (default: the only one it serves)")


def _config(arguments: argparse.Namespace) -> Any:
    from robot_rl.config.labelling import LabelConfig
    from robot_rl.config.load import load_component

    flags = {"kind": "kind", "url": "endpoint.url", "model": "endpoint.model"}
    return load_component(LabelConfig, arguments.config, given_settings(arguments, flags))


def _list_settings() -> Reply:
    from robot_rl.config.describe import list_keys
    from robot_rl.config.labelling import LabelConfig

    keys = list_keys(LabelConfig)
    return Reply([key.row() for key in keys], [key.text() for key in keys])


def _run(arguments: argparse.Namespace) -> Reply:
    if arguments.list_settings:
        return _list_settings()
    if arguments.store is None:
        arguments.parser.error("which STORE? the directory of an episode store, or of a run")
    config = _config(arguments)
    from robot_rl.data.store.layout import find_store
    from robot_rl.data.store.reward_overlays import check_overlay_name
    from robot_rl.data.store.store import EpisodeStore
    from robot_rl.reward.budget import Budget
    from robot_rl.reward.label_store import LabelStore
    from robot_rl.reward.labels.annotate import Labelling
    from robot_rl.reward.labels.annotate_new import query_identity, remembered_settings
    from robot_rl.reward.labels.units import Units
    from robot_rl.reward.labels.watch_store import instruction_of
    from robot_rl.reward.validation.evidence_needed import describe_needed
    from robot_rl.reward.validation.ground_truth import read_truth
    from robot_rl.reward.vlm.make_backend import make_backend
    from robot_rl.system.progress import Progress

    path = find_store(arguments.store)
    name = arguments.name or config.kind
    check_overlay_name(name)
    with EpisodeStore.open(path) as store:
        task = config.task or instruction_of(store.metadata.get("task"))
        units = Units(store, config, task)
        if config.kind == "success":
            logger.info(describe_needed(read_truth(store).values()))
        backend = make_backend(config, Budget(config.budget))
        with LabelStore(path, create=True) as labels, Progress(len(units), f"label {name}", unit="questions") as shown:
            identity = query_identity(backend, config, task, units.camera)
            labels.begin(name, units.kind, identity, remembered_settings(config))
            work = Labelling(labels, name, backend)
            try:
                done = work.run(units, lambda p: shown.update(p.known + p.queried + p.unanswered, cost=p.cost or None))
            except KeyboardInterrupt as error:
                raise InterruptedRunError(
                    f"stopped; {work.progress.queried} new labels are stored, the same command goes on from there"
                ) from error
            finally:
                backend.close()
            values = sum(bool(label.answer.values) for label in labels.labels(name))
    summary = {
        "store": path, "name": name, "kind": config.kind, "model": backend.identity["model"], **done.summary(),
        "with_value": values,
    }  # fmt: skip
    return Reply(summary, _in_words(summary, len(units)), int(bool(done.stopped or done.unanswered or not values)))


def _watch(arguments: argparse.Namespace) -> Reply:
    if arguments.list_settings:
        return _list_settings()
    if arguments.store is None:
        arguments.parser.error("which STORE? the directory of an episode store, or of a run")
    import signal
    import threading

    from robot_rl.cli.parts.summary_text import labelling_text
    from robot_rl.reward.labels.watch_store import LabelWatching

    stop = threading.Event()
    watching = LabelWatching(
        arguments.store, _config(arguments), arguments.name or "", notify=logger.info, alarm=logger.warning
    )

    def end(*_: object) -> None:
        if not watching.begun:
            raise KeyboardInterrupt
        stop.set()  # ends a round in order

    signal.signal(signal.SIGINT, end)
    make_way(LABELLING)
    watching.run(stop, arguments.pause)
    summary = watching.summary()
    lines = [
        f"{summary['labelled']} labels {summary['name']!r}; {summary['judged']} compared with what is known, "
        f"{summary['alarms']} alarms"
    ]
    if summary["lag_p50_s"] is not None:
        lines.append(f"lag from episode to label {summary['lag_p50_s']:.1f} s (p95 {summary['lag_p95_s']:.1f} s)")
    lines.append(labelling_text(summary))
    if summary["stopped"]:
        lines.append(f"stopped: {summary['stopped']}")
    return Reply(summary, lines, int(bool(summary["alarms"] or summary["stopped"])))


def _in_words(summary: dict[str, Any], total: int) -> list[str]:
    lines = [
        f"{summary['known'] + summary['queried']} of {total} {summary['kind']} labels {summary['name']!r} in "
        f"{summary['store']}: {summary['queried']} new, {summary['known']} known before"
    ]
    if summary["queried"]:
        read = ", ".join(f"{summary[status]} {status}" for status in ("ok", "unsure", "unparsable", "refused"))
        lines.append(f"read as: {read}")
        lines.append(
            f"{summary['prompt_tokens']} + {summary['reply_tokens']} tokens, cost {summary['cost']:.4g}, "
            f"{summary['labels_per_s']:.2f} labels/s, latency {summary['latency_p50_s']:.2f} s "
            f"(p95 {summary['latency_p95_s']:.2f} s)"
        )
    if summary["spared"]:
        lines.append(f"{summary['spared']} by the head of the cascade alone, which was sure")
    lines += [f"without a value: {count} because {reason}" for reason, count in list(summary["reasons"].items())[:5]]
    if not summary["with_value"]:
        lines.append(f"NO LABEL {summary['name']!r} HAS A VALUE, so nothing can be learned from them")
    if summary["unanswered"]:
        lines.append(f"{summary['unanswered']} were not answered; the same command queries them again")
    if summary["stopped"]:
        lines.append(f"stopped: {summary['stopped']}; the same command goes on from here")
    return lines


def _train(arguments: argparse.Namespace) -> Reply:
    from robot_rl.config.labelling import FramesConfig
    from robot_rl.data.store.layout import find_store
    from robot_rl.data.store.store import EpisodeStore
    from robot_rl.reward.labels.train_head import HeadSettings, train_for
    from robot_rl.reward.labels.watch_store import instruction_of
    from robot_rl.reward.query import QueryKind
    from robot_rl.reward.validation.ground_truth import read_truth
    from robot_rl.system.atomic_file import check_can_be_written
    from robot_rl.system.progress import Progress

    kind = QueryKind(arguments.kind)
    count = 32 if arguments.frames is None else arguments.frames
    if kind is QueryKind.SUCCESS and arguments.frames is not None:
        arguments.parser.error("--frames is for --kind progress; success is learned from first and last frames")
    if count < 2:
        arguments.parser.error("--frames must be at least 2: the first one and the last")
    check_can_be_written(arguments.out)
    with EpisodeStore.open(find_store(arguments.store)) as store:
        settings = HeadSettings(
            task=arguments.task or instruction_of(store.metadata.get("task")),
            encoder=arguments.encoder,
            size=arguments.size,
            frames=FramesConfig(camera=arguments.camera, count=count),
            share=arguments.share,
            seed=arguments.seed,
        )
        truth = read_truth(store, outcomes=arguments.truth)
        with Progress(round(arguments.share * len(store)), "look at", unit="episodes") as shown:
            head, successes = train_for(kind, store, truth, settings, shown.update)
    head.write(arguments.out)
    only = "" if kind is QueryKind.SUCCESS else f" --kind {kind}"
    lines = [
        f"trained on {len(head.trained_on)} episodes, {successes} of them successes, seen by {head.camera}",
        f"label with it: robot-rl label run STORE{only} --set backend=head --set head={arguments.out}",
        "a report leaves out the episodes that it was trained on",
    ]
    answer = {"file": arguments.out, "episodes": len(head.trained_on), "successes": successes, "camera": head.camera}
    return Reply(answer, lines)


def _doctor(arguments: argparse.Namespace) -> Reply:
    if arguments.list_settings:
        return _list_settings()
    config = _config(arguments)
    from dataclasses import asdict

    from robot_rl.reward.vlm.self_test import examine

    findings = examine(config)
    lines = [f"{'good' if finding.good else 'BAD '}  {finding.what}: {finding.facts}" for finding in findings]
    return Reply([asdict(finding) for finding in findings], lines, int(not all(finding.good for finding in findings)))
