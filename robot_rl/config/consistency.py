"""Settings that are valid each by itself, but not together."""

from __future__ import annotations

from robot_rl.config import FAMILY_MARK
from robot_rl.config.components import TrainConfig
from robot_rl.config.environment import EnvironmentConfig
from robot_rl.errors import ConfigError

WITHOUT_NOISE = ("bc", "iql")
"""Algorithms that fit the mean of a policy alone."""


def check_consistent(config: TrainConfig, *, resumed: bool = False) -> None:
    """Raise if settings contradict each other.

    Args:
        config: All settings.
        resumed: They are those of a run that goes on; what had no effect in it is no reason to stop it.

    Raises:
        ConfigError: naming them.
    """
    if config.realtime and config.processes == 1:
        raise ConfigError("realtime=true with processes=1: learning would hold up control; set processes=2")
    if config.learners > 1:
        _check_learners(config)
    if FAMILY_MARK not in config.task and config.environment != EnvironmentConfig():
        raise ConfigError(
            f"settings of the section `environment` with task={config.task}: they are for environments of others, e.g. "
            "task=gym:Pendulum-v1; leave them out"
        )
    if config.intervention.call.only and config.intervention.call.rule == "none":
        raise ConfigError("intervention.call.only needs intervention.call.rule: nobody would ever take over")
    if config.intervention.call.rule in ("value", "doubt") and config.algorithm.name == "bc" and not resumed:
        raise ConfigError(
            f"intervention.call.rule={config.intervention.call.rule} with algorithm.name=bc: it asks the critics, and "
            "bc has none; set intervention.call.rule=time"
        )
    check_deployed_noise(config)
    if FAMILY_MARK in config.task:
        config.intervention.refuse(f"in {config.task} an expert takes over, as environment.takeovers says")
    if config.environment.takeovers and not config.environment.expert and not resumed:
        raise ConfigError(
            f"environment.takeovers={config.environment.takeovers:g} without environment.expert: there is nobody who "
            "could take over; set environment.expert=NAME or MODULE:FUNCTION, or leave environment.takeovers out"
        )
    config.reward.stages.check()
    if config.reward.stages.order:
        _check_stages(config)
    if config.has_base:
        _check_base(config)
    elif config.base.correction == "noise":
        raise ConfigError("base.correction=noise with base.kind=none: there is no noise; set base.kind=chunk")
    elif config.warmup == "base":
        raise ConfigError("warmup=base with base.kind=none: there is no base to act; set base.kind, or another warmup")
    if config.replay.hindsight_goals:
        _check_hindsight(config)
    if config.replay.simulated == "dynamics_gap":
        _check_gap(config)
    if config.algorithm.chunk > 1:
        _check_chunk(config)
    _check_imitation(config, resumed=resumed)
    if config.env_steps == 0 and config.offline.steps == 0:
        raise ConfigError("env_steps=0 and offline.steps=0: nothing would be learned; set one of them")


def _check_imitation(config: TrainConfig, *, resumed: bool) -> None:
    sac, name = config.sac, config.algorithm.name
    if sac.imitation != 0.0 and name != "sac":
        raise ConfigError(
            f"sac.imitation with algorithm.name={name}: only sac imitates beside its critics; set it to 0"
        )
    if sac.imitated == "demonstrated" or resumed:
        return
    for setting, value in (("sac.imitation", sac.imitation), ("replay.demo_fraction", config.replay.demo_fraction)):
        if value == 0.0:
            raise ConfigError(
                f"sac.imitated={sac.imitated} with {setting}=0: nothing is imitated; set {setting}, or leave "
                "sac.imitated out"
            )


def _check_stages(config: TrainConfig) -> None:
    if FAMILY_MARK in config.task:
        raise ConfigError(
            f"reward.stages.order with task={config.task}: stages are judged on our own environments; leave it out"
        )
    if config.reward.kind not in ("task", "classifier"):
        raise ConfigError(
            f"reward.stages.order with reward.kind={config.reward.kind}: the next stage cannot wait for labels that "
            "come after the episode; set reward.kind=task or classifier"
        )


def _check_learners(config: TrainConfig) -> None:
    several = f"learners={config.learners}"
    if config.processes == 1:
        raise ConfigError(f"{several} with processes=1: they are processes beside the actor; set processes=2")
    if config.replay.batch_size % config.learners:
        raise ConfigError(
            f"{several} with replay.batch_size={config.replay.batch_size}: it cannot be divided evenly; set a multiple"
        )
    if 0 < config.demonstrations < config.learners:
        raise ConfigError(f"{several} with demonstrations={config.demonstrations}: set as many as learners, or none")
    if config.engine.compile:
        raise ConfigError(f"{several} with engine.compile=true: compiled steps are not for several learners yet")
    if config.replay.hindsight_goals:
        raise ConfigError(f"{several} with replay.hindsight_goals: not for several learners yet; set it to 0")


