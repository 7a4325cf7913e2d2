"""What `sim_node` puts behind the topics: the scene of a task, or one in which a camera can be calibrated."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from calibration.result import CameraIntrinsics, SimulatedArm, load_intrinsics, load_result
from robot_rl.config.components import SimulationConfig
from robot_rl.config.nodes import SimNodeConfig
from robot_rl.env.registry import make_workcell
from robot_rl.env.task import Workcell, WorkcellOptions
from robot_rl.env.task_arms import TaskArms
from robot_rl.errors import ConfigError, PluginError
from robot_rl.run.directory.calibrations import CalibrationRecord, read_record
from ros_nodes.node.parameters import named_values
from ros_nodes.nodes.sim_turns import SimTurns
from sim.arm.urdf import arm_urdf
from sim.calibration.cell import RigTruth, calibration_workcell, draw_truth
from sim.calibration.rig import Plate


class Mirror(NamedTuple):
    """What is simulated.

    Attributes:
        cell: The workcell.
        image_size: Height and width of its frames [px].
        simulation: How the arm moves, where that differs from the task's own.
        records: Calibrations by the camera whose lens they describe.
        lenses: Those lenses.
        description: The arm as URDF.
        arms: The arms as the task uses them.
        turns: The tasks that take turns in a practice, that of `cell` first; None: it is alone.
    """

    cell: Workcell
    image_size: tuple[int, int]
    simulation: SimulationConfig
    records: dict[str, CalibrationRecord]
    lenses: dict[str, CameraIntrinsics]
    description: str
    arms: TaskArms
    turns: SimTurns | None


def make_mirror(config: SimNodeConfig) -> Mirror:
    """Return the simulated workcell that the parameters ask for.

    Raises:
        CalibrationError: if a file is no such calibration, or of another camera, resolution or robot.
        ConfigError: if a board is to be seen by more or less than one camera, or the task cannot be practised.
        PluginError: if a board is asked for and OpenCV is not installed.
        UnknownNameError: if there is no such task or camera.
    """
    simulation, robot = SimulationConfig(), config.robot or None
    if config.arm:
        arm, _ = load_result(Path(config.arm).expanduser(), SimulatedArm)
        arm.require(robot=robot)
        simulation = arm.settings
    named = named_values("calibrations", config.calibrations, config.cameras)
    files = {name: Path(file).expanduser() for name, file in named.items()}
    lenses = {name: load_intrinsics(file, camera=name, robot=robot) for name, file in files.items()}
    truth = _truth(config) if config.board else None
    size = (truth.lens.height, truth.lens.width) if truth is not None else (config.image_size, config.image_size)
    for lens in lenses.values():
        lens.require(size=size[::-1])
    options = WorkcellOptions(config.cameras, size, realtime=not config.lockstep, simulation=simulation)
    cell = make_workcell(config.task, options) if truth is None else _with_board(config.board, truth, options)
    records = {name: read_record(f"{name}={file}") for name, file in files.items()}
    turns = _turns(cell, config, options) if config.practice else None
    return Mirror(cell, size, simulation, records, lenses, arm_urdf(), TaskArms(cell.task.spec), turns)


def _turns(cell: Workcell, config: SimNodeConfig, options: WorkcellOptions) -> SimTurns:
    """Return a task and its reverse, which take turns.

    Raises:
        ConfigError: if it has none, one of them needs a reset, or a person is to lead.
    """
    spec = cell.task.spec
    if config.operator == "person":
        raise ConfigError(
            "a practice over topics has no person yet: leave console out, or practise in one process: "
            f"robot-rl practice {spec.name} --console"
        )
    if not spec.reverse:
        raise ConfigError(
            f"{spec.name} names no reverse, so it cannot be practised over topics; practise a task that does, e.g. "
            "relocate_forward"
        )
    return SimTurns({spec.name: cell, spec.reverse: make_workcell(spec.reverse, options)})


def _truth(config: SimNodeConfig) -> RigTruth:
    if len(config.cameras) != 1:
        raise ConfigError(f"with a board there is one camera; cameras are {', '.join(config.cameras) or 'none'}")
    return draw_truth(config.mounting, config.cameras[0], config.episode_seed)


def _with_board(board: str, truth: RigTruth, options: WorkcellOptions) -> Workcell:
    try:
        from calibration.camera.board import Board
    except ImportError as error:
        raise PluginError(f"a board needs OpenCV ({error}): pip install 'robot_rl[calibration]'") from error
    seen = Board.parse(board)
    return calibration_workcell(Plate(seen.black_rectangles(), seen.extent, seen.margin), truth, options)
