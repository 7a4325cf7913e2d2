"""The scripted policies that Meta-World brings along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def make_policy(env: Any) -> Callable[[Any], np.ndarray]:
    """Return the policy of the task that an environment is.

    Raises:
        LookupError: if it is none of Meta-World's tasks.
    """
    from metaworld.env_dict import ALL_V3_ENVIRONMENTS
    from metaworld.policies import ENV_POLICY_MAP

    for name, task in ALL_V3_ENVIRONMENTS.items():
        if isinstance(env.unwrapped, task):
            policy = ENV_POLICY_MAP[name]()
            return lambda observation: np.asarray(policy.get_action(observation))
    raise LookupError(f"{type(env.unwrapped).__name__} is no task of Meta-World")
