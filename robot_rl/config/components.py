"""Settings of a training run: one frozen dataclass per component. Below each field: its meaning, unit, and reason.

pydantic checks types and ranges when an object is made; an unknown key is an error. `load.py` reads files and overrides
of the command line into these. Marks on the fields (`field_types.py`) name what a resumed run may change, and defaults
that differ under a condition, e.g. `observations=pixels`; these hold however a configuration is made.
"""

from __future__ import annotations

from dataclasses import asdict, field
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass
from pydantic_core import ArgsKwargs

from robot_rl.config.conditional_defaults import Section, with_conditional_defaults
from robot_rl.config.environment import EnvironmentConfig
from robot_rl.config.field_types import (
    FORKABLE,
    LARGEST_IMAGE,
    RESUMABLE,
    STRICT,
    Ages,
    Fraction,
    NonNegative,
    NonNegativeReal,
    Positive,
    PositiveReal,
    Resumable,
    UnlessPlain,
    WithBase,
    WithChunk,
    WithGuest,
    WithNoise,
    WithPixels,
)
from robot_rl.config.operator_profile import InterventionConfig
from robot_rl.config.randomization import RandomizationConfig, WorldConfig
from robot_rl.config.reward import RewardConfig
from robot_rl.config.schedule import Count, Rate, Scheduled, held_at


@dataclass(frozen=True, config=STRICT)
class SACConfig(Section):
    """RLPD-style soft actor-critic (Haarnoja 2018; Ball 2023)."""

    hidden_sizes: tuple[Positive, ...] = (256, 256)
    """Widths of the hidden layers of actor and critics; each is followed by LayerNorm and ReLU."""
    ensemble_size: Positive = 2
    """Number of independent critics."""
    target_subset: Positive = 2
    """Critics drawn at random for each target; the target is their minimum (REDQ)."""
    discount: Annotated[Annotated[float, Field(gt=0, lt=1)] | None, FORKABLE] = None
    """Discount per control step. null: 1 - 4 / (steps of the longest episode), within [0.96, 0.995]."""
    n_step: Annotated[Positive, FORKABLE, WithGuest(1), WithChunk(1)] = 3
    """Steps summed before the bootstrap. A window ends early where the episode ends or control changes hands."""
    target_rate: Annotated[Fraction, FORKABLE] = 0.005
    """Polyak rate of the target critics, per critic update."""
    learning_rate: Annotated[Rate, Scheduled(gt=0), FORKABLE] = 3e-4
    """Adam, of actor, critics and temperature. A schedule over env steps: {0: 3e-4, 20000: 1e-4}, linear in between."""
    initial_temperature: PositiveReal = 0.01
    """Entropy coefficient at the start."""
    temperature: Annotated[Rate | None, Scheduled(gt=0, optional=True), FORKABLE] = None
    """Entropy coefficient, a number or a schedule as of `learning_rate`. null: tuned to reach the target entropy."""
    target_entropy_per_action: Annotated[Rate, Scheduled(), FORKABLE] = -0.5
    """Target entropy of the policy, times the number of continuous actions; a number or a schedule."""
    critic_loss: Literal["squared", "hl_gauss"] = "squared"
    """`squared`: critics estimate the return. `hl_gauss`: they estimate a histogram of it over the range that the task
    declares, by cross-entropy (Farebrother 2024); those of the gripper keep the squared error."""
    imitation: Annotated[Rate | None, Scheduled(ge=0, optional=True), FORKABLE, WithGuest(0.0), UnlessPlain(0.0)] = None
    """Weight of imitating what counts as a demonstration, beside what critics expect; 0: none. null: {0: 1, 10 T: 0.2,
    80 T: 0.03}, where T is the steps of the longest episode, at least 100."""
    imitated: Annotated[Literal["demonstrated", "helpful", "better", "advantage", "certain"], FORKABLE] = "demonstrated"
    """What is imitated: `demonstrated`, all of that; `helpful`, all but corrections of which critics expect less than
    of the policy's action; `better`, neither these nor such demonstrations, many at first, as critics know little;
    `advantage`, the more, the better critics expect it to be; `certain`, as far as the operator does much the same
    in such states: where the policy is farther from that than the operator is (SiLRI, Zhao 2025)."""
    clamp_targets: Annotated[bool, FORKABLE] = True
    """Clamp critic targets to the return range that the task or environment declares."""
    goal_weight: Annotated[float, Field(ge=0)] = 0.1
    """With pixels: weight of a second loss for what sees, which learns from the frames of successful episodes how far
    the tcp, of each arm, was from where a gripper was next moved, or else from where they ended. 0 leaves it out."""
    exploration_times: Annotated[tuple[NonNegativeReal, ...], FORKABLE, WithBase((0.0, 4.0, 16.0)), WithNoise(())] = ()
    """Correlation times of the noise with which it explores [decisions], in equal parts; (0, 4, 16) is about pink noise
    (Eberhard 2023), which moves where white noise averages out. Empty: white noise."""
    gripper_exploration: Annotated[Fraction, FORKABLE] = 0.02
    """Chance of a random choice while training, where an action has one: a gripper, a Discrete space."""
    deployed_noise: Annotated[Fraction, RESUMABLE] = 0.0
    """Share of its noise with which the policy acts where it is evaluated or deployed; it follows from the seed of the
    episode. 0: it acts by its mean, 1: as it explores. Where a mean stands still, noise goes on searching."""


