"""Pictures whose meaning is known: a red square on a table of changing brightness, and a green goal to push it upon."""

import dataclasses

import numpy as np
import tagged

from robot_rl.data.store.store import EpisodeStore


def scene(rng, distance):
    """The square beside the goal: upon it at distance 0."""
    frame = np.full((64, 64, 3), rng.integers(90, 160), np.float64)
    frame[40:56, 40:56] = (40, 180, 40)
    at = round(44 - 34 * distance)
    frame[at : at + 8, at : at + 8] = (220, 30, 30)
    return np.clip(frame + rng.normal(0, 6, frame.shape), 0, 255).astype(np.uint8)


def pushed_episode(number, *, arrives, steps=11, **changes):
    """The square comes near and, if it arrives, is upon the goal in the last third; every step says whether it is."""
    rng, made = np.random.default_rng(number), tagged.valid(number, steps)
    end = 0.0 if arrives else rng.uniform(0.25, 0.7)
    distance = np.concatenate([np.linspace(1.0, end, 8), np.full(steps - 7, end)])
    frames = np.stack([scene(rng, one) for one in distance])
    states = {key: column for key, column in made.observations.items() if not key.startswith("images/")}
    observations = {**states, "state/tcp_pose": distance[:, None].astype(np.float32), "images/front": frames}
    reward = (distance[1:] == 0.0).astype(np.float32)
    metadata = {"task": "push", "success": arrives}
    return dataclasses.replace(made, observations=observations, reward=reward, metadata=metadata, **changes)


def pushed_moments(path, episodes=24, first=0):
    """In two of three episodes it arrives."""
    with EpisodeStore.create(path, {"task": "push"}) as store:
        for number in range(first, first + episodes):
            store.append(pushed_episode(number, arrives=number % 3 > 0))
    return path
