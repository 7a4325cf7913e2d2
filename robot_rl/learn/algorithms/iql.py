"""Implicit Q-learning (Kostrikov 2021): learning from recorded episodes, with networks that SAC goes on with online.

It never asks the critics about an action that was not recorded, so that it needs no pessimism. One and the same policy
succeeds half of the time after one update and never after the next, so what comes of it is a mean.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robot_rl.config.components import IQLConfig
from robot_rl.errors import ConfigError
from robot_rl.learn.algorithms import losses
from robot_rl.learn.algorithms.adam import Adam
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.algorithms.sac import SAC
from robot_rl.learn.networks.networks import StackedMLP
from robot_rl.learn.networks.policy_average import newest_weight


class IQL:
    """Trains policy, head and critics of a `SAC`, which can then go on online; only the state value is its own.

    Args:
        sac: Whose networks are trained. Its optimizers stay fresh for what it will do.
        config: Hyper-parameters.

    Raises:
        ConfigError: if the policy has a gripper.
    """

    def __init__(self, sac: SAC, config: IQLConfig) -> None:
        policy = sac.policy
        if policy.gripper is not None:
            raise ConfigError("IQL does not learn a gripper's actions yet; choose a task without one")
        self.config, self._sac, self._policy = config, sac, policy
        self.value = StackedMLP(1, policy.head.size, sac.config.hidden_sizes, 1, sac.generator)
        rate = sac.config.learning_rate
        self._optimizers = {
            "value": Adam(self.value.parameters(), rate),
            "critic": Adam([*sac.critic.parameters(), *policy.head.parameters()], rate),
            "actor": Adam(policy.actor.parameters(), rate),
        }
        self._actor_mean = [parameter.detach().clone() for parameter in policy.actor.parameters()]
        self._updates = 0

    def update(self, batch: Batch) -> dict[str, Tensor]:
        """One update of value, critics and policy on each of the N minibatches.

        Returns:
            Detached scalars, means over the minibatches: `value_loss`, `critic_loss`, `actor_loss`, `v_mean`,
            `weight_max`.
        """
        rows = []
        for n in range(len(batch.reward)):
            rows.append(self._update(batch.minibatch(n)))
            self._follow()
        return {name: losses.mean_of([row[name] for row in rows]) for name in rows[0]}

    @torch.no_grad()
    def conclude(self) -> None:
        """Makes the policy the mean of what it was lately, by which it is judged and with which it goes on."""
        for parameter, mean in zip(self._policy.actor.parameters(), self._actor_mean, strict=True):
            parameter.copy_(mean)

    @torch.no_grad()
    def _follow(self) -> None:
        self._updates += 1
        weight = newest_weight(self.config.policy_average, self._updates)
        torch._foreach_lerp_(self._actor_mean, list(self._policy.actor.parameters()), weight)

    def state_dict(self) -> dict[str, Any]:
        """A copy of everything that the next update depends on, but for the `SAC`."""
        optimizers = {name: optimizer.state_dict() for name, optimizer in self._optimizers.items()}
        mean = {"actor_mean": self._actor_mean, "updates": self._updates}
        return copy.deepcopy({"value": self.value.state_dict(), "optimizers": optimizers, **mean})

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from what `state_dict` gave."""
        self.value.load_state_dict(state["value"])
        self._actor_mean = [mean.clone() for mean in state["actor_mean"]]
        self._updates = int(state["updates"])
        for name, optimizer in self._optimizers.items():
            optimizer.load_state_dict(state["optimizers"][name])

    def _update(self, batch: Batch) -> dict[str, Tensor]:
        sac, policy, config = self._sac, self._policy, self.config
        latent = policy.head(batch.observation, batch.images)
        seen = latent.detach()
        with torch.no_grad():  # min_i Q'_i(s, a) and V(s')
            outputs = sac.critic_target(policy.head.with_action(seen, batch.action))
            values = sac.critic_outputs.value(outputs).amin(0)
            next_latent = policy.head(batch.next_observation, batch.next_images)
            next_value = self.value(next_latent)[0].squeeze(-1)

        # L_V = mean_b |tau - 1(Q' < V)| (Q' - V)^2
        advantage = values - self.value(seen)[0].squeeze(-1)
        value_loss = losses.expectile_loss(advantage, config.expectile)
        self._optimizers["value"].minimize(value_loss)

        # L_pi = mean_b w |tanh mu(s) - a|^2, w = exp(beta A): the likelihood of a Gaussian of fixed width
        weight = losses.imitation_weight(advantage.detach(), config.inverse_temperature, config.weight_limit)
        error = (policy(seen)[0].tanh() - batch.action).square().mean(-1)
        actor_loss = (weight * error).mean()
        self._optimizers["actor"].minimize(actor_loss)

        # L_Q = sum_i mean_b l(Q_i(s, a), r + gamma V(s')), l the squared error unless SAC's critics are histograms
        target = batch.reward + batch.discount * next_value
        critic_loss = sac.critic_outputs.loss(sac.critic(policy.head.with_action(latent, batch.action)), target)
        # What a head knows of the way to the goal is not trained here.
        self._optimizers["critic"].minimize(critic_loss, allow_unused=True)
        sac.track()
        return {
            "value_loss": value_loss.detach(),
            "critic_loss": critic_loss.detach(),
            "actor_loss": actor_loss.detach(),
            "v_mean": next_value.mean(),
            "weight_max": weight.max(),
        }