@dataclass(frozen=True, config=STRICT)
class AlgorithmConfig(Section):
    """The algorithm that learns."""

    name: str = "sac"
    """Name in the entry point group `robot_rl.algorithms`. `sac`: soft actor-critic, pretrained by IQL where
    `offline.steps` is set. `iql`: implicit Q-learning throughout. `bc`: behaviour cloning. All three take networks and
    rates from `sac`. Another one comes with an installed package."""
    chunk: Annotated[Positive, WithNoise(2)] = 1
    """With `sac`: control steps that the policy decides for at once (Q-chunking, Li 2025). It plays its chunk without
    looking, until somebody takes over; critics value whole chunks, with the rewards of these steps in the place of
    `sac.n_step`. A gripper's choice is held for a chunk. 1: it decides in every step."""
    options: tuple[str, ...] = ()
    """Numbers for an algorithm from another package, each `key=value`; `sac`, `iql` and `bc` have none of them."""


@dataclass(frozen=True, config=STRICT)
class IQLConfig:
    """Implicit Q-learning (Kostrikov 2021): learning from recorded episodes alone, before anything is played."""

    steps: NonNegative = 0
    """Updates on the demonstrations, good and bad ones, before the first online step; 0: none."""
    expectile: Annotated[float, Field(ge=0.5, lt=1)] = 0.7
    """Of the values that the state value is fitted to; nearer to 1 trusts the best actions seen more."""
    inverse_temperature: PositiveReal = 3.0
    """How much more a better action is imitated, per standard deviation of the advantage."""
    weight_limit: PositiveReal = 100.0
    """Largest weight of an imitated action."""
    policy_average: Annotated[float, Field(ge=0, le=1)] = 0.5
    """The policy that comes of it is the mean over this newest share of the updates: single ones differ a lot."""


@dataclass(frozen=True, config=STRICT)
class BaseConfig(Section):
    """A base policy, which stays as it is, while the algorithm learns a bounded correction of its actions or noise.

    A residual policy (Silver 2018, Johannink 2019): it starts as good as its base, and is never far from it.
    """

    kind: str = "none"
    """Name in the entry point group `robot_rl.base_policies`; `none`: the policy that learns acts alone. `clone`,
    `chunk`: cloned from the demonstrations, one action or a chunk of them at a time. docs/base_policies.md has all."""
    correction: Literal["residual", "noise"] = "residual"
    """What is learned. `residual`: what is added to the base's actions. `noise`: the noise from which a base that draws
    its chunks begins, so that it acts as was demonstrated (DSRL, Wagenmaker 2025); for `chunk`, which has one."""
    path: str = ""
    """Of the base: a file of `robot-rl base train`, a run directory, a checkpoint, or an address."""
    updates: Positive = 3_000
    """Updates in which `clone` and `chunk` are trained, on minibatches of `replay.batch_size`."""
    horizon: Positive = 8
    """Actions that `chunk` plans at once."""
    history: Positive = 8
    """Newest observations that `chunk` plans from. Searching by touch takes memory: docs/benchmarks.md."""
    replan: Annotated[Positive, FORKABLE] = 4
    """Control steps after which a chunk is planned anew, at most its length."""
    blend: Annotated[NonNegative, FORKABLE] = 1
    """Control steps over which a new chunk fades in, so that actions do not jump."""
    delay: Annotated[NonNegative, FORKABLE] = 0
    """In a simulation that waits: control steps that a chunk takes to arrive, as that of a slow base on a robot."""
    names: tuple[str, ...] = ()
    """For `server` and `lerobot`: what they observe, THEIRS=OURS or THEIRS=OURS+OURS for vectors side by side. Empty:
    the names of ours, and for `lerobot` those of a dataset that was exported."""
    python: str = ""
    """For `lerobot`: the Python interpreter in which LeRobot is installed."""
    gripper_margin: Annotated[NonNegativeReal, FORKABLE] = 0.05
    """How much more, in units of the reward, critics must expect of another gripper action than of the base's before it
    is taken."""
    bound: Annotated[Rate, Scheduled(gt=0, le=2), FORKABLE, WithNoise(1.5)] = 0.3
    """Largest correction, as a share of half an action's range: 2 reaches everything from everywhere. A schedule over
    env steps, {0: 0.2, 10000: 1}, begins gently and then leaves more and more to what was learned. Of noise: its
    largest magnitude, in standard deviations of that with which the base was trained."""
    penalty: Annotated[Rate, Scheduled(ge=0), FORKABLE, WithNoise(0.0)] = field(
        default_factory=lambda: {0: 1.0, 1000: 0.5, 4000: 0.05}
    )
    """Weight of the mean square of the correction, as a share of its bound, in the policy's loss; times the range of
    returns, or, where that is not known, the mean size of what critics expect. While critics have seen little it holds
    the policy to its base; 0 leaves it out."""


