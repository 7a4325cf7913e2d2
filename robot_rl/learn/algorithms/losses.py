"""The losses of SAC as pure functions of tensors. E critics, S of them in the target, B transitions, all batched."""

from __future__ import annotations

import torch
from torch import Tensor

from robot_rl.learn.parallel.ranks import ALONE, Ranks

CLAMP_SLACK = 0.05
"""Share of the range of returns by which an honest critic's target may leave it, as a critic is never exact."""


def critic_target(
    reward: Tensor, discount: Tensor, next_values: Tensor, return_range: tuple[float, float] | None
) -> Tensor:
    """Return the target y = R + gamma^m min_i Q'_i(s', a'), without entropy backup (Chen 2021, REDQ; Ball 2023, RLPD).

    Args:
        reward: R, the discounted n-step reward, shape (B,).
        discount: gamma^m, 0 after termination, shape (B,).
        next_values: Q' of the drawn target critics, shape (S, B).
        return_range: Smallest and largest possible return, to which y is clamped; None leaves y as it is.

    Returns:
        y, shape (B,).
    """
    target = reward + discount * next_values.amin(0)
    return target if return_range is None else target.clamp(*return_range)


def choice_target(
    reward: Tensor,
    discount: Tensor,
    choice: Tensor,
    next_target_values: Tensor,
    return_range: tuple[float, float] | None,
) -> Tensor:
    """Return y = R + gamma^m min_i Q'_i(s', g), g chosen by the online critics: double Q-learning (van Hasselt 2016).

    Args:
        reward: Shape (B,).
        discount: Shape (B,).
        choice: g, what the policy would do at s', an index of shape (B,).
        next_target_values: Target critics at s', shape (E, B, choices); they value.
        return_range: As in `critic_target`.

    Returns:
        y, shape (B,).
    """
    return critic_target(reward, discount, values_of(next_target_values, choice), return_range)


def values_of(values: Tensor, choice: Tensor) -> Tensor:
    """Pick the values (E, B) of the actions `choice` (B,) from (E, B, choices)."""
    return values.gather(-1, choice.expand(len(values), -1).unsqueeze(-1)).squeeze(-1)


