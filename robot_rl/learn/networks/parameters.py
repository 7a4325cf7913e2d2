"""Parameters that are loaded into networks: either all of them fit, or one line says what differs."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from robot_rl.errors import CheckpointError
from robot_rl.system.printable import some


def load_parameters(module: nn.Module, state: Mapping[str, Tensor], name: str) -> None:
    """Load what `state_dict` of a module like this one returned.

    Args:
        module: Receives the parameters.
        state: The parameters, by name.
        name: Of the module, for the error.

    Raises:
        CheckpointError: if names or shapes differ; then nothing is loaded.
    """
    mine = {key: tuple(value.shape) for key, value in module.state_dict().items()}
    given = {key: tuple(value.shape) for key, value in state.items()}
    different = sorted(key for key in mine.keys() | given.keys() if mine.get(key) != given.get(key))
    if different:
        shapes = [f"{key} is {given.get(key, 'missing')}, here {mine.get(key, 'missing')}" for key in different]
        raise CheckpointError(f"these parameters belong to another {name}: {some(shapes, between='; ')}")
    module.load_state_dict(state)


def load_modules(modules: Mapping[str, nn.Module], states: Mapping[str, Mapping[str, Tensor]]) -> None:
    """Load several modules by name.

    Raises:
        CheckpointError: if one is missing, or names or shapes differ.
    """
    missing = sorted(modules.keys() - states.keys())
    if missing:
        raise CheckpointError(f"there are no parameters of {', '.join(missing)}, only of {', '.join(sorted(states))}")
    for name, module in modules.items():
        load_parameters(module, states[name], name)