@dataclass(frozen=True, config=STRICT)
class ReplayConfig(Section):
    """Memory of past steps, and how it is sampled."""

    capacity: Annotated[Positive, FORKABLE, WithPixels(30_000), WithGuest(300_000)] = 100_000
    """Steps kept online; the oldest episodes go first. Demonstrations are never dropped."""
    batch_size: Annotated[Positive, FORKABLE, WithPixels(256)] = 128
    """Transitions in each critic update."""
    demo_fraction: Annotated[Fraction, FORKABLE] = 0.5
    """Share of each batch drawn from demonstrations and interventions."""
    corrections: Annotated[Literal["demonstration", "successful", "return_weighted"], FORKABLE] = "demonstration"
    """Which of the operator's interventions count as demonstrations. `demonstration`: all. `successful`: those in
    episodes that succeeded. `return_weighted`: each by the chance discount^(steps until its episode succeeded)
    (reward-weighted regression, Peters 2007), so that one which had to be repaired counts less."""
    hindsight_goals: Annotated[NonNegative, FORKABLE] = 0
    """In environments with goals: how often each online step is learned from again with a goal that its episode
    achieved later (hindsight experience replay, Andrychowicz 2017, who took 4); needs `sac.n_step=1`. 0: never."""
    simulated: Literal["mixed", "dynamics_gap"] = "mixed"
    """How steps of another run count that `--init replay` took over, usually from simulation. `mixed`: as those of this
    run. `dynamics_gap`: each the less, the less likely its outcome is on this robot (H2O, Niu 2022); needs `sac`."""
    simulated_penalty: NonNegativeReal = 0.01
    """With `dynamics_gap`: how strongly values are held down where the gap is large, in ranges of returns."""
    history: Annotated[Ages, WithGuest((0,)), WithNoise(tuple(range(8)))] = (0, 1)
    """Ages [steps] of the observations stacked for the networks; before the first one, the first is repeated."""


@dataclass(frozen=True, config=STRICT)
class EvaluationConfig(Section):
    """Evaluation of the finished policy, on seeds apart from training."""

    episodes: Annotated[Positive, WithGuest(50)] = 100
    """Held-out resets."""
    seed: NonNegative = 1_000_000
    """Which held-out resets; the same for runs of all seeds, and never those of training."""
    curve_interval: Annotated[NonNegative, WithGuest(5_000)] = 1_000
    """Env steps between the points of the learning curve, each a short evaluation without help; 0 makes none."""
    curve_episodes: Annotated[Positive, WithGuest(10)] = 20
    """Resets for each point of the learning curve; the same for every point, and apart from the final ones."""
    curve_newest: bool = False
    """Whether the newest policy, which explores, is also evaluated wherever the deployed mean is; see
    `policy_average`."""
    video_episodes: NonNegative = 4
    """Episodes shown in `evaluation.mp4`; 0 writes none."""


