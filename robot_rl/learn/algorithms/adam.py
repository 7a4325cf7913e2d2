"""Adam (Kingma 2015) as a function of tensors, so that a compiled update can hold the whole step.

The arithmetic is torch's. Only the state is ours: no compiler can follow the steps of `torch.optim.Adam`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

from robot_rl.learn.parallel.ranks import ALONE, Ranks

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """The optimizer: changes parameters in place so that losses become smaller.

    Args:
        parameters: The parameters that it changes; nothing else receives a gradient.
        learning_rate: Step size; a scalar on their device may change between the steps.
        ranks: The processes whose mean gradient is followed.
    """

    def __init__(self, parameters: Iterable[Tensor], learning_rate: float | Tensor, ranks: Ranks = ALONE) -> None:
        self._parameters, self._learning_rate, self._ranks = list(parameters), learning_rate, ranks
        self._means = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._squares = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._steps = [torch.zeros((), device=parameter.device) for parameter in self._parameters]

    def minimize(self, loss: Tensor, *, allow_unused: bool = False) -> Tensor:
        """Make one step down the gradient of `loss`; return the norm of the gradient over all parameters, a scalar.

        Args:
            loss: A scalar.
            allow_unused: Whether there may be parameters that have no part in it; they stay as they are.

        Raises:
            RuntimeError: if there are such parameters, and they may not.
            LinkError: if another process that learns along is gone.
        """
        gradients = torch.autograd.grad(loss, self._parameters, allow_unused=allow_unused)
        columns = (self._parameters, gradients, self._means, self._squares, self._steps)
        parameters, slopes, means, squares, steps = (
            [value for value, gradient in zip(column, gradients, strict=True) if gradient is not None]
            for column in columns
        )
        slopes = self._ranks.average(slopes)
        compiling = torch.compiler.is_compiling()  # a compiler fuses the single operations better with what is around
        with torch.no_grad():
            adam(
                parameters,
                slopes,
                means,
                squares,
                [],
                steps,
                foreach=compiling,
                fused=not compiling,
                capturable=compiling or loss.is_cuda,  # decides nothing by how many steps there were: fit for a graph
                amsgrad=False,
                beta1=BETA1,
                beta2=BETA2,
                lr=self._learning_rate,
                weight_decay=0.0,
                eps=EPSILON,
                maximize=False,
            )
            return torch.linalg.vector_norm(torch.stack(torch._foreach_norm(slopes)))

    def state_dict(self) -> dict[str, Any]:
        """Return all that the next step depends on, but for the parameters."""
        return {"means": self._means, "squares": self._squares, "steps": self._steps}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned.

        Raises:
            KeyError: if a part is missing.
            ValueError: if there are other parameters than here.
            RuntimeError: if a parameter has another shape.
        """
        for mine, name in ((self._means, "means"), (self._squares, "squares"), (self._steps, "steps")):
            for kept, given in zip(mine, state[name], strict=True):
                kept.copy_(given)


def state_of_torch(state: dict[str, Any]) -> dict[str, Any]:
    """Convert a state of `torch.optim.Adam`, after at least one step, for `Adam.load_state_dict`."""
    rows = [state["state"][i] for i in sorted(state["state"])]
    names = {"means": "exp_avg", "squares": "exp_avg_sq", "steps": "step"}
    return {mine: [row[theirs] for row in rows] for mine, theirs in names.items()}
