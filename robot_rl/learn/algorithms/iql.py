"""Implicit Q-learning (Kostrikov 2021): learning from recorded episodes, alone or as the pretraining of SAC.

It evaluates the critics only at recorded actions, so that it needs no pessimism. One and the same policy succeeds half
of the time after one update and never after the next, so that its result is a mean over the newest updates.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robot_rl.config.components import IQLConfig, SACConfig
from robot_rl.errors import CheckpointError, ConfigError
from robot_rl.learn.algorithms import losses
from robot_rl.learn.algorithms.actor_critic import ActorCritic
from robot_rl.learn.algorithms.adam import Adam
from robot_rl.learn.algorithms.base import Algorithm, AlgorithmSetup
from robot_rl.learn.algorithms.batch import Batch, check_batch
from robot_rl.learn.algorithms.horizon import USUAL_STEPS, horizon_discount
from robot_rl.learn.networks.networks import Policy, StackedMLP
from robot_rl.learn.networks.parameters import load_modules
from robot_rl.learn.networks.policy_average import newest_weight

STATE_FORMAT = 1
"""Of the state of `IQL`."""


class IQLTrainer:
    """The updates of implicit Q-learning on given networks; only the state value and the optimizers are its own.

    Args:
        networks: Policy, head and critics that are trained, e.g. those of a `SAC` that goes on with them.
        config: Hyper-parameters.

    Raises:
        ConfigError: if the policy makes choices.
    """

    def __init__(self, networks: ActorCritic, config: IQLConfig) -> None:
        policy = networks.policy
        if policy.gripper is not None:
            raise ConfigError("IQL does not learn a gripper's actions or other choices yet; choose a task without them")
        self.config, self._networks, self._policy = config, networks, policy
        self.value = StackedMLP(1, policy.head.size, networks.config.hidden_sizes, 1, networks.generator)
        rate = networks.scheduled.follow("learning_rate", networks.config.learning_rate)
        self._optimizers = {
            "value": Adam(self.value.parameters(), rate, policy.ranks),
            "critic": Adam([*networks.critic.parameters(), *policy.head.parameters()], rate, policy.ranks),
            "actor": Adam(policy.actor.parameters(), rate, policy.ranks),
        }
        self._actor_mean = [parameter.detach().clone() for parameter in policy.actor.parameters()]
        self._updates = 0

    def update(self, batch: Batch) -> dict[str, Tensor]:
        """Make one update of value, critics and policy on each of the N minibatches.

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
        """Set the policy to its mean over the newest updates, with which it is evaluated and goes on."""
        for parameter, mean in zip(self._policy.actor.parameters(), self._actor_mean, strict=True):
            parameter.copy_(mean)

    @torch.no_grad()
    def _follow(self) -> None:
        self._updates += 1
        weight = newest_weight(self.config.policy_average, self._updates)
        torch._foreach_lerp_(self._actor_mean, list(self._policy.actor.parameters()), weight)

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of all that the next update depends on, but for the networks."""
        optimizers = {name: optimizer.state_dict() for name, optimizer in self._optimizers.items()}
        mean = {"actor_mean": self._actor_mean, "updates": self._updates}
        return copy.deepcopy({"value": self.value.state_dict(), "optimizers": optimizers, **mean})

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        load_modules({"value": self.value}, state)
        self._actor_mean = [mean.clone() for mean in state["actor_mean"]]
        self._updates = int(state["updates"])
        for name, optimizer in self._optimizers.items():
            optimizer.load_state_dict(state["optimizers"][name])

    def _update(self, batch: Batch) -> dict[str, Tensor]:
        networks, policy, config = self._networks, self._policy, self.config
        latent = policy.head(batch.observation, batch.images)
        seen = latent.detach()
        with torch.no_grad():  # min_i Q'_i(s, a) and V(s')
            outputs = networks.critic_target(policy.head.with_action(seen, batch.action))
            values = networks.critic_outputs.value(outputs).amin(0)
            next_latent = policy.head(batch.next_observation, batch.next_images)
            next_value = self.value(next_latent)[0].squeeze(-1)

        # L_V = mean_b |tau - 1(Q' < V)| (Q' - V)^2
        advantage = values - self.value(seen)[0].squeeze(-1)
        value_loss = losses.expectile_loss(advantage, config.expectile)
        self._optimizers["value"].minimize(value_loss)

        # L_pi = mean_b w |tanh mu(s) - a|^2, w = exp(beta A): the likelihood of a Gaussian of fixed width
        weight = losses.imitation_weight(
            advantage.detach(), config.inverse_temperature, config.weight_limit, policy.ranks
        )
        error = (policy(seen)[0].tanh() - batch.action).square().mean(-1)
        actor_loss = (weight * error).mean()
        self._optimizers["actor"].minimize(actor_loss)

        # L_Q = sum_i mean_b l(Q_i(s, a), r + gamma V(s')), l the squared error unless SAC's critics are histograms
        target = batch.reward + batch.discount * next_value
        critic_loss = networks.critic_outputs.loss(
            networks.critic(policy.head.with_action(latent, batch.action)), target
        )
        # The part of a head that estimates the way to the goal is not trained here.
        self._optimizers["critic"].minimize(critic_loss, allow_unused=True)
        networks.track()
        return {
            "value_loss": value_loss.detach(),
            "critic_loss": critic_loss.detach(),
            "actor_loss": actor_loss.detach(),
            "v_mean": next_value.mean(),
            "weight_max": weight.max(),
        }


class IQL(ActorCritic, Algorithm):
    """Implicit Q-learning as the only algorithm of a run, before and after the first online step.

    Args:
        policy: The policy that is trained, on its device.
        return_range: Smallest and largest possible discounted return; None: not known.
        config: Sizes and rates of the networks, which it shares with SAC.
        offline: Hyper-parameters of its own.

    Raises:
        ConfigError: if the policy makes choices, or the settings contradict each other.
    """

    divisible = True

    def __init__(
        self, policy: Policy, *, return_range: tuple[float, float] | None, config: SACConfig, offline: IQLConfig
    ) -> None:
        super().__init__(policy, return_range, config)
        self.n_step, self.discount = config.n_step, config.discount or horizon_discount(USUAL_STEPS)
        self._trainer = IQLTrainer(self, offline)

    def update(self, batch: Batch) -> dict[str, Tensor]:
        """Make one update on each minibatch; see `IQLTrainer.update`.

        Raises:
            SpecError: if the batch does not fit the networks.
        """
        check_batch(batch, self.policy)
        return self._trainer.update(batch)

    def pretrain(self, batch: Batch) -> dict[str, Tensor]:
        """Make one update on each minibatch, as `update`."""
        return self.update(batch)

    def end_pretraining(self) -> None:
        """Set the policy to its mean over the newest updates."""
        self._trainer.conclude()

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of all that the next update depends on."""
        state = {
            "format": STATE_FORMAT,
            "modules": {name: module.state_dict() for name, module in self.modules.items()},
            "trainer": self._trainer.state_dict(),
            "generator": self.generator.get_state(),
        }
        return copy.deepcopy(state)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned.

        Raises:
            CheckpointError: if the state has another format or other sizes.
        """
        if state.get("format") != STATE_FORMAT:
            raise CheckpointError(f"IQL state has format {state.get('format')}, this program reads {STATE_FORMAT}")
        try:
            load_modules(self.modules, state["modules"])
            self._trainer.load_state_dict(state["trainer"])
            self.generator.set_state(state["generator"].cpu())
        except (KeyError, RuntimeError, ValueError) as error:
            raise CheckpointError(f"this state belongs to another learner: {error}") from error


def make_iql(setup: AlgorithmSetup) -> IQL:
    """Make IQL with the settings `offline`, and `sac` for networks, rates and windows."""
    setup.options()  # it has none
    config = setup.config
    return IQL(setup.policy, return_range=setup.return_range, config=config.sac, offline=config.offline)
