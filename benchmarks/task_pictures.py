"""Pictures of simulated tasks for the documentation: moments of one scripted demonstration, from both cameras.

python benchmarks/task_pictures.py ram_insert usb_pick_insert cable_clip whip   # docs/images/tasks/<task>.png
python benchmarks/task_pictures.py pan_flip --seed 100 --steps 0 20 28 31 32 34   # chosen moments
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.errors import ConfigError

OUT = Path(__file__).resolve().parents[1] / "docs" / "images" / "tasks"
SIZE = (240, 320)
"""Height and width of one picture [px]."""
MOMENTS = 4
COLOURS = 128


def demonstration(task: str, seed: int) -> list[list[np.ndarray]]:
    """Play a demonstration; return the pictures of each step, by camera.

    Raises:
        ConfigError: if there is no camera, or it did not succeed.
    """
    cell = make_workcell(task)
    env = RobotEnv(cell)
    if cell.view is None or not env.spec_task.cameras:
        raise ConfigError(f"{task} has no camera")
    env.reset(seed=seed, options={"demonstrate": True})
    pictures, ended, success = [], False, False
    while not ended:
        *_, terminated, truncated, info = env.step(np.zeros(env.spec_task.action_size, np.float32))
        pictures.append([cell.view(camera, SIZE) for camera in env.spec_task.cameras])
        ended, success = terminated or truncated, info["step"].success
    env.close()
    if not success:
        raise ConfigError(f"{task}: the demonstration of seed {seed} failed; choose another --seed")
    return pictures


def main() -> None:
    """Write a picture of each task: moments beside each other, cameras below each other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="+", metavar="TASK")
    parser.add_argument("--seed", type=int, default=111)
    parser.add_argument("--steps", type=int, nargs="+", help="which are shown; by default evenly spaced ones")
    arguments = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    for task in arguments.tasks:
        pictures = demonstration(task, arguments.seed)
        shown = [pictures[i] for i in arguments.steps or np.linspace(0, len(pictures) - 1, MOMENTS).astype(int)]
        whole = np.concatenate([np.concatenate(moment, axis=0) for moment in shown], axis=1)
        image = Image.fromarray(whole).quantize(COLOURS, dither=Image.Dither.NONE)
        image.save(OUT / f"{task}.png", optimize=True)
        print(OUT / f"{task}.png")


if __name__ == "__main__":
    main()
