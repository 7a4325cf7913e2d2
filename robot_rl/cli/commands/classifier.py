"""`robot-rl classifier record | train | report`: a classifier that detects in frames whether the task is done."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_rl.cli.commands.label_report import figure_line
from robot_rl.cli.parts.command import MakeParser, Reply, natural, positive, share_below_one
from robot_rl.cli.parts.operator_flags import add_operator_flags, add_robot_flag, operator_options
from robot_rl.system.process import one_thread

if TYPE_CHECKING:
    from robot_rl.cell.robot_file import RobotFile


def add_classifier_commands(commands: Any, add: MakeParser) -> None:
    """Add the sub-commands of `robot-rl classifier`."""
    record = add(
        commands,
        "record",
        _record,
        "record frames with success and without, by a person or by the script",
        example="robot-rl classifier record peg_insert --out frames",
    )
    record.add_argument("task", metavar="TASK", help="name of the task; `robot-rl tasks` lists them")
    record.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory of the new episode store")
    record.add_argument(
        "--positives", type=positive, default=200, metavar="N", help="frames with success (default: 200)"
    )
    record.add_argument(
        "--negatives", type=positive, default=600, metavar="N", help="frames without, near misses among them (600)"
    )
    record.add_argument("--seed", type=natural, default=0, metavar="N", help="seed of resets and script (default: 0)")
    record.add_argument(
        "--camera", action="append", default=[], metavar="NAME", help="repeatable (default: all of the scene)"
    )
    record.add_argument("--size", type=positive, default=128, metavar="PX", help="of the frames (default: 128)")
    add_robot_flag(record)
    add_operator_flags(record)

    train = add(
        commands,
        "train",
        _train,
        "train a classifier on labelled episodes",
        example="robot-rl classifier train frames --out classifier.pt",
    )
    train.add_argument(
        "stores",
        type=Path,
        nargs="+",
        metavar="STORE",
        help="of `classifier record`, or any with rewards, e.g. of a run",
    )
    train.add_argument("--out", type=Path, required=True, metavar="FILE", help="the classifier")
    train.add_argument(
        "--rewards", metavar="NAME", help="overlay to take the labels from, instead of the recorded rewards"
    )
    train.add_argument("--camera", action="append", default=[], metavar="NAME", help="repeatable (default: all)")
    train.add_argument(
        "--encoder", default="bundled", metavar="NAME", help="frozen encoder, as encoder.name (default: bundled)"
    )
    train.add_argument(
        "--size", type=positive, default=128, metavar="PX", help="size of the encoder's input (default: 128)"
    )
    train.add_argument(
        "--positives", type=positive, default=200, metavar="N", help="frames with success to learn from (default: 200)"
    )
    train.add_argument("--negatives", type=positive, default=600, metavar="N", help="frames without (default: 600)")
    train.add_argument(
        "--margin", type=natural, default=2, metavar="N", help="frames before a success that are unclear (default: 2)"
    )
    train.add_argument(
        "--looks", type=natural, default=2, metavar="N", help="made-up looks of each frame: light, colour (default: 2)"
    )
    train.add_argument(
        "--max-false-positives",
        type=share_below_one,
        metavar="X",
        help="share of the failing episodes that may count as a success (default: 0.001)",
    )
    train.add_argument(
        "--consecutive", type=positive, default=3, metavar="K", help="frames that have to agree (default: 3)"
    )
    train.add_argument(
        "--gate",
        action="append",
        default=[],
        metavar="COND",
        help="no success without it, e.g. 'state/tcp_pose[2] >= 0.058'; repeatable",
    )
    train.add_argument("--seed", type=natural, default=0, metavar="N", help="of frames, looks and parts (default: 0)")

    report = add(
        commands,
        "report",
        _report,
        "report how far a classifier can be trusted, on episodes it has not seen",
        example="robot-rl classifier report classifier.pt other_frames",
    )
    report.add_argument("classifier", type=Path, metavar="FILE", help="of `classifier train`")
    report.add_argument("stores", type=Path, nargs="+", metavar="STORE", help="other labelled episodes")
    report.add_argument("--rewards", metavar="NAME", help="overlay with the labels, instead of the recorded rewards")
    report.add_argument("--out", type=Path, metavar="PNG", help="the page (default: FILE with .png)")


def _record(arguments: argparse.Namespace) -> Reply:
    from robot_rl.env.registry import check_task
    from robot_rl.env.task import WorkcellOptions

    robot, place, operator = None, None, operator_options(arguments)
    if arguments.robot is None:
        check_task(arguments.task)
    else:
        from robot_rl.cell.robot_file import read_robot_file
        from robot_rl.cell.robot_place import operator_of, robot_deployment

        robot = read_robot_file(arguments.robot.expanduser(), arguments.task)
        operator = operator_of(robot, operator)
        if operator is None:
            arguments.parser.error("--robot needs a person who leads: --console, --teleop DEVICE, or `devices`")
        place = robot_deployment(robot)
    wanted: dict[str, Any] = {
        "positives": arguments.positives,
        "negatives": arguments.negatives,
        "seed": arguments.seed,
        "observed": WorkcellOptions(
            cameras=_cameras(arguments.task, arguments.camera, robot), image_size=(arguments.size, arguments.size)
        ),
    }
    if operator is None:
        from robot_rl.reward.classifier.record import record_frames

        answer = record_frames(arguments.task, arguments.out, **wanted)
    else:
        from robot_rl.hil.classifier_frames_session import record_human_frames

        if place is not None:
            wanted["make"] = place.workcell
        answer = record_human_frames(arguments.task, arguments.out, **wanted, operator=operator)
    lines = [
        f"{answer['episodes']} episodes, {answer['successes']} with a success: {answer['positives']} frames with and "
        f"{answer['negatives']} without it, at most a few of each episode counted",
        f"train on them: robot-rl classifier train {arguments.out} --out classifier.pt",
    ]
    return Reply(answer, lines)


def _cameras(task: str, named: list[str], robot: RobotFile | None) -> tuple[str, ...]:
    """Return the cameras named, or all of the scene or of the robot's task."""
    from robot_rl.env.environment import all_cameras, no_cameras
    from robot_rl.env.registry import make_workcell

    if named:
        return tuple(dict.fromkeys(named))
    if robot is not None:
        if not robot.task_cameras:
            raise no_cameras(task)
        return robot.task_cameras
    cell = make_workcell(task)
    cell.close()
    return all_cameras(cell.task.spec.environment)