def critic_loss(values: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    """Return sum_i mean_b w (Q_i(s, a) - y)^2.

    The sum over members gives each the gradient that it would have alone.

    Args:
        values: Q of all critics, shape (E, B).
        target: y, shape (B,).
        weight: w, shape (B,); None: 1.
    """
    return _weighted((values - target).square(), weight).mean(-1).sum()


def base_choice_loss(values: Tensor, base: Tensor, made: Tensor) -> Tensor:
    """Return sum_i mean_b (max_g Q_i(s, g) - Q_i(s, g_base))^2 over the steps in which the base's choice was made.

    Where only the base's choice was ever made, critics know nothing of another one, and what they make of it must not
    be more. It is the large-margin loss of DQfD (Hester 2018) for a base in place of an expert, with a margin of 0, and
    squared, so that it weighs as much as the error of a value: steps that made another choice speak against it.

    Args:
        values: Q of all critics and choices, shape (E, B, choices).
        base: The base's choice, an index of shape (B,).
        made: The choice that was made, shape (B,).
    """
    above = values.amax(-1) - values_of(values, base)
    return torch.where(made == base, above, 0.0).square().mean(-1).sum()


def demonstrated_choice_loss(
    values: Tensor, made: Tensor, counts: Tensor, margin: float | Tensor, ranks: Ranks = ALONE
) -> Tensor:
    """Return sum_i mean_b (max_g (Q_i(s, g) + m 1(g != g_E)) - Q_i(s, g_E)) over the demonstrated steps.

    It is the large-margin loss of DQfD (Hester 2018): a choice that was not demonstrated is worth at least m less.

    Args:
        values: Q of all critics and choices, shape (E, B, choices).
        made: g_E, the choice that was made, shape (B,).
        counts: 1 where it is to be imitated, else 0, shape (B,).
        margin: m, in units of the return.
        ranks: The processes of whose rows it is the mean.
    """
    others = torch.ones_like(values).scatter(-1, made.expand(len(values), -1).unsqueeze(-1), 0.0)
    above = (values + margin * others).amax(-1) - values_of(values, made)
    return mean_over(above.sum(0), counts, ranks)


def critic_figures(
    values: Tensor, target: Tensor, free: Tensor, return_range: tuple[float, float] | None
) -> dict[str, Tensor]:
    """Return what shows whether critics learn.

    Args:
        values: Q of all critics, shape (E, B).
        target: y, shape (B,).
        free: y before it was clamped, shape (B,).
        return_range: To which it was clamped; None if it was not.

    Returns:
        Scalars: `q_mean`; `q_spread`, the standard deviation over the critics; `td_error`, the mean of |Q - y|;
        `target_mean`, to be held against the range of returns; and, where targets are clamped, `clamped`, the share of
        those that this moved by more than `CLAMP_SLACK` of the range.
    """
    figures = {
        "q_mean": values.mean(),
        "q_spread": values.std(0, correction=0).mean(),
        "td_error": (values - target).abs().mean(),
        "target_mean": target.mean(),
    }
    if return_range is not None:
        slack = CLAMP_SLACK * (return_range[1] - return_range[0])
        figures["clamped"] = ((free - target).abs() > slack).float().mean()
    return figures


def goal_loss(seen: Tensor, way: Tensor, ranks: Ranks = ALONE) -> Tensor:
    """Return the mean squared error, in each element, of the way to the goal where it is known.

    Args:
        seen: The way as the head estimates it, shape (B, pose).
        way: The true way; NaN where the episode did not succeed, shape (B, pose).
        ranks: The processes of whose rows it is the mean.
    """
    known = way.isfinite()
    return mean_over(torch.where(known, seen - way, 0.0).square(), known.float(), ranks)


def actor_loss(values: Tensor, log_prob: Tensor, temperature: Tensor) -> Tensor:
    """Return mean_b (alpha log pi(a|s) - mean_i Q_i(s, a)).

    Args:
        values: Q of all critics at the policy's action, shape (E, B).
        log_prob: log pi of that action, shape (B,).
        temperature: alpha, a scalar.
    """
    return (temperature * log_prob).mean() - values.mean()


def imitation_loss(
    actions: Tensor,
    demonstrated: Tensor,
    counts: Tensor,
    ranks: Ranks = ALONE,
    length: int = 1,
    weight: Tensor | None = None,
) -> Tensor:
    """Return the mean of w |a - a_E|^2 over the demonstrated actions, or chunks of them.

    It is a sum over the elements of an action, as the slope of a value along one does not depend on their number.

    Args:
        actions: a, of the policy, shape (B, h n).
        demonstrated: a_E, what was done, shape (B, h n).
        counts: How many of a row's h actions, from the first one on, are to be imitated, shape (B,).
        ranks: The processes of whose rows it is the mean.
        length: h.
        weight: w of each row, shape (B,); None: 1.
    """
    away = (actions - demonstrated).square().view(len(actions), length, -1).sum(-1)
    shown = shown_steps(counts, length)
    return mean_over(_weighted((away * shown).sum(-1), weight), (counts > 0).float(), ranks)


def shown_steps(counts: Tensor, length: int) -> Tensor:
    """Return which of the h steps of each row are its first `counts` ones, shape (B, h), bool."""
    return torch.arange(length, device=counts.device) < counts.unsqueeze(-1)


def correction_penalty(correction: Tensor, weight: float | Tensor) -> Tensor:
    """Return w mean c^2 over all elements, which holds a policy to its base until critics expect more than this.

    Where critics know little, their slope along an action is noise, and Adam follows it as fast as a certain one. The
    penalty makes the length of a correction follow the size of the slope: c = dQ/dc / (2 w) for one element, where w is
    divided by the number of elements.

    Args:
        correction: c, the actor's output as a share of the bound, shape (B, n).
        weight: w, in units of the return.
    """
    return weight * correction.square().mean()


def temperature_loss(log_temperature: Tensor, entropy: Tensor, target_entropy: float | Tensor) -> Tensor:
    """Return alpha (H - H_target); its descent raises alpha while the entropy is too small (Haarnoja 2018, eq. 18)."""
    return log_temperature.exp() * (entropy - target_entropy)


def mean_over(values: Tensor, counts: Tensor, ranks: Ranks) -> Tensor:
    """Return this process's share of the mean of those values that count, over the rows of all; 0 where none does.

    It is for losses: the mean of these shares, as of their gradients, is the mean over all rows.
    """
    (count,) = ranks.average([counts.sum()])
    return (values * counts).sum() / count.clamp_min(1 / ranks.size)


def mean_size(values: Tensor, ranks: Ranks) -> Tensor:
    """Return the mean of |Q| over the rows of all processes, a scalar without a gradient."""
    (size,) = ranks.average([values.detach().abs().mean()])
    return size


def whole_mean(values: Tensor, counts: Tensor, ranks: Ranks) -> Tensor:
    """Return the mean of those values that count over the rows of all processes, alike in each; 0 where none does."""
    total, count = ranks.average([(values * counts).sum(), counts.sum()])
    return total / count.clamp_min(1 / ranks.size)


def _weighted(rows: Tensor, weight: Tensor | None) -> Tensor:
    return rows if weight is None else rows * weight


def histogram_loss(wanted: Tensor, logits: Tensor, weight: Tensor | None = None) -> Tensor:
    """Return - sum_i mean_b w sum_k p_k log softmax(l_i)_k.

    Args:
        wanted: p, shape (B, count).
        logits: l of all critics, shape (E, B, count).
        weight: w, shape (B,); None: 1.
    """
    return -_weighted((wanted * logits.log_softmax(-1)).sum(-1), weight).mean(-1).sum()


def mean_of(values: list[Tensor]) -> Tensor:
    """Return the mean of scalars, as a detached scalar on their device."""
    return torch.stack([value.detach() for value in values]).mean()


def expectile_loss(advantage: Tensor, expectile: float) -> Tensor:
    """Return mean_b |tau - 1(u < 0)| u^2 with u = Q - V, the loss of V (Kostrikov 2021, eq. 5).

    Args:
        advantage: u, shape (B,).
        expectile: tau; 0.5 gives half the mean squared error.
    """
    weight = torch.where(advantage < 0, 1.0 - expectile, expectile)
    return (weight * advantage.square()).mean()


def imitation_weight(advantage: Tensor, inverse_temperature: float, limit: float, ranks: Ranks = ALONE) -> Tensor:
    """Return min(exp(beta A / sigma_A), limit), the weight of an action in the policy's loss (Kostrikov 2021, eq. 7).

    The advantage is divided by its standard deviation in the batch, which the paper does not do: so one beta serves
    sparse and learned rewards of any scale.

    Args:
        advantage: A, shape (B,).
        inverse_temperature: beta.
        limit: Largest weight.
        ranks: The processes whose rows are the batch.
    """
    scale = ranks.deviation(advantage).clamp(min=1e-8)
    return (inverse_temperature * advantage / scale).exp().clamp(max=limit)
