"""The smallest world with a reward: a place on a line that the action moves, best in the middle."""

import gymnasium
import numpy as np


class Line(gymnasium.Env):
    """The place and the action are in [-1, 1]."""

    observation_space = action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.uniform(-1.0, 1.0, 1).astype(np.float32)
        return self.place, {}

    def step(self, action):
        self.place = (self.place + 0.1 * action).clip(-1.0, 1.0)
        return self.place, -float(abs(self.place[0])), False, False, {}


gymnasium.register("line_world/Line-v0", entry_point=Line, max_episode_steps=10)