def _train(arguments: argparse.Namespace) -> Reply:
    from robot_rl.data.store.layout import find_store, read_head
    from robot_rl.reward.classifier.physical_gate import parse_gate
    from robot_rl.system.atomic_file import check_can_be_written

    check_can_be_written(arguments.out)
    gates = tuple(parse_gate(text) for text in arguments.gate)
    task = str(read_head(find_store(arguments.stores[0]))["metadata"].get("task", ""))
    one_thread()
    from robot_rl.reward.classifier.frames import LabelledStore
    from robot_rl.reward.classifier.train import ClassifierSettings, train_classifier
    from robot_rl.reward.validation.threshold import MAX_FALSE_POSITIVES
    from robot_rl.system.progress import Progress

    allowed = MAX_FALSE_POSITIVES if arguments.max_false_positives is None else arguments.max_false_positives
    settings = ClassifierSettings(
        cameras=tuple(dict.fromkeys(arguments.camera)),
        encoder=arguments.encoder,
        size=arguments.size,
        positives=arguments.positives,
        negatives=arguments.negatives,
        margin=arguments.margin,
        copies=arguments.looks,
        false_positive_rate=allowed,
        consecutive=arguments.consecutive,
        gates=gates,
        seed=arguments.seed,
    )
    stores = [LabelledStore(path, arguments.rewards) for path in arguments.stores]
    with Progress(sum(store.count() for store in stores), "look at", unit="episodes") as shown:
        classifier = train_classifier(stores, task, settings, on_episode=shown.update)
    classifier.write(arguments.out)
    facts = classifier.facts
    cameras = ", ".join(
        f"{camera} {slope:.2f}" for camera, slope in zip(classifier.heads, classifier.slopes, strict=True)
    )
    lines = [
        f"learned from {facts['positives']} frames with success and {facts['negatives']} without, "
        f"of {facts['episodes']} episodes; weight of the cameras: {cameras}",
        f"a success is p >= {classifier.threshold:.3f} in {classifier.consecutive} frames running"
        + "".join(f", and {gate}" for gate in classifier.gates),
        f"on episodes that its heads had not seen: recall {facts['held_out_recall']:.3f}, "
        f"{facts['held_out_false_positives']} of {facts['episodes']} episodes called a success too early",
        f"test it on others: robot-rl classifier report {arguments.out} STORE",
    ]
    if facts["held_out_recall"] < 0.5:
        lines.append("it misses most successes: it cannot distinguish them from near misses; the report shows which")
    return Reply(
        {"file": arguments.out, "cameras": classifier.cameras, "threshold": classifier.threshold, **facts}, lines
    )


def _report(arguments: argparse.Namespace) -> Reply:
    from robot_rl.reward.classifier.classifier import read_classifier_file
    from robot_rl.system.atomic_file import check_can_be_written

    page = arguments.out or arguments.classifier.with_suffix(".png")
    check_can_be_written(page)
    file = read_classifier_file(arguments.classifier)
    classifier = file.classifier
    one_thread()
    from robot_rl.reward.classifier.certificate import certify
    from robot_rl.reward.classifier.frames import LabelledStore
    from robot_rl.reward.classifier.report import evaluate_episodes, make_classifier_report
    from robot_rl.reward.classifier.report_plot import draw_report
    from robot_rl.reward.validation.gates import Fitness
    from robot_rl.system.progress import Progress

    stores = [LabelledStore(path, arguments.rewards) for path in arguments.stores]
    with Progress(sum(store.count() for store in stores), "evaluate", unit="episodes") as shown:
        labelled = (one for store in stores for one in store.episodes(0))
        episodes, skipped = evaluate_episodes(classifier, labelled, on_episode=shown.update)
    report = make_classifier_report(classifier, episodes, skipped)
    draw_report(classifier, report, page)
    certify(file, report)
    gate = report.gate
    lines = [f"{gate}: {len(episodes)} episodes, {sum(one.success for one in episodes)} successes"]
    lines += [f"  not met: {text}" for text in gate.failed]
    lines += [f"  probably: {text}" for text in gate.causes]
    lines += [f"  not sure: {text}" for text in gate.unsure]
    lines += [figure_line(key, figure) for key, figure in report.figures.items() if key != "calibrated"]
    lines += [f"note: {note}" for note in report.notes] + [f"page: {page}"]
    answer = {
        "fitness": gate.fitness,
        "failed": gate.failed,
        "unsure": gate.unsure,
        "causes": gate.causes,
        "episodes": len(episodes),
        "figures": {key: figure._asdict() for key, figure in report.figures.items()},
        "page": page,
    }
    return Reply(answer, lines, int(gate.fitness is Fitness.UNFIT))
