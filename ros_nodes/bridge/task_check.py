"""Comparison of what a run needs with the task that the other nodes run."""

from __future__ import annotations

from dataclasses import asdict

from robot_rl.config.components import SimulationConfig
from robot_rl.config.randomization import RandomizationConfig, WorldConfig
from robot_rl.env.action_mapping import check_no_wrench
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import GraphError, UnknownNameError
from ros_nodes.interface.task_messages import TaskHead


def check_task(head: TaskHead, task: str, options: WorkcellOptions) -> None:
    """Check that the run fits the task that is running.

    Raises:
        GraphError: if the task, the simulated arm, the randomization or the size of the images is another.
        ConfigError: if the task commands a wrench, and the arm here follows none.
        UnknownNameError: if a camera is not published.
    """
    if task != head.spec.name:
        raise GraphError(f"the run is of task {task}, but the task that is running here is {head.spec.name}")
    if head.simulation is None:
        check_no_wrench(head.spec, "an arm behind robot_node")
    if options.simulation != (head.simulation or SimulationConfig()):
        here = "a real one" if head.simulation is None else _set(head.simulation)
        raise GraphError(
            f"the run is for an arm whose `simulation` is {_set(options.simulation)}, the arm here is {here}; give "
            "sim_node the file (arm:=FILE) and the run its numbers (--config, from `calibrate sim --train-config`)"
        )
    if (options.randomization, options.world) != (RandomizationConfig(), WorldConfig()):
        raise GraphError(
            "randomization and world are for a simulation in the process of the run; here leave both at their defaults"
        )
    for camera in options.cameras:
        if camera not in head.cameras:
            raise UnknownNameError("camera", camera, head.cameras)
    if options.cameras and options.image_size != head.image_size:
        raise GraphError(
            f"the policy sees {options.image_size[1]} x {options.image_size[0]} px, but the cameras publish "
            f"{head.image_size[1]} x {head.image_size[0]} px; set both alike"
        )


def _set(simulation: SimulationConfig) -> str:
    """List the settings that are set, for a message."""
    return (
        ", ".join(f"{key} {value:g}" for key, value in asdict(simulation).items() if value is not None) or "the task's"
    )
