"""What can be set, one frozen dataclass per component. Every field says what it is, in which unit, and why its value.

pydantic checks types and ranges when an object is made; an unknown key is an error. `robot_rl/config/load.py` reads
files and command-line overrides into these.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

Positive = Annotated[int, Field(ge=1)]
NonNegative = Annotated[int, Field(ge=0)]
PositiveReal = Annotated[float, Field(gt=0)]
NonNegativeReal = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1)]

STRICT = ConfigDict(extra="forbid", strict=True)
"""How pydantic checks every component."""


@dataclass(frozen=True, config=STRICT)
class SACConfig:
    """RLPD-style soft actor-critic (Haarnoja 2018; Ball 2023)."""

    hidden_sizes: tuple[Positive, ...] = (256, 256)
    """Widths of the hidden layers of actor and critics; each is followed by LayerNorm and ReLU."""
    ensemble_size: Positive = 2
    """Number of independent critics."""
    target_subset: Positive = 2
    """Critics drawn at random for each target; the target is their minimum (REDQ)."""
    discount: Annotated[float, Field(gt=0, lt=1)] = 0.96
    """Discount per control step."""
    n_step: Positive = 3
    """Steps summed before the bootstrap. A window ends early where the episode ends or control changes hands."""
    target_rate: Fraction = 0.005
    """Polyak rate of the target critics, per critic update."""
    learning_rate: PositiveReal = 3e-4
    """Adam, for actor, critics and temperature alike."""
    initial_temperature: PositiveReal = 0.01
    """Entropy coefficient at the start."""
    target_entropy_per_action: float = -0.5
    """Target entropy of the policy, times the number of continuous actions."""
    critic_loss: Literal["squared", "hl_gauss"] = "squared"
    """`squared`: critics estimate the return. `hl_gauss`: they estimate a histogram of it over the range that the task
    declares, by cross-entropy (Farebrother 2024); those of the gripper keep the squared error."""
    clamp_targets: bool = True
    """Clamp critic targets to the return range that the task declares."""
    goal_weight: Annotated[float, Field(ge=0)] = 0.1
    """With pixels: weight of a second loss for what sees, which learns from the frames of successful episodes how far
    the tcp was from where they ended. 0 leaves it out."""
    gripper_exploration: Fraction = 0.02
    """Chance of a random gripper action while training, for tasks that have one."""


@dataclass(frozen=True, config=STRICT)
class AlgorithmConfig:
    """The algorithm that learns."""

    name: str = "sac"
    """Name in the entry point group `robot_rl.algorithms`. `sac`: soft actor-critic, pretrained by IQL where
    `offline.steps` is set. `iql`: implicit Q-learning throughout. `bc`: behaviour cloning. All three take networks and
    rates from `sac`. Another one comes with an installed package."""
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
class ReplayConfig:
    """What is remembered and how it is sampled."""

    capacity: Positive = 100_000
    """Steps kept online; the oldest episodes go first. Demonstrations are never dropped."""
    batch_size: Positive = 128
    """Transitions in each critic update."""
    demo_fraction: Fraction = 0.5
    """Share of each batch drawn from demonstrations and interventions."""
    history: tuple[NonNegative, ...] = (0, 1)
    """Ages [steps] of the observations stacked for the networks; before the first one, the first is repeated."""


@dataclass(frozen=True, config=STRICT)
class InterventionConfig:
    """How the scripted operator corrects the policy while training."""

    enabled: bool = True
    """Whether it does so at all."""


@dataclass(frozen=True, config=STRICT)
class BudgetConfig:
    """How much one run of the labeller may use. It stops before it would use more; 0 sets no limit."""

    calls: NonNegative = 0
    """Requests to the server, repeated ones included."""
    tokens: NonNegative = 0
    """Tokens of prompts and replies together."""
    money: NonNegativeReal = 0.0
    """In the currency of the prices."""
    seconds: NonNegativeReal = 0.0
    """Wall time [s]."""


@dataclass(frozen=True, config=STRICT)
class ShapingConfig:
    """Rewards shaped by progress, R + gamma Phi(s') - Phi(s) (Ng 1999): learning is led, what is best stays best."""

    head: str = ""
    """File of a progress head, from `robot-rl label train --kind progress`. Empty: rewards are not shaped."""
    scale: PositiveReal = 1.0
    """Phi of a task that looks done, in units of the reward; a success is worth 1. Phi is this times the progress."""


@dataclass(frozen=True, config=STRICT)
class RewardConfig:
    """Who says whether an episode is a success, while training and in evaluation."""

    kind: Literal["task", "classifier", "vlm"] = "task"
    """`task`: the task itself, which in simulation knows the truth. `classifier`: frames, at every step; see
    `robot-rl reward`. `vlm`: a label of the whole episode, which comes after its end; see `robot-rl label`."""
    path: str = ""
    """`classifier`: its file, from `robot-rl reward train`. `vlm`: a store, or a run, with labels of the same labeller,
    calibrated and judged there."""
    labels: str = "success"
    """`vlm`: name of these labels. The labeller is set as it was for them."""
    unlabelled: Literal["masked", "failure"] = "masked"
    """`vlm`: what the end of an episode counts as that has no label (yet). `masked`: nothing is learned from its last
    step. `failure`: it was not a success, until a label says otherwise."""
    episode_steps: NonNegative = 0
    """`vlm`: step limit of episodes that are labelled, which no success ends: half as many again as a demonstration
    takes leaves time to succeed, and does not spend the robot's on waiting. 0: the task's, which none exceeds."""
    find_onset: bool = False
    """`vlm`: ask of each success since when it has been one, by halving what is in question: log2(steps) questions
    more. It is then learned as if it had ended there, and not when the episode's time was up."""
    allow_uncalibrated: bool = False
    """`vlm`: take labels that did not pass the gate for being a sparse reward. The run then says so."""
    budget: BudgetConfig = Field(default_factory=BudgetConfig)
    """`vlm`: what labelling may use while the run lasts, anew after each resuming."""
    shaping: ShapingConfig = Field(default_factory=ShapingConfig)
    """With any kind: a reward for progress while learning."""
    allow_unfit: bool = False
    """Take a classifier although `robot-rl reward report` did not find it fit to end episodes, or was not asked."""
    overrule_s: Annotated[float, Field(ge=0, le=30)] = 2.0
    """With a person beside the training: how long a success that only the classifier saw waits for their word [s]."""


@dataclass(frozen=True, config=STRICT)
class EvaluationConfig:
    """Evaluation of the finished policy, on seeds apart from training."""

    episodes: Positive = 100
    """Held-out resets."""
    seed: NonNegative = 1_000_000
    """Which held-out resets; the same for runs of all seeds, and never those of training."""
    curve_interval: NonNegative = 1_000
    """Env steps between the points of the learning curve, each a short evaluation without help; 0 makes none."""
    curve_episodes: Positive = 20
    """Resets for each point of the learning curve; the same for every point, and apart from the final ones."""
    video_episodes: NonNegative = 4
    """Episodes shown in `evaluation.mp4`; 0 writes none."""


@dataclass(frozen=True, config=STRICT)
class EncoderConfig:
    """How a policy sees; nothing here counts for one that learns from `state`."""

    name: str = "bundled"
    """`bundled` (EfficientNet-Lite0 with ImageNet weights), `timm:<model>`, `hf:<model>`, `random` (Lite0 with random
    weights, to compare with): frozen, features are computed once when a frame arrives. `conv`, `resnet10`: trained."""
    cameras: Annotated[tuple[str, ...], Field(min_length=1)] = ("front", "wrist")
    """Cameras that the policy sees."""
    image_size: Annotated[int, Field(ge=32, multiple_of=32)] = 128
    """Height and width of the frames [px]."""
    crops: Positive = 4
    """Randomly shifted crops of each frame whose features are kept; the first is not shifted, the policy acts on it."""
    shift: NonNegative = 4
    """Largest shift of a crop, either way [px]."""
    projection: NonNegative = 64
    """Channels to which a fixed random projection reduces the frozen features before they are kept; 0 keeps all."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """In which the frozen encoder computes; auto takes bfloat16 where the processor has it."""
    spatial_features: Positive = 8
    """Learned weightings of the image plane per channel (SERL's spatial embedding)."""
    bottleneck: Positive = 128
    """Width of what the head makes of each camera."""


@dataclass(frozen=True, config=STRICT)
class EngineConfig:
    """How an update is made fast; what it computes stays the same, but for the last digits."""

    compile: bool = False
    """Compile the losses (torch.compile): up to a third faster, after half a minute in which nothing happens."""
    precision: Literal["auto", "float32", "bfloat16"] = "float32"
    """In which products are computed; parameters, optimizers and losses stay float32. auto takes bfloat16 where the
    hardware has it."""
    capture: bool = True
    """On a GPU: record the whole update once as a CUDA graph and replay it. Nothing changes on a CPU."""


@dataclass(frozen=True, config=STRICT)
class SimulationConfig:
    """How the simulated arm moves. What is null is as the task has it; `robot-rl calibrate sim` finds a real arm's."""

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
    """Name of the task; `robot-rl tasks` lists them."""
    observations: Literal["state", "pixels"] = "state"
    """`state`: proprioception and the task's estimate of where things are. `pixels`: proprioception and cameras."""
    seed: NonNegative = 0
    """Everything random follows from it."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where the learner computes."""
    robot: str = ""
    """Which arm and tool; calibrations of another one are refused. Empty: any, but all of one."""
    calibrations: tuple[str, ...] = ()
    """Files of `robot-rl calibrate` that hold in this run: copied into it, and it is not resumed with others. NAME=FILE
    for a camera that the file calls by its serial number."""
    demonstrations: NonNegative = 20
    """Episodes that the operator demonstrates before learning starts."""
    env_steps: NonNegative = 12_000
    """Online steps, interventions included, demonstrations not; 0 with `offline.steps` set: nothing is played."""
    warmup_steps: NonNegative = 100
    """Online steps before the first update."""
    update_to_data: Positive = 8
    """Critic updates per env step; actor and temperature are updated once per env step."""
    policy_average: Annotated[float, Field(ge=0, le=1)] = 0.1
    """The policy that is evaluated and deployed is the mean over this newest share of the steps, which evens out what
    the last few updates did; 0: the newest. Who explores is always the newest."""
    processes: Literal[1, 2] = 1
    """1: actor and learner take turns, deterministic. 2: they run side by side."""
    realtime: bool = False
    """Keep a simulation's pace equal to the wall clock's, as on a robot; needs `processes=2`."""
    reaction_time: Annotated[float, Field(ge=0)] = 0.05
    """In real time, from an observation to its command [s]; less than the task's control period. Looking
    and thinking take part of it, and the rest is waited for, so that the robot is commanded evenly. 0: at once."""
    max_lead_steps: NonNegative = 10
    """Steps that an actor with a process of its own may be ahead of the learner. On a simulated clock it then waits
    between steps; on a robot, whose control must not pause, after the episode."""
    checkpoint_interval: Positive = 1_000
    """Env steps between checkpoints."""
    algorithm: AlgorithmConfig = Field(default_factory=AlgorithmConfig)
    offline: IQLConfig = Field(default_factory=IQLConfig)
    sac: SACConfig = Field(default_factory=SACConfig)
    replay: ReplayConfig = Field(default_factory=ReplayConfig)
    encoder: EncoderConfig = Field(default_factory=EncoderConfig)
    engine: EngineConfig = Field(default_factory=EngineConfig)
    intervention: InterventionConfig = Field(default_factory=InterventionConfig)
    reward: RewardConfig = Field(default_factory=RewardConfig)
    evaluation: EvaluationConfig = Field(default_factory=EvaluationConfig)
    simulation: SimulationConfig = Field(default_factory=SimulationConfig)


PIXEL_DEFAULTS = {
    "env_steps": 8_000,
    "update_to_data": 4,
    "processes": 2,
    "engine": {"precision": "auto"},
    "replay": {"capacity": 30_000, "batch_size": 256},
}
"""Settings whose defaults differ with `observations=pixels`: updates cost ten times as much, and frames take memory."""
