"""What `sim_node` puts behind the topics: the scene of a task, or one in which a camera can be calibrated."""

from __future__ import annotations

from pathlib import Path

from calibration.result import SimulatedArm, load_result
from robot_rl.config.components import SimulationConfig
from robot_rl.config.nodes import SimNodeConfig
from robot_rl.env.task import Workcell, WorkcellOptions
from robot_rl.errors import ConfigError, PluginError
from robot_rl.registry import make_workcell


def mirror_workcell(config: SimNodeConfig) -> tuple[Workcell, tuple[int, int]]:
    """The simulated workcell that the parameters ask for, and height and width of its frames [px].

    Raises:
        CalibrationError: if the file `arm` is no result of `robot-rl calibrate sim`, or of another robot.
        ConfigError: if a board is to be seen by more or less than one camera.
        PluginError: if a board is asked for and OpenCV is not installed.
        UnknownNameError: if there is no such task or camera.
    """
    simulation = SimulationConfig()
    if config.arm:
        arm, _ = load_result(Path(config.arm).expanduser(), SimulatedArm)
        arm.require(robot=config.robot or None)
        simulation = arm.settings
    size = (config.image_size, config.image_size)
    options = WorkcellOptions(config.cameras, size, realtime=not config.lockstep, simulation=simulation)
    return _with_board(config, options) if config.board else (make_workcell(config.task, options), size)


def _with_board(config: SimNodeConfig, options: WorkcellOptions) -> tuple[Workcell, tuple[int, int]]:
    if len(config.cameras) != 1:
        raise ConfigError(f"with a board there is one camera; cameras are {', '.join(config.cameras) or 'none'}")
    try:
        from calibration.board import Board
    except ImportError as error:
        raise PluginError(f"a board needs OpenCV ({error}): pip install 'robot_rl[calibration]'") from error
    from sim.calibration_cell import calibration_workcell, draw_truth
    from sim.calibration_rig import Plate

    board = Board.parse(config.board)
    truth = draw_truth(config.mounting, config.cameras[0], config.episode_seed)
    plate = Plate(board.black(), board.extent, board.margin)
    return calibration_workcell(plate, truth, options), (truth.lens.height, truth.lens.width)