@dataclass(frozen=True, config=STRICT)
class EncoderConfig:
    """Image encoder of a policy that sees; a policy that learns from `state` ignores this section."""

    name: str = "bundled"
    """`bundled` (EfficientNet-Lite0 with ImageNet weights), `timm:<model>`, `hf:<model>`, `random` (Lite0 with random
    weights, to compare with): frozen, features are computed once when a frame arrives. `conv`, `resnet10`: trained."""
    cameras: tuple[str, ...] = ()
    """Cameras that the policy sees. Empty: all that the task or the robot file has, in that order; a run keeps them."""
    image_size: Annotated[int, Field(ge=32, le=LARGEST_IMAGE, multiple_of=32)] = 128
    """Height and width of the frames [px]."""
    crops: Annotated[Positive, RESUMABLE] = 4
    """Randomly shifted crops of each frame whose features are kept; the first is not shifted, the policy acts on it."""
    shift: Annotated[NonNegative, RESUMABLE] = 4
    """Largest shift of a crop, either way [px]."""
    projection: NonNegative = 64
    """Channels to which a fixed random projection reduces the frozen features before they are kept; 0 keeps all."""
    precision: Annotated[Literal["auto", "float32", "bfloat16"], RESUMABLE] = "auto"
    """In which the frozen encoder computes; auto takes bfloat16 where the processor has it."""
    spatial_features: Positive = 8
    """Learned weightings of the image plane per channel (SERL's spatial embedding)."""
    bottleneck: Positive = 128
    """Width of what the head makes of each camera."""


@dataclass(frozen=True, config=STRICT)
class EngineConfig(Section):
    """Speed of an update; its result stays the same, but for the last digits."""

    compile: bool = False
    """Compile the losses (torch.compile): up to a third faster, after half a minute of compilation."""
    precision: Annotated[Literal["auto", "float32", "bfloat16"], WithPixels("auto")] = "float32"
    """In which products are computed; parameters, optimizers and losses stay float32. auto takes bfloat16 where the
    hardware has it."""
    capture: bool = True
    """On a GPU: record the whole update once as a CUDA graph and replay it. Nothing changes on a CPU."""


@dataclass(frozen=True, config=STRICT)
class SimulationConfig:
    """Dynamics of the simulated arm. null: as in the task; `robot-rl calibrate sim` identifies those of a real arm."""

    large_joint_friction: NonNegativeReal | None = None
    """Dry friction of the joints with the larger motors, 1 to 4 [Nm]."""
    small_joint_friction: NonNegativeReal | None = None
    """Of joints 5 to 7 [Nm]."""
    large_joint_damping: NonNegativeReal | None = None
    """Viscous friction of joints 1 to 4 [Nms/rad]."""
    small_joint_damping: NonNegativeReal | None = None
    """Of joints 5 to 7 [Nms/rad]."""
    translation_stiffness: PositiveReal | None = None
    """Of the Cartesian controller [N/m]."""
    rotation_stiffness: PositiveReal | None = None
    """Of the Cartesian controller [Nm/rad]."""
    command_delay: NonNegativeReal | None = None
    """From a command to its first effect [s]; the simulation takes whole physics steps."""


