"""Episode stores whose frames show numbers, so that a server can tell which frame of which episode it was shown."""

import dataclasses

import numpy as np
import tagged
from model_server import stamped

from robot_rl.data.store.store import EpisodeStore

FRAMES = 20
"""Episode n shows n * FRAMES + row."""


def stamped_episode(number, steps=9, *, camera="front", success=None):
    made = tagged.valid(number, steps)
    frames = np.stack([stamped(number * FRAMES + row) for row in range(steps + 1)])
    observations = {key: column for key, column in made.observations.items() if not key.startswith("images/")}
    metadata = {"task": "push", "success": number % 2 == 0 if success is None else success}
    return dataclasses.replace(made, observations={**observations, f"images/{camera}": frames}, metadata=metadata)


def stamped_store(path, episodes=6, *, steps=9):
    """Episode n has steps + n steps, so the last stamp is odd or even in turn."""
    with EpisodeStore.create(path, {"task": "push"}) as store:
        for number in range(episodes):
            store.append(stamped_episode(number, steps + number))
    return path
