"""Settings of an environment of others: `gym:...`, `dm_control:...`, `metaworld:...`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic.dataclasses import dataclass

from robot_rl.config.field_types import (
    FORKABLE,
    RESUMABLE,
    STRICT,
    Fraction,
    NonNegative,
    NonNegativeReal,
    Positive,
    PositiveReal,
    Real,
)


@dataclass(frozen=True, config=STRICT)
class EnvironmentConfig:
    """How an environment of others is made, and what counts in it. A task of a robot arm takes none of these."""

    python: Annotated[str, RESUMABLE] = ""
    """Interpreter in which it lives, e.g. `envs/metaworld/bin/python`: its packages may clash with ours. It needs
    gymnasium, numpy and msgpack. Empty: this one."""
    options: tuple[str, ...] = ()
    """Keyword arguments of the environment, each `key=value` with the value in YAML."""
    max_steps: NonNegative = 0
    """Control steps until an episode is truncated; 0: as the environment declares."""
    discrete_gripper: bool = False
    """Whether the last number of an action is a gripper's: one of its lowest, middle and highest value, chosen by
    critics of their own (Luo 2024)."""
    shadows: bool = True
    """Whether lights of a MuJoCo scene cast shadows. Without them and without a GPU, drawing is several times faster;
    pictures differ from the package's own."""
    action_repeat: Positive = 1
    """Steps of the environment for each control step; their rewards are added up."""
    control_period: NonNegativeReal = 0.0
    """Time between two steps of the environment [s]; 0: as it declares, or 0.1."""
    reward: Literal["own", "success"] = "own"
    """`own`: the environment's. `success`: 1 for the step in which the task is done, and 0 otherwise."""
    reward_scale: PositiveReal = 1.0
    """Factor of each reward, for learning and in records alike."""
    return_range: tuple[Real, Real] | None = None
    """Smallest and largest possible discounted return, to which the targets of the critics are clamped. null: [0, 1]
    with `reward=success`, else unknown: nothing is clamped."""
    success: str = ""
    """Entry of the info of a step by which the task is done; empty: `is_success`, `success` or `succeed`."""
    success_ends: Literal["auto", "always", "never"] = "auto"
    """Whether a success ends the episode. `auto`: with `reward=success`; with its own reward it goes on."""
    hidden: tuple[str, ...] = ()
    """State entries that are not observed, by name or pattern, e.g. `cube.*`; `*` leaves pictures alone."""
    scaling: Literal["running", "bounds"] = "running"
    """Of the observations. `running`: networks see them less their mean, divided by their standard deviation, both of
    all that was seen. `bounds`: divided by their declared bounds, where these are finite."""
    expert: Annotated[str, FORKABLE] = ""
    """Who demonstrates and takes over: a name of the entry point group `robot_rl.experts`, of which we bring
    `metaworld`, the policies of that package, `gym_hil_pick` and `fetch_pick_and_place`; or `MODULE:FUNCTION` or
    `FILE.py:FUNCTION`, a function of the environment that returns one from observation to action. Empty: nobody."""
    takeovers: Annotated[Fraction, FORKABLE] = 0.0
    """Chance at each step that the expert takes over from the policy."""
    takeover_steps: Annotated[Positive, FORKABLE] = 10
    """Mean length of such an intervention [steps]."""
