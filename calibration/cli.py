"""Commands `robot-rl calibrate board | intrinsics | hand-eye | time-offset | wrench | sim`. Wiring only.

The report is always written; the result is written only if it is good enough to be used.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_rl.cli.parts.command import MakeParser, Reply, add_group
from robot_rl.errors import CalibrationError, DataError

if TYPE_CHECKING:
    from calibration.guided.flow import Advice, HandEyeFlow
    from calibration.hand_eye.hand_eye import HandEyeFit
    from calibration.report.report import CalibrationReport
    from calibration.result import Calibration, Quality

_BOARD_HELP = (
    "the printed board: charuco:COLUMNSxROWS:SQUAREmm:MARKERmm or apriltag:COLUMNSxROWS:TAGmm:GAPmm, "
    "e.g. charuco:11x8:20mm:15mm or apriltag:7x5:24mm:8mm"
)
_LENSES = ("pinhole", "fisheye")
"""The keys of `calibration.result.lens.LENS_MODELS`, whose import takes time."""


def add_calibrate_commands(commands: Any, add: MakeParser) -> None:
    """Add `robot-rl calibrate` and its commands."""
    commands = add_group(
        commands,
        "calibrate",
        "measure cameras and robot; write result files with uncertainties",
        page="docs/calibration.md",
    )
    board = add(
        commands,
        "board",
        _board,
        "write a PDF of a calibration board, to scale",
        example="robot-rl calibrate board --out board.pdf",
    )
    board.add_argument("--board", default="charuco:11x8:20mm:15mm", metavar="SPEC", help=_BOARD_HELP)
    board.add_argument("--page", choices=("a4", "a3", "letter"), default="a4", help="size of the paper (default: a4)")
    board.add_argument("--out", type=Path, required=True, metavar="FILE", help="PDF file to write")

    intrinsics = add(
        commands,
        "intrinsics",
        _intrinsics,
        "calibrate focal length, principal point [px] and distortion of a camera",
        example="robot-rl calibrate intrinsics pictures --board charuco:11x8:20mm:15mm --camera front --out lens.yaml",
    )
    intrinsics.add_argument(
        "pictures",
        type=Path,
        nargs="+",
        metavar="PICTURES",
        help="picture files, or folders of them; all of one resolution [px]",
    )
    _common(intrinsics, board=True)
    intrinsics.add_argument(
        "--camera", required=True, metavar="NAME", help="name of the camera, preferably its serial number"
    )
    intrinsics.add_argument(
        "--model",
        choices=_LENSES,
        default="pinhole",
        help="kind of lens (default: pinhole; fisheye for more than 120 deg)",
    )
    intrinsics.add_argument(
        "--camera-info", type=Path, metavar="FILE", help="also write a camera_info YAML file for ROS drivers"
    )

    hand_eye = add(
        commands,
        "hand-eye",
        _hand_eye,
        "calibrate the pose [m, rad] of a camera on the arm or beside it",
        example="robot-rl calibrate hand-eye pictures --board charuco:11x8:20mm:15mm --intrinsics lens.yaml "
        "--mounting eye-in-hand --robot fr3 --out pose.yaml",
    )
    hand_eye.add_argument(
        "pictures", type=Path, metavar="FOLDER", help="folder of pictures of the board, taken with the arm at rest"
    )
    hand_eye.add_argument(
        "--poses",
        type=Path,
        metavar="FILE",
        help="table image,x,y,z,qw,qx,qy,qz in order of time, and stamp [ns] if known: tcp in the base frame, x y z in "
        "m (default: poses.csv in the folder)",
    )
    hand_eye.add_argument(
        "--split",
        metavar="IMAGE",
        help="first picture after the camera or the board moved: fit both parts; the later one is the result, the "
        "earlier one is written beside it with `_before` in its name",
    )
    _common(hand_eye, board=True)
    hand_eye.add_argument("--intrinsics", type=Path, required=True, metavar="FILE", help="result or camera_info file")
    hand_eye.add_argument(
        "--mounting",
        choices=("eye-in-hand", "eye-to-hand"),
        required=True,
        help="eye-in-hand: camera on the tool; eye-to-hand: camera beside the arm",
    )
    hand_eye.add_argument("--robot", required=True, metavar="NAME", help="name of the arm and tool")

    offset = add(
        commands,
        "time-offset",
        _time_offset,
        "calibrate the delay [s] of a camera, from a short motion in front of a board",
        example="robot-rl calibrate time-offset motion --board charuco:11x8:20mm:15mm "
        "--hand-eye pose.yaml --out delay.yaml",
    )
    offset.add_argument(
        "recording",
        type=Path,
        metavar="FOLDER",
        help="folder of pictures, frames.csv (image,stamp) and trajectory.csv (stamp,x,y,z,qw,qx,qy,qz: tcp in the "
        "base frame); x y z in m, stamps in ns on one clock",
    )
    _common(offset, board=True)
    offset.add_argument("--hand-eye", type=Path, required=True, metavar="FILE", help="hand-eye result of this camera")

    wrench = add(
        commands,
        "wrench",
        _wrench,
        "calibrate bias [N, Nm], mass [kg] and centre of mass [m] of the tool, from poses at rest",
        example="robot-rl calibrate wrench poses.csv --robot fr3 --out tool.yaml",
    )
    wrench.add_argument(
        "table",
        type=Path,
        metavar="TABLE",
        help="table qw,qx,qy,qz (sensor in the base frame), fx,fy,fz [N], tx,ty,tz [Nm] (reading in its own frame), in "
        "order of time",
    )
    _common(wrench)
    wrench.add_argument("--robot", required=True, metavar="NAME", help="name of the arm and tool")
    wrench.add_argument(
        "--mass",
        type=float,
        metavar="KG",
        help="mass of the tool beyond the sensor, by a scale [kg]: reveals a wrong gain, which looks like a mass",
    )

    sim = add(
        commands,
        "sim",
        _sim,
        "identify friction [Nm], stiffness [N/m, Nm/rad] and delay [s] of the simulated arm, from recorded episodes",
        example="robot-rl calibrate sim runs/real/episodes --task peg_insert --robot fr3 --out arm.yaml",
    )
    sim.add_argument(
        "store",
        type=Path,
        metavar="STORE",
        help="store of episodes of the real arm; that of a run is its folder `episodes`",
    )
    sim.add_argument("--task", required=True, help="task of the episodes, whose simulation is fitted")
    _common(sim)
    sim.add_argument("--robot", required=True, metavar="NAME", help="name of the arm and controller")
    sim.add_argument(
        "--train-config", type=Path, metavar="FILE", help="also write a configuration for `robot-rl train --config`"
    )


def _common(parser: argparse.ArgumentParser, *, board: bool = False) -> None:
    if board:
        parser.add_argument("--board", required=True, metavar="SPEC", help=_BOARD_HELP)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="result file to write (YAML)")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="report to write (default: the result file with suffix .html)"
    )


# --------------------------------------------------------------------- commands


def _board(arguments: argparse.Namespace) -> Reply:
    _check_opencv()
    from calibration.camera.board import Board
    from calibration.camera.board_pdf import write_board_pdf

    board = Board.parse(arguments.board)
    write_board_pdf(board, arguments.out, arguments.page)
    lines = [f"{board} in {arguments.out}; print it at 100 %, glue it onto a flat plate, and measure it"]
    return Reply({"board": str(board), "out": arguments.out, "corners": len(board.corners)}, lines)


def _intrinsics(arguments: argparse.Namespace) -> Reply:
    _check_opencv()
    _check_outputs(arguments)
    from calibration.camera.board import Board
    from calibration.guided.flow import IntrinsicsFlow
    from calibration.guided.recording import picture_files, read_picture
    from calibration.report.camera_reports import intrinsics_report
    from calibration.result import write_camera_info
    from calibration.result.lens import LENS_MODELS

    flow = IntrinsicsFlow(Board.parse(arguments.board), arguments.camera, LENS_MODELS[arguments.model])
    files = picture_files(arguments.pictures)
    for number, file in enumerate(files, 1):
        _print_advice(number, len(files), file.name, flow.add(read_picture(file), file.name))
    fit = flow.finish()
    reply = _finish(arguments, fit.result, fit.quality, intrinsics_report(fit))
    if arguments.camera_info is not None and not reply.code:
        write_camera_info(fit.result, arguments.camera_info)
        reply.lines.append(f"camera_info: {arguments.camera_info}")
    return reply


def _hand_eye(arguments: argparse.Namespace) -> Reply:
    _check_opencv()
    _check_outputs(arguments)
    from calibration.camera.board import Board
    from calibration.guided.flow import HandEyeFlow
    from calibration.guided.recording import picture_files, read_picture, read_pose_stamps, read_poses, split_at
    from calibration.report.camera_reports import hand_eye_report
    from calibration.result import load_intrinsics

    board, intrinsics = Board.parse(arguments.board), load_intrinsics(arguments.intrinsics)
    table = arguments.poses or arguments.pictures / "poses.csv"
    poses, stamps = read_poses(table), read_pose_stamps(table)
    files = {file.name: file for file in picture_files([arguments.pictures])}
    if missing := sorted(files.keys() ^ poses.keys()):
        raise DataError(f"{table} and {arguments.pictures} do not match; only in one of them: {', '.join(missing[:5])}")
    names = sorted(poses, key=stamps.__getitem__) if stamps else list(poses)
    parts = split_at(names, arguments.split) if arguments.split else [names]
    flows = []
    for part in parts:
        flow = HandEyeFlow(board, intrinsics, arguments.mounting.replace("-", "_"), arguments.robot)
        for number, name in enumerate(part, 1):
            picture = read_picture(files[name])
            _print_advice(number, len(part), name, flow.add(picture, name, poses[name], stamps.get(name)))
        flows.append(flow)
    fit = flows[-1].finish()
    reply = _finish(arguments, fit.result, fit.quality, hand_eye_report(fit))
    return _with_earlier_part(arguments, reply, flows[0], fit) if arguments.split else reply


def _with_earlier_part(arguments: argparse.Namespace, reply: Reply, flow: HandEyeFlow, later: HandEyeFit) -> Reply:
    """Fit the pictures before `--split`, too, and add the outcome to the reply about the later ones."""
    import numpy as np

    from calibration.report.camera_reports import hand_eye_report

    what = f"the pictures before {arguments.split}"
    try:
        fit = flow.finish()
    except CalibrationError as error:
        return Reply({**reply.answer, "before": None}, [*reply.lines, f"{what}: {error}"], reply.code)
    files = argparse.Namespace(out=arguments.out.with_stem(f"{arguments.out.stem}_before"), report=None)
    before = _finish(files, fit.result, fit.quality, hand_eye_report(fit))
    change = (fit.result.T_parent_camera.inverse() @ later.result.T_parent_camera).vector()
    moved = f"{1e3 * np.linalg.norm(change[:3]):.2f} mm and {np.degrees(np.linalg.norm(change[3:])):.2f} deg"
    lines = [*reply.lines, f"{what}: {before.lines[0]}", *before.lines[1:], f"the camera moved by {moved} in between"]
    return Reply({**reply.answer, "before": before.answer}, lines, reply.code)


def _time_offset(arguments: argparse.Namespace) -> Reply:
    _check_opencv()
    _check_outputs(arguments)
    from calibration.arm.time_offset import StampedImage, calibrate_time_offset
    from calibration.camera.board import Board
    from calibration.camera.view import BadViewError, BoardDetector
    from calibration.guided.recording import read_frames, read_picture, read_trajectory
    from calibration.report.motion_reports import time_offset_report
    from calibration.result import HandEye, load_result

    folder, detector = arguments.recording, BoardDetector(Board.parse(arguments.board))
    hand_eye, _ = load_result(arguments.hand_eye, HandEye)
    trajectory, listed = read_trajectory(folder / "trajectory.csv"), read_frames(folder / "frames.csv")
    frames, rejected = [], dict[str, str]()
    for number, (name, stamp) in enumerate(listed.items(), 1):
        try:
            frames.append(StampedImage(detector.detect(read_picture(folder / name), name), stamp))
        except BadViewError as error:
            rejected[name] = str(error)
        if number % 20 == 0 or number == len(listed):
            print(f"[{number}/{len(listed)}] {len(frames)} frames show the board", file=sys.stderr)
    fit = calibrate_time_offset(hand_eye, frames, trajectory, rejected=rejected)
    return _finish(arguments, fit.result, fit.quality, time_offset_report(fit))


def _wrench(arguments: argparse.Namespace) -> Reply:
    _check_opencv()
    _check_outputs(arguments)
    from calibration.arm.wrench import calibrate_wrench
    from calibration.guided.recording import read_wrenches
    from calibration.report.motion_reports import wrench_report

    rotations, wrenches = read_wrenches(arguments.table)
    names = [f"row {i}" for i in range(1, len(wrenches) + 1)]
    fit = calibrate_wrench(rotations, wrenches, arguments.robot, names=names, weighed=arguments.mass)
    return _finish(arguments, fit.result, fit.quality, wrench_report(fit))


def _sim(arguments: argparse.Namespace) -> Reply:
    from calibration.arm.arm_identification import identify_arm
    from calibration.arm.episode_motions import motions_of
    from calibration.report.motion_reports import simulated_arm_report
    from robot_rl.data.store.store import EpisodeStore
    from robot_rl.env.registry import make_workcell

    _check_outputs(arguments)
    cell = make_workcell(arguments.task)
    try:
        if cell.playback is None:
            raise CalibrationError(f"task {arguments.task} has no simulation; give a simulated task")
        with EpisodeStore.open(arguments.store) as store:
            tasks = {row.facts.task for row in store.summaries()}
            if tasks != {arguments.task}:
                raise DataError(
                    f"{arguments.store} has episodes of {', '.join(sorted(tasks))}, not of {arguments.task}"
                )
            motions = list(motions_of(store.episodes(), cell.task.spec))
        print(f"{len(motions)} motions in free space; this takes minutes", file=sys.stderr)
        fit = identify_arm(cell.playback, motions, arguments.robot)
    finally:
        cell.close()
    reply = _finish(arguments, fit.result, fit.quality, simulated_arm_report(fit))
    if arguments.train_config is not None and not reply.code:
        import yaml

        from robot_rl.system.atomic_file import write_result

        text = yaml.safe_dump({"simulation": asdict(fit.result.settings)}, sort_keys=False)
        write_result(arguments.train_config, text)
        reply.lines.append(f"use it: robot-rl train {arguments.task} --config {arguments.train_config}")
    return reply


# ---------------------------------------------------------------------- helpers


def _check_opencv() -> None:
    try:
        import cv2
    except ImportError as error:
        raise CalibrationError(f"needs OpenCV ({error}): pip install 'robot_rl[calibration]'") from error
    if not hasattr(cv2, "calibrateHandEye"):
        raise CalibrationError(f"OpenCV {cv2.__version__} lacks calibrateHandEye: pip install 'robot_rl[calibration]'")


def _check_outputs(arguments: argparse.Namespace) -> None:
    """Find out before the work whether its files can be written."""
    from robot_rl.system.atomic_file import check_can_be_written

    for name in ("out", "report", "camera_info", "train_config"):
        if (file := getattr(arguments, name, None)) is not None:
            check_can_be_written(file)


def _print_advice(number: int, total: int, name: str, advice: Advice) -> None:
    """Print one line of progress for a picture."""
    print(f"[{number}/{total}] {name}: {advice.summary()}", file=sys.stderr)


def _finish(arguments: argparse.Namespace, result: Calibration, quality: Quality, report: CalibrationReport) -> Reply:
    """Write the report and, if it is good, the result."""
    from calibration.report.report import write_result_and_report

    page = arguments.report or arguments.out.with_suffix(".html")
    lines = write_result_and_report(result, quality, report, arguments.out, page)
    answer = {
        "quality": asdict(quality),
        "result": asdict(result),
        "report": page,
        "out": arguments.out if quality.good else None,
    }
    return Reply(answer, lines, int(not quality.good))
