"""The networks: a stack of independent MLPs, and the policy that an actor process holds."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, softplus

from robot_rl.config.components import TrainConfig
from robot_rl.config.schedule import value_at
from robot_rl.data.chunk_layout import ChunkLayout
from robot_rl.data.replay.percept import PerceptSpec
from robot_rl.env.choice import entry_of_choice
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.errors import ConfigError
from robot_rl.learn.networks.exploration_noise import ExplorationNoise
from robot_rl.learn.networks.heads import ImageHead, StateHead, make_head
from robot_rl.learn.networks.noise_steering import NoiseSteering, make_noise_steering
from robot_rl.learn.networks.parameters import load_parameters
from robot_rl.learn.parallel.ranks import ALONE, Ranks

LOG_STD_LOW, LOG_STD_HIGH = -5.0, 2.0
"""Bounds of the log standard deviation before the tanh, reached smoothly."""

CHOICE_MEMBERS = 2
"""Critics of a discrete choice."""


_Map = Callable[[Tensor], Tensor]
_Turns = list[tuple[tuple[_Map, ...], ...]]


class StackedLinear(nn.Module):
    """E independent affine maps. Weights start uniform in +-1/sqrt(inputs), biases at 0."""

    def __init__(self, members: int, inputs: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        weight = torch.empty(members, inputs, outputs, device=generator.device)
        self.weight = nn.Parameter(weight.uniform_(-bound, bound, generator=generator))
        self.bias = nn.Parameter(torch.zeros(members, 1, outputs, device=generator.device))

    def forward(self, x: Tensor, members: Tensor | None = None) -> Tensor:
        """(E, B, inputs) -> (E, B, outputs), or the chosen `members` only."""
        weight, bias = _choose(self.weight, members), _choose(self.bias, members)
        if weight.shape[-1] == 1:  # a matrix product with one column wastes most of its work
            return (x * weight.transpose(1, 2)).sum(-1, keepdim=True) + bias
        return torch.baddbmm(bias, x, weight)

    def maps(self) -> list[_Map]:
        """Return the E maps, each (B, inputs) -> (B, outputs)."""
        pairs = zip(_members_of(self.weight), _members_of(self.bias.squeeze(1)), strict=True)
        return [partial(_affine, weight, bias) for weight, bias in pairs]


class StackedLayerNorm(nn.Module):
    """E layer normalisations (Ba 2016), each with its own scale and shift."""

    def __init__(self, members: int, width: int, device: torch.device) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(members, 1, width, device=device))
        self.shift = nn.Parameter(torch.zeros(members, 1, width, device=device))

    def forward(self, x: Tensor, members: Tensor | None = None) -> Tensor:
        """(E, B, width) -> (E, B, width), or the chosen `members` only."""
        scale, shift = _choose(self.scale, members), _choose(self.shift, members)
        return torch.addcmul(shift, layer_norm(x, x.shape[-1:]), scale)

    def maps(self) -> list[_Map]:
        """Return the E normalisations, each (B, width) -> (B, width)."""
        pairs = zip(_members_of(self.scale.squeeze(1)), _members_of(self.shift.squeeze(1)), strict=True)
        return [partial(layer_norm, normalized_shape=scale.shape, weight=scale, bias=shift) for scale, shift in pairs]


class StackedMLP(nn.Module):
    """E MLPs that share nothing: Linear -> LayerNorm -> ReLU for each hidden size, then Linear.

    Their parameters are stacked. On a GPU one batched product serves all of them; on a CPU they take turns, so that
    what one works on stays in the cache nearest to the core.
    """

    def __init__(
        self, members: int, inputs: int, hidden_sizes: tuple[int, ...], outputs: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.members = members
        sizes = (inputs, *hidden_sizes)
        self.hidden = nn.ModuleList(StackedLinear(members, a, b, generator) for a, b in itertools.pairwise(sizes))
        self.norms = nn.ModuleList(StackedLayerNorm(members, width, generator.device) for width in hidden_sizes)
        self.last = StackedLinear(members, sizes[-1], outputs, generator)
        self._kept: tuple[int, _Turns] = (-1, [])

    def forward(self, x: Tensor, members: Tensor | None = None) -> Tensor:
        """(B, inputs) -> (E, B, outputs), or (S, B, outputs) for the S chosen `members`."""
        count = self.members if members is None else len(members)
        return self._in_turn([x] * count, members) if _on_cpu(x) else self._at_once(x.expand(count, *x.shape), members)

    def each(self, x: Tensor, members: Tensor | None = None) -> Tensor:
        """(E, B, inputs), an input of its own for each member, -> (E, B, outputs); as `forward` for `members`."""
        return self._in_turn(x.unbind(), members) if _on_cpu(x) else self._at_once(x, members)

    def _at_once(self, x: Tensor, members: Tensor | None) -> Tensor:
        for linear, norm in zip(self.hidden, self.norms, strict=True):
            x = norm(linear(x, members), members).relu_()
        out: Tensor = self.last(x, members)
        return out

    def _in_turn(self, inputs: Sequence[Tensor], members: Tensor | None) -> Tensor:
        turns = self._turns() if torch.is_grad_enabled() else self._kept_turns()
        outputs = []
        for x, member in zip(inputs, range(self.members) if members is None else members.tolist(), strict=True):
            for linear, norm in turns[member][:-1]:
                x = norm(linear(x)).relu_()
            outputs.append(turns[member][-1][0](x))
        return torch.stack(outputs)

    def _turns(self) -> _Turns:
        """Return the layers of each member: a linear map, and a normalisation but for the last."""
        hidden = [
            zip(cast("StackedLinear", linear).maps(), cast("StackedLayerNorm", norm).maps(), strict=True)
            for linear, norm in zip(self.hidden, self.norms, strict=True)
        ]
        return list(zip(*hidden, ((last,) for last in self.last.maps()), strict=True))

    def _kept_turns(self) -> _Turns:
        """Return the turns without gradients: views of the parameters, which follow every step and are made once."""
        place = self.last.weight.data_ptr()
        if self._kept[0] != place:
            self._kept = place, self._turns()
        return self._kept[1]


@dataclass(frozen=True)
class Residual:
    """How a policy corrects a base.

    Attributes:
        start: First element of the newest proposal in a stacked state.
        bound: Largest correction at the start, as a share of half the range of an action; the policy keeps it in a
            buffer that its algorithm may change.
        gripper_margin: How much more another gripper action than the base's has to be worth.
    """

    start: int
    bound: float
    gripper_margin: float = 0.0


class Policy(nn.Module):
    """A tanh-squashed Gaussian for the continuous actions, and critics of a discrete choice, e.g. that of a gripper.

    Either part may be missing, not both. The critics are called `gripper`, as most choices are a gripper's.

    Args:
        head: Makes the input of the networks from state and images.
        action_size: Length of the action of a step.
        choices: Of its last entry, where that is discrete: evenly spaced from -1 to 1; 0 where it is not.
        hidden_sizes: Widths of the hidden layers.
        generator: Source of all randomness, from initialisation to exploration. Its device is the policy's device.
        gripper_exploration: Chance of a random choice when `act` is not deterministic.
        deployed_noise: Share of its noise with which it acts when `act` is deterministic.
        exploration: The noise of `act`; None: white.
        residual: Where its input has the proposal of a base, which it corrects; None: it does not.
        steering: Of the noise of a base, which is then its output; a gripper does what follows from it.
        ranks: The processes that train it together.
        chunk: Steps that it decides for at once; what it calls its action is then the vector of a `ChunkLayout`.

    Raises:
        ConfigError: if there is no action at all.
    """

    def __init__(
        self,
        *,
        head: StateHead | ImageHead,
        action_size: int,
        choices: int = 0,
        hidden_sizes: tuple[int, ...],
        generator: torch.Generator,
        gripper_exploration: float = 0.0,
        exploration: ExplorationNoise | None = None,
        deployed_noise: float = 0.0,
        residual: Residual | None = None,
        steering: NoiseSteering | None = None,
        ranks: Ranks = ALONE,
        chunk: int = 1,
    ) -> None:
        super().__init__()
        self.head = head
        self.chunk = ChunkLayout(chunk, action_size, bool(choices))
        self.action_size = self.chunk.size
        self.choices = choices
        self.continuous_size = self.action_size - bool(choices)
        self.output_size = self.continuous_size if steering is None else steering.noise_size
        if action_size < 1:
            raise ConfigError(f"action_size {action_size} is no action; valid: 1 or more")
        self.generator, self.ranks = generator, ranks
        self.gripper_exploration, self.exploration = gripper_exploration, exploration or ExplorationNoise()
        self.deployed_noise, self._deployed = deployed_noise, torch.Generator(generator.device)
        acting = hidden_sizes if self.continuous_size else ()  # without continuous actions it has no parameters
        self.actor = StackedMLP(1, head.size, acting, 2 * self.output_size, generator)
        self.gripper: StackedMLP | None = None
        if choices:
            self.gripper = StackedMLP(CHOICE_MEMBERS, head.size, hidden_sizes, choices, generator)
        self.residual, self.steering = residual, steering
        correction = residual or steering
        self.corrects = correction is not None
        """Whether it is bounded by a base."""
        if correction is not None:
            self.register_buffer("bound", torch.tensor(correction.bound, device=generator.device))
            self.bound: Tensor
            with torch.no_grad():  # no correction yet but some noise, and no other gripper action that is worth more
                for last in (self.actor.last, *([] if self.gripper is None else [self.gripper.last])):
                    last.weight.zero_()
                    last.bias.zero_()

    def forward(self, latent: Tensor) -> tuple[Tensor, Tensor]:
        """(B, head.size) -> mean and log standard deviation before the tanh, (B, output_size) each."""
        mean, raw = self.actor(latent)[0].float().chunk(2, -1)
        return mean, LOG_STD_LOW + (LOG_STD_HIGH - LOG_STD_LOW) * torch.sigmoid(raw)

    def sample(self, latent: Tensor, noise: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """(B, head.size) -> output (B, output_size) and its log-probability (B,), differentiable.

        It is made of standard normal `noise` (B, output_size); None draws it.
        """
        mean, log_std = self(latent)
        return squashed_sample(mean, log_std, self.draw_noise(latent) if noise is None else noise)

    def proposal(self, state: Tensor, images: Tensor | None) -> Tensor | None:
        """Return what the base proposes in states (B, state), (B, continuous); None without one.

        Where its noise is steered it is what the base makes of states and images (B, *view_shape), before any noise.
        """
        if self.steering is not None:
            return self.steering.condition(state, images)
        if self.residual is None:
            return None
        start = self.residual.start
        return state[:, start : start + self.continuous_size]

    def base_choice(self, state: Tensor) -> Tensor | None:
        """Return the base's choice, an index of shape (B,), in states (B, state); None without a base."""
        if self.residual is None:
            return None
        return choice_index(state[:, self.residual.start :][:, : self.action_size], self.choices)

    def gripper_choice(self, values: Tensor, state: Tensor) -> Tensor:
        """Return the choice, an index of shape (B,), of the values (B, choices) of all of them in states (B, state).

        With a base it is the base's, unless another one is worth more by a margin: the bound of a discrete correction.
        """
        best, usual = values.argmax(-1), self.base_choice(state)
        if self.residual is None or usual is None:
            return best
        gain = values.gather(-1, best[:, None]) - values.gather(-1, usual[:, None])
        return torch.where(gain[:, 0] > self.residual.gripper_margin, best, usual)

    def executed(self, action: Tensor, proposal: Tensor | None) -> Tensor:
        """Return the action (B, continuous) carried out for an output of the actor, (B, output_size) in [-1, 1]."""
        if self.steering is not None and proposal is not None:  # a = flow(s, bound tanh(...)): DSRL (Wagenmaker 2025)
            return self.steering.actions(proposal, self.bound * action)
        # a = clip(a_base + bound tanh(...)): a residual policy (Silver 2018; Johannink 2019) of bounded reach
        return action if proposal is None else (proposal + self.bound * action).clamp(-1.0, 1.0)

    def draw_noise(self, rows: Tensor, minibatches: int = 1) -> Tensor:
        """Draw standard normal noise for `squashed_sample`, (B, output_size), for B rows: so many minibatches in a row.

        Processes that learn as one draw the same noise for whole minibatches, and each returns that of its own rows.
        """
        shape = (minibatches, len(rows) // minibatches * self.ranks.size, self.output_size)
        whole = torch.randn(shape, generator=self.generator, device=self.generator.device)
        return self.ranks.own(whole).flatten(0, 1)

    def begin(self, seed: int) -> None:
        """Begin an episode, whose noise begins anew; that of a deployed policy follows from the seed."""
        self.exploration.restart()
        self._deployed.manual_seed(seed)

    def _draw_deployed(self, rows: int) -> Tensor:
        return torch.randn(rows, self.output_size, generator=self._deployed, device=self._deployed.device)

    @torch.no_grad()
    def act(self, state: Tensor, images: Tensor | None = None, *, deterministic: bool) -> Tensor:
        """State (B, state) and images (B, *view_shape) -> (B, act) in [-1, 1].

        Where it is deterministic it acts as it is deployed: by its mean, or with a share of its noise, which follows
        from the seed of the episode. Noise goes on from that of the calls before, until `begin`.
        """
        latent = self.head(state, images)
        if deterministic and not self.deployed_noise:
            output: Tensor = self(latent)[0].tanh()
        elif deterministic:
            noise = self.exploration.draw(lambda: self._draw_deployed(len(latent)))
            output, _ = self.sample(latent, self.deployed_noise * noise)
        else:
            output, _ = self.sample(latent, self.exploration.draw(lambda: self.draw_noise(latent)))
        action = self.executed(output, self.proposal(state, images))
        if self.gripper is None:
            return action
        choice = self.gripper_choice(self.gripper(latent).mean(0), state)
        if not deterministic:
            g, device = self.generator, choice.device
            anything = torch.randint(self.choices, choice.shape, generator=g, device=device)
            explore = torch.rand(choice.shape, generator=g, device=device) < self.gripper_exploration
            choice = torch.where(explore, anything, choice)
        entry = entry_of_choice(choice.unsqueeze(-1).to(action.dtype), self.choices)
        return torch.cat([action, entry], -1)

    def policy_state(self) -> dict[str, Tensor]:
        """Return copies of all parameters on the CPU, to be sent to an actor."""
        return {name: value.detach().to("cpu", copy=True) for name, value in self.state_dict().items()}

    def load_policy_state(self, state: dict[str, Tensor]) -> None:
        """Load what `policy_state` returned.

        Raises:
            CheckpointError: if names or shapes differ; then nothing is loaded.
        """
        load_parameters(self, state, "policy")


def make_policy(
    task: EnvironmentSpec,
    percepts: PerceptSpec,
    config: TrainConfig,
    generator: torch.Generator,
    ranks: Ranks = ALONE,
) -> Policy:
    """Make the policy of a run's configuration, on the device of the generator, for the processes that train it.

    Raises:
        ConfigError: if the settings contradict each other.
    """
    residual, steering = None, None
    if config.steers:
        steering = make_noise_steering(task, percepts, config, generator.device)
    if percepts.proposal is not None:
        if 0 not in config.replay.history:
            raise ConfigError(
                f"replay.history={list(config.replay.history)} with a base: without the newest observation its "
                "proposal is not known; add 0"
            )
        start = config.replay.history.index(0) * percepts.state_size + percepts.proposal[0]
        residual = Residual(start, value_at(config.base.bound, 0), config.base.gripper_margin)
    return Policy(
        head=make_head(percepts, config, generator, len(config.replay.history)),
        action_size=task.action_size,
        choices=0 if config.steers else task.choices,
        hidden_sizes=config.sac.hidden_sizes,
        generator=generator,
        gripper_exploration=config.sac.gripper_exploration,
        exploration=ExplorationNoise(config.sac.exploration_times),
        deployed_noise=config.sac.deployed_noise,
        residual=residual,
        steering=steering,
        ranks=ranks,
        chunk=config.algorithm.chunk,
    )


def choice_index(action: Tensor, choices: int) -> Tensor:
    """Return the choice that the last entry of actions (B, act) is nearest to, 0 to choices - 1, shape (B,)."""
    return ((action[:, -1] + 1) * ((choices - 1) / 2)).round().long()


def policy_digest(parameters: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 over names, types, shapes and bytes of a policy's parameters, as hexadecimal digits."""
    digest = hashlib.sha256()
    for name in sorted(parameters):
        tensor = parameters[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def squashed_sample(mean: Tensor, log_std: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Return action and log-probability of a tanh-squashed Gaussian (Haarnoja 2018, appendix C).

    Args:
        mean: Of the Gaussian, shape (..., n).
        log_std: Log of its standard deviation, shape (..., n).
        noise: Standard normal, shape (..., n).

    Returns:
        a = tanh(u) with u = mean + std * noise, shape (..., n), and
        log pi(a) = sum_i log N(u_i) - log(1 - tanh(u_i)^2), shape (...,).
    """
    u = mean + log_std.exp() * noise
    # log(1 - tanh(u)^2) = 2 (log 2 - u - softplus(-2 u)), which neither overflows nor loses digits
    log_slope = 2 * (math.log(2) - u - softplus(-2 * u))
    log_normal = -0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi)
    return u.tanh(), (log_normal - log_slope).sum(-1)


def _on_cpu(x: Tensor) -> bool:
    """Return whether members take turns: on a CPU, but not when compiled, which is faster by itself."""
    return not (x.is_cuda or torch.compiler.is_compiling())


def _affine(weight: Tensor, bias: Tensor, x: Tensor) -> Tensor:
    if weight.shape[-1] == 1:  # a matrix product with one column wastes most of its work
        return torch.addmv(bias, x.to(bias.dtype), weight.squeeze(1)).unsqueeze(1)
    return torch.addmm(bias, x, weight)


def _members_of(stacked: Tensor) -> tuple[Tensor, ...]:
    """Return the part of each member; that of a single one without a copy of its gradient."""
    stacked = stacked if torch.is_grad_enabled() else stacked.detach()
    return stacked.unbind() if len(stacked) > 1 else (stacked.squeeze(0),)


def _choose(parameter: Tensor, members: Tensor | None) -> Tensor:
    return parameter if members is None else parameter.index_select(0, members)
