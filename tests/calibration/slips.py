"""Recordings of a hand-eye calibration during which the camera or the board moved."""

import dataclasses

import numpy as np
from synthetic import random_rig, shaken

from calibration.hand_eye.problem import Guess
from robot_rl.geometry import Pose

DEGREES_PER_MM = 0.8 / 3.0
"""Turn that belongs to a slip: a mount that moves by 3 mm turns by 0.8 degrees."""


def slip(seed, mm):
    """Return a movement by so many millimetres and the turn that belongs to it, in a random direction."""
    rng = np.random.default_rng([seed, 9])
    shift, turn = rng.standard_normal((2, 3))
    angle = np.radians(DEGREES_PER_MM * mm)
    return Pose.from_rotvec(1e-3 * mm * shift / np.linalg.norm(shift), angle * turn / np.linalg.norm(turn))


def rig_that_moves(seed, mounting, path, moves="camera", count=15, wrong=()):
    """Sightings of a random rig, and the truth before anything moved.

    Args:
        seed: Of rig and noise.
        mounting: `eye_in_hand` or `eye_to_hand`.
        path: Movement so far at each view [mm], shape (count,).
        moves: `camera` or `board`.
        wrong: Indices of views whose pose of the arm is off by about a centimetre and a degree.
    """
    sightings, truth = random_rig(seed, mounting, count)
    rng, moved = np.random.default_rng([seed, 10]), moving(sightings, truth, seed, path, moves)
    for i in sorted(wrong):
        moved[i] = dataclasses.replace(moved[i], T_base_tcp=shaken(moved[i].T_base_tcp, rng, 0.01, 0.02))
    return moved, truth


def moving(sightings, truth, seed, path, moves="camera"):
    """Return the same pictures with the arm where it is if the camera or the board moves along a path [mm].

    The noise of the arm stays.
    """
    answer = []
    for sighting, mm in zip(sightings, path, strict=True):
        T_base_tcp = _moved(truth, slip(seed, mm), moves).predict_tcp(truth.predict_board(sighting.T_base_tcp))
        answer.append(dataclasses.replace(sighting, T_base_tcp=T_base_tcp))
    return answer


def steps(mm, first, count=15):
    """Path of a movement by so many millimetres before view `first`."""
    return np.where(np.arange(count) >= first, mm, 0.0)


def moved_camera(truth, seed, mm):
    """Return the pose X of the camera after the slip."""
    return _moved(truth, slip(seed, mm), "camera").X


def _moved(truth, change, moves):
    if moves == "camera":
        return Guess(truth.mounting, truth.X @ change, truth.Y, ())
    return Guess(truth.mounting, truth.X, truth.Y @ change, ())
