"""The backend that a configuration asks for."""

from __future__ import annotations

from robot_rl.config.labelling import LabelConfig
from robot_rl.reward.backend import Backend
from robot_rl.reward.budget import Budget
from robot_rl.reward.chat_backend import ChatBackend
from robot_rl.reward.endpoint import Endpoint
from robot_rl.reward.prompts import choose_prompt
from robot_rl.reward.query import Kind


def make_backend(config: LabelConfig, budget: Budget) -> Backend:
    """Ready to be asked; a server was reached, and has the model.

    Raises:
        ConfigError: if the settings contradict each other, or the prompt cannot be used.
        EndpointError: if the server cannot be used.
    """
    prompt = choose_prompt(Kind(config.kind), config.answer, config.prompt)
    endpoint = Endpoint(config.endpoint, budget)
    endpoint.connect()
    return ChatBackend(endpoint, prompt, config.answer, config.frames.longest_side)
