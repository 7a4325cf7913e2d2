"""A world with goals in the form of gymnasium_robotics: a point shall be moved to where it rarely comes by chance."""

import gymnasium
import numpy as np

REACH = 0.08
LIMIT = 12


class GoalWorld(gymnasium.Env):
    """The point moves by up to 0.25 per step along each axis, in [-1, 1]^2; the goal lies anywhere."""

    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def __init__(self, falls=False):
        space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float64)
        self.observation_space = gymnasium.spaces.Dict(
            {"observation": space, "achieved_goal": space, "desired_goal": space}
        )
        self.falls = falls  # ends without success at step 3

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.place, self.goal = 0, np.zeros(2), self.np_random.uniform(-1, 1, 2)
        return self._seen(), {}

    def step(self, action):
        self.steps += 1
        self.place = np.clip(self.place + 0.25 * np.asarray(action, float), -1, 1)
        reward = self.compute_reward(self.place, self.goal, {})
        done = self.falls and self.steps == 3
        return self._seen(), reward, done, False, {"is_success": reward == 0.0}

    def compute_reward(self, achieved, desired, info):
        """0 at the goal, -1 elsewhere, as gymnasium_robotics does."""
        assert np.shape(achieved) == (2,)
        return -float(np.linalg.norm(np.subtract(achieved, desired)) > REACH)

    def _seen(self):
        return {"observation": self.place.copy(), "achieved_goal": self.place.copy(), "desired_goal": self.goal.copy()}


gymnasium.register("goal_world/Point-v0", entry_point=GoalWorld, max_episode_steps=LIMIT)