@dataclass(frozen=True, config=STRICT)
class TrainConfig:
    """One training run, from demonstrations to evaluation."""

    task: str = "peg_insert"
    """Name of the task, or of an environment of others, e.g. `gym:Pendulum-v1`; `robot-rl tasks` lists them."""
    observations: Literal["state", "pixels"] = "state"
    """`state`: proprioception and the task's estimate of where things are. `pixels`: proprioception and cameras."""
    seed: Annotated[NonNegative, Field(lt=2**64), FORKABLE] = 0
    """Everything random follows from it."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where the learner computes, and a frozen encoder on each machine that has one."""
    robot: str = ""
    """Which arm and tool; calibrations of another one are refused. Empty: any, but all of one."""
    calibrations: Annotated[tuple[str, ...], Resumable("to the same content in other files")] = ()
    """Files of `robot-rl calibrate` that hold in this run: copied into it, and it is not resumed with others. NAME=FILE
    for a camera that the file calls by its serial number."""
    demonstrations: Annotated[NonNegative, WithGuest(0)] = 20
    """Episodes that the operator demonstrates before learning starts."""
    env_steps: Annotated[NonNegative, RESUMABLE, WithPixels(8_000), WithGuest(50_000)] = 12_000
    """Online steps, interventions included, demonstrations not; 0 with `offline.steps` set: nothing is played."""
    warmup_steps: Annotated[NonNegative, WithGuest(1_000), WithBase(100)] = 100
    """Online steps before the first update."""
    warmup: Annotated[Literal["policy", "uniform", "base"], WithGuest("uniform"), WithBase("policy")] = "policy"
    """Actions of these steps. `policy`: of the untrained policy, which is gentle with an arm. `uniform`: drawn
    uniformly, with a base within `base.bound` of it, which explores more where nobody demonstrates. `base`: of the base
    policy alone."""
    update_to_data: Annotated[Count, Scheduled(whole=True, ge=1), FORKABLE, WithPixels(4), WithGuest(4)] = 8
    """Critic updates per env step; actor and temperature are updated once per env step. A schedule over env steps:
    {0: 4, 10000: 8}, each holds up to the next."""
    policy_average: Annotated[float, Field(ge=0, le=1), FORKABLE] = 0.1
    """The policy that is evaluated and deployed is the mean over this newest share of the steps, which evens out what
    the last few updates did; 0: the newest. The policy that explores is always the newest."""
    processes: Annotated[Literal[1, 2], RESUMABLE, WithPixels(2)] = 1
    """1: actor and learner take turns, deterministic. 2: they run side by side."""
    learners: Annotated[Positive, RESUMABLE] = 1
    """Processes that learn as one, each with a GPU of its own where `device=cuda`: each holds a part of the episodes,
    and computes with its part of every minibatch of `replay.batch_size` rows. More than one need `processes=2`."""
    realtime: Annotated[bool, RESUMABLE] = False
    """Keep a simulation's pace equal to the wall clock's, as on a robot; needs `processes=2`."""
    reaction_time: Annotated[float, Field(ge=0), RESUMABLE] = 0.05
    """In real time, from an observation to its command [s]; less than the task's control period. Encoding
    and inference take part of it, and the actor waits for the rest, so that commands come evenly. 0: at once."""
    max_lead_steps: Annotated[NonNegative, RESUMABLE] = 10
    """Steps that an actor with a process of its own may be ahead of the learner. On a simulated clock it then waits
    between steps; on a robot, whose control must not pause, after the episode."""
    checkpoint_interval: Annotated[Positive, RESUMABLE, WithGuest(5_000)] = 1_000
    """Env steps between checkpoints."""
    keep_checkpoints: Annotated[NonNegative, RESUMABLE] = 0
    """Env steps between checkpoints that stay, in `checkpoints`; 0: the newest two alone."""
    algorithm: AlgorithmConfig = Field(default_factory=AlgorithmConfig)
    offline: IQLConfig = Field(default_factory=IQLConfig)
    base: BaseConfig = Field(default_factory=BaseConfig)
    sac: SACConfig = Field(default_factory=SACConfig)
    replay: ReplayConfig = Field(default_factory=ReplayConfig)
    encoder: EncoderConfig = Field(default_factory=EncoderConfig)
    engine: Annotated[EngineConfig, FORKABLE] = Field(default_factory=EngineConfig)
    intervention: Annotated[InterventionConfig, FORKABLE] = Field(default_factory=InterventionConfig)
    reward: RewardConfig = Field(default_factory=RewardConfig)
    evaluation: Annotated[EvaluationConfig, RESUMABLE] = Field(default_factory=EvaluationConfig)
    simulation: Annotated[SimulationConfig, FORKABLE] = Field(default_factory=SimulationConfig)
    randomization: Annotated[RandomizationConfig, FORKABLE] = Field(default_factory=RandomizationConfig)
    world: Annotated[WorldConfig, FORKABLE] = Field(default_factory=WorldConfig)
    environment: EnvironmentConfig = Field(default_factory=EnvironmentConfig)

    @property
    def has_base(self) -> bool:
        """Whether the policy corrects a base."""
        return self.base.kind != "none"

    @property
    def steers(self) -> bool:
        """Whether it corrects the noise of its base."""
        return self.has_base and self.base.correction == "noise"

    def updates_at(self, env_steps: int) -> int:
        """Return how many updates the env step after so many is worth."""
        return held_at(self.update_to_data, env_steps)

    @model_validator(mode="before")
    @classmethod
    def _apply_conditional_defaults(cls, value: Any) -> Any:
        return with_conditional_defaults(cls, value) if isinstance(value, ArgsKwargs) else value


WORLD_SECTIONS = ("simulation", "randomization", "world", "environment")
"""Settings that make the world in which a policy acts, and nothing of the policy."""


def world_of(config: TrainConfig) -> dict[str, Any]:
    """Return the task and all settings that make the world, nested and plain."""
    return {"task": config.task, **{section: asdict(getattr(config, section)) for section in WORLD_SECTIONS}}
