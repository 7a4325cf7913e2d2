"""Floating-point operations that one learner call cannot do without: those of its matrix products.

A product (m, k) x (k, n) counts 2 m k n; its backward is one more for the weights and one for the inputs. Element-wise
work, LayerNorm, Adam and Polyak averaging count nothing: they are what a share of the bound pays for.
"""

from __future__ import annotations

import itertools
import math

from robot_rl.config.components import EncoderConfig, SACConfig
from robot_rl.data.replay.percept import ImageSpec
from robot_rl.learn.networks.heads import STATE_WIDTH


def update_flops(
    config: SACConfig, latent: int, action: int, batch: int, updates: int, head: tuple[int, int] = (0, 0)
) -> int:
    """Count the operations of the critic updates of one call, then one of actor and temperature, without a gripper.

    Args:
        config: Sizes of the networks.
        latent: Length of the output of the head; without images, of the state.
        action: Continuous actions.
        batch: Transitions in a minibatch.
        updates: Minibatches.
        head: Operations of the head for one percept, forward and backward; see `head_flops`.
    """
    actor_sizes = (latent, *config.hidden_sizes, 2 * action)
    critic_sizes = (latent + action, *config.hidden_sizes, 1)
    actor, critic = _forward(batch, actor_sizes), _forward(batch, critic_sizes)
    # inputs' gradients: those of the first layer are not needed, but for the action's columns in the actor's loss, and
    # for the latent's where a head is trained
    actor_inputs, critic_inputs = _forward(batch, actor_sizes[1:]), _forward(batch, critic_sizes[1:])
    action_columns = 2 * batch * action * critic_sizes[1]
    latent_columns = 2 * batch * latent * critic_sizes[1] if head[1] else 0

    next_action = actor + batch * head[0]
    target = config.target_subset * critic
    critic_update = config.ensemble_size * (critic + critic + critic_inputs + latent_columns) + batch * sum(head)
    actor_update = (actor + actor + actor_inputs) + config.ensemble_size * (critic + critic_inputs + action_columns)
    return updates * (next_action + target + critic_update) + actor_update + batch * head[0]


def head_flops(config: EncoderConfig, spec: ImageSpec, state: int) -> tuple[int, int]:
    """Count the operations of a head over cached features for one percept: forward, and backward to its weights."""
    cameras, channels, *plane = spec.view_shape
    embedded = channels * config.spatial_features
    embed, bottleneck = embedded * math.prod(plane), embedded * config.bottleneck
    forward = cameras * (embed + bottleneck) + state * STATE_WIDTH
    backward = cameras * (embed + 2 * bottleneck) + state * STATE_WIDTH
    return 2 * forward, 2 * backward


def _forward(batch: int, sizes: tuple[int, ...]) -> int:
    return sum(2 * batch * a * b for a, b in itertools.pairwise(sizes))
