"""The program that serves a checkpoint of LeRobot from the interpreter in which LeRobot is installed.

It imports nothing of ours but `guest_messages.py`, which lies beside it. Written for LeRobot 0.4 (0.4.4 was tested),
whose policies have `predict_action_chunk`, and pipelines of processors that are saved with a checkpoint.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

if __package__:
    from robot_rl.adapters.guest_messages import GuestError, one_line, serve
else:  # it is the program, and its folder the first in which modules are found
    from guest_messages import GuestError, one_line, serve  # type: ignore[import-not-found,no-redef]

_CALLS = ("begin", "plan")
_IMAGES = "observation.images"


class LeRobotPolicy:
    """A policy of LeRobot with its processors.

    Args:
        path: Directory of the checkpoint, `pretrained_model`.
    """

    def __init__(self, path: str) -> None:
        import torch
        from lerobot.configs.policies import PreTrainedConfig
        from lerobot.policies.factory import get_policy_class, make_pre_post_processors

        self._torch = torch
        torch.set_num_threads(1)
        config: Any = PreTrainedConfig.from_pretrained(path)
        config.device = "cuda" if torch.cuda.is_available() else "cpu"
        self._policy: Any = get_policy_class(config.type).from_pretrained(path, config=config)
        self._policy.eval()
        overrides = {"device_processor": {"device": config.device}}
        self._before, self._after = make_pre_post_processors(
            config, pretrained_path=path, preprocessor_overrides=overrides
        )
        self._config = config

    def begin(self, seed: int) -> None:
        """Start an episode."""
        self._torch.manual_seed(seed)
        self._policy.reset()

    def plan(self, history: Sequence[Mapping[str, np.ndarray]], task: str) -> np.ndarray:
        """Return a chunk (H, n) of actions for the newest observations, oldest first."""
        with self._torch.inference_mode():
            for observation in history:
                batch = self._before({**{key: self._tensor(value) for key, value in observation.items()}, "task": task})
                if self._config.image_features and hasattr(self._policy, "_queues"):
                    pictures = [batch[key] for key in self._config.image_features]
                    batch = {**batch, _IMAGES: self._torch.stack(pictures, dim=-4)}
                self._remember(batch)
            actions = self._policy.predict_action_chunk(batch)
            return np.stack([self._after(row)[0].float().cpu().numpy() for row in actions.unbind(1)])

    def close(self) -> None:
        """Do nothing: the process ends."""

    def _tensor(self, value: np.ndarray) -> Any:
        """Return a vector as it is, and a picture (height, width, 3), uint8, as (3, height, width) in [0, 1]."""
        tensor = self._torch.from_numpy(np.array(value))
        return tensor.permute(2, 0, 1).float() / 255 if tensor.ndim == 3 else tensor.float()

    def _remember(self, batch: Mapping[str, Any]) -> None:
        """Add an observation to the queues from which a policy of several observations plans."""
        if getattr(self._config, "n_obs_steps", 1) > 1 and hasattr(self._policy, "_queues"):
            from lerobot.policies.utils import populate_queues

            known = {key: value for key, value in batch.items() if key in self._policy._queues and key != "action"}
            self._policy._queues = populate_queues(self._policy._queues, known)


def _make(request: Mapping[str, Any]) -> tuple[LeRobotPolicy, str]:
    try:
        policy = LeRobotPolicy(request["path"])
    except ImportError as error:
        raise GuestError(f"LeRobot is not installed in {sys.executable}, or of another version: {error}") from error
    except Exception as error:
        raise GuestError(f"{request['path']} cannot be loaded: {one_line(error)}") from error
    return policy, "ready"


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), _make, _CALLS)