def _check_chunk(config: TrainConfig) -> None:
    chunk = f"algorithm.chunk={config.algorithm.chunk}"
    if config.algorithm.name != "sac":
        raise ConfigError(f"{chunk} with algorithm.name={config.algorithm.name}: only sac learns chunks; set it to 1")
    if config.sac.n_step != 1:
        raise ConfigError(
            f"{chunk} with sac.n_step={config.sac.n_step}: the rewards of a chunk's own steps are summed; leave "
            "sac.n_step out"
        )
    goals, warmup = config.replay.hindsight_goals, config.warmup_steps
    early = not config.demonstrations and warmup < config.algorithm.chunk
    clashes = (
        (
            config.has_base and not config.steers,
            f"base.kind={config.base.kind}",
            "a correction is decided in every step; set one of them, or base.correction=noise",
        ),
        (bool(config.offline.steps), f"offline.steps={config.offline.steps}", "IQL learns no chunks; set it to 0"),
        (config.learners > 1, f"learners={config.learners}", "not for several learners yet; set learners=1"),
        (bool(goals), f"replay.hindsight_goals={goals}", "goals are judged step by step; set it to 0"),
        (config.replay.simulated != "mixed", "replay.simulated=dynamics_gap", "that gap is one of steps; set mixed"),
        (early, f"demonstrations=0 and warmup_steps={warmup}", "no chunk is whole by then; set more warmup_steps"),
    )
    for clash, setting, cure in clashes:
        if clash:
            raise ConfigError(f"{chunk} with {setting}: {cure}")


def _check_gap(config: TrainConfig) -> None:
    gap = "replay.simulated=dynamics_gap"
    if config.algorithm.name != "sac":
        raise ConfigError(f"{gap} with algorithm.name={config.algorithm.name}: only sac weighs simulated steps")
    if config.learners > 1:
        raise ConfigError(f"{gap} with learners={config.learners}: not for several learners yet; set learners=1")
    if config.replay.hindsight_goals:
        raise ConfigError(f"{gap} with replay.hindsight_goals={config.replay.hindsight_goals}: set it to 0")
    if config.engine.compile:
        raise ConfigError(f"{gap} with engine.compile=true: its steps draw noise, and cannot be compiled yet")


def check_deployed_noise(config: TrainConfig) -> None:
    """Check that a policy that shall act with its noise has learned any.

    Raises:
        ConfigError: if it has not.
    """
    noise, name = config.sac.deployed_noise, config.algorithm.name
    if noise and name in WITHOUT_NOISE:
        raise ConfigError(
            f"sac.deployed_noise={noise:g} with algorithm.name={name}: it learns a mean and no noise; set "
            "sac.deployed_noise=0"
        )


def _check_base(config: TrainConfig) -> None:
    base = f"base.kind={config.base.kind}"
    if config.algorithm.name != "sac":
        raise ConfigError(f"{base} with algorithm.name={config.algorithm.name}: only sac learns corrections")
    if config.offline.steps:
        raise ConfigError(
            f"{base} with offline.steps={config.offline.steps}: a correction is not learned from recorded episodes "
            "alone; set offline.steps=0"
        )
    if not config.demonstrations and config.base.kind in ("clone", "chunk") and not config.base.path:
        raise ConfigError(
            f"{base} with demonstrations=0: there is nothing to learn it from; set demonstrations, or base.path to "
            "a file of `robot-rl base train`"
        )
    if not config.env_steps:
        raise ConfigError(
            f"{base} with env_steps=0: nothing would be corrected; train the base by `robot-rl base train`"
        )
    if config.steers:
        _check_steering(config)
    if config.replay.hindsight_goals:
        raise ConfigError(
            f"{base} with replay.hindsight_goals={config.replay.hindsight_goals}: what the base would have "
            "proposed for another goal is not known; set replay.hindsight_goals=0"
        )


def _check_steering(config: TrainConfig) -> None:
    noise, seen = "base.correction=noise", list(range(config.base.history))
    if list(config.replay.history) != seen:
        raise ConfigError(
            f"{noise} with replay.history={list(config.replay.history)} and base.history={config.base.history}: the "
            f"learner must see what the base sees; set replay.history={seen}"
        )
    if config.algorithm.chunk > config.base.horizon:
        raise ConfigError(
            f"{noise} with algorithm.chunk={config.algorithm.chunk}: the base plans base.horizon={config.base.horizon} "
            "steps at once; set no more than that"
        )
    if config.warmup == "uniform":
        raise ConfigError(f"{noise} with warmup=uniform: the policy draws noise from the first step; set warmup=policy")
    if config.base.delay:
        raise ConfigError(f"{noise} with base.delay={config.base.delay}: the policy plans at once; set it to 0")


def _check_hindsight(config: TrainConfig) -> None:
    """Raise if steps cannot be judged by other goals.

    Raises:
        ConfigError: naming the setting that prevents it.
    """
    needed = {
        "sac.n_step=1": config.sac.n_step == 1,
        "environment.action_repeat=1": config.environment.action_repeat == 1,
        "observations=state": config.observations == "state",
        "reward.kind=task": config.reward.kind == "task",
        "reward.shaping.head=": not config.reward.shaping.head,
        "reward.stages.order=[]": not config.reward.stages.order,
    }
    if missing := [setting for setting, there in needed.items() if not there]:
        raise ConfigError(
            f"replay.hindsight_goals={config.replay.hindsight_goals} needs {', '.join(missing)}: goals are judged step "
            "by step, by the environment; set that, or replay.hindsight_goals=0"
        )
