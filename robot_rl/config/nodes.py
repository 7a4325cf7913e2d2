"""Settings of the ROS nodes, one frozen dataclass per node; `ros_nodes/node/parameters.py` declares them.

An empty entry of a list counts as none: ROS cannot infer the type of an empty list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from robot_rl.config.command_limits import ArmCap, CommandLimits
from robot_rl.config.field_types import LARGEST_IMAGE, STRICT, NonNegative, Positive, PositiveReal, Real


@dataclass(frozen=True, config=STRICT)
class SimNodeConfig(ArmCap):
    """The simulated arm behind the robot's topics."""

    task: str = "peg_insert"
    """Name of the task; `robot-rl tasks` lists them."""
    lockstep: bool = False
    """Time stands still until a client advances it; otherwise it is the wall clock's."""
    cameras: tuple[str, ...] = ()
    """Cameras to publish; none makes it fast."""
    image_size: Annotated[int, Field(ge=32, le=LARGEST_IMAGE)] = 128
    """Height and width of the frames [px]."""
    state_rate: Annotated[float, Field(gt=0, le=1000)] = 100.0
    """Messages of each part of the arm's state per second, in real time [Hz]."""
    camera_rate: Annotated[float, Field(gt=0, le=120)] = 30.0
    """Frames of each camera per second, in real time [Hz]."""
    calibrations: tuple[str, ...] = ()
    """Intrinsics that the cameras publish, as NAME=FILE of `robot-rl calibrate`; none: as the task renders them."""
    robot: str = ""
    """Which arm and tool it stands for; a file of another one is refused. None takes any."""
    arm: str = ""
    """How the arm moves: a file of `robot-rl calibrate sim`; none: as the task has it."""
    board: str = ""
    """A board to calibrate a camera with, e.g. charuco:11x8:20mm:15mm, is there instead of the task; none: the task."""
    mounting: Literal["eye_in_hand", "eye_to_hand"] = "eye_in_hand"
    """With a board: the camera is on the tool and the board on the table, or the other way round."""
    operator: Literal["script", "person"] = "script"
    """Source of demonstrations and interventions: the task's script, or a person with a device, who starts each."""
    practice: bool = False
    """The task and its reverse take turns in one scene, without resets, for `job:=practice` of the actor."""
    episode_seed: NonNegative = 0
    """Everything random in the episode that the service `task/reset` starts follows from it; may change at any time."""
    episode_task: str = ""
    """With `practice`: whose turn it is, the task or its reverse; may change between episodes. None: that of `task`."""
    scene: str = ""
    """With `practice`: an answer of the service `task/scene`; to set it puts that scene back. None: it was not."""


@dataclass(frozen=True, config=STRICT)
class SafetyNodeConfig(CommandLimits):
    """The limits of `safety_node`, and the nodes that it watches."""

    lockstep: bool = False
    """The arm is simulated, and its time stands still until whoever commands has moved it on."""
    arms: tuple[str, ...] = ()
    """Names of several arms, each of which has these limits in its own base frame; none: those of the task file, or one
    arm with no name."""
    arm_limits: tuple[str, ...] = ()
    """In what the limits of one of several arms differ, as ARM.LIMIT=VALUE: `left.box_low=[0.3, -0.4, 0.02]`."""
    task_file: str = ""
    """The task's facts (YAML): several arms keep its `keep_out`, as this node measures them. None: they keep it only
    where the policy acts."""
    required_nodes: tuple[str, ...] = ()
    """Nodes that have to live and to work, or the arm holds; not in lockstep, where time waits for them. `robot_node`
    stands for the one of each of several arms."""
    liveliness_lease: Annotated[float, Field(ge=0.1, le=10.0)] = 0.25
    """Time without a sign of life of a required node's process after which the arm holds [s]."""
    heartbeat_timeout: PositiveReal = 1.0
    """Longest time between two heartbeats of a required node whose process lives [s]."""
    start_inactive: bool = False
    """Start in the state `inactive`, in which nothing passes, until it is activated (`ros2 lifecycle set`)."""
    latch_file: str = ""
    """File that keeps a latched stop until its release, so that it also holds where this process dies and is started
    again; bringups name one. None: a stop is released by the end of the process."""


@dataclass(frozen=True, config=STRICT)
class TeleopNodeConfig:
    """The operator's device, and the map by which its readings become interventions."""

    device: str = "joy"
    """The device: `joy` or `twist`, which are topics (`joy`, `teleop/twist`), or one of this machine, as `robot-rl
    devices` lists them, e.g. `spacemouse`."""
    map: str = ""
    """What its axes and buttons mean: the name of a map (`joy`, `spacenav`, ...) or a file; none: the device's own."""
    engage: Literal["", "move", "hold"] = ""
    """Take over by moving, or only while the button `take` is held; none: as the map has it."""
    arm_name: str = ""
    """Which of several arms the device leads; none: the first, until the button `next_arm` chooses the next."""
    twist_speed: PositiveReal = 0.1
    """Linear speed of a TwistStamped that counts as full deflection [m/s]."""
    twist_turn_rate: PositiveReal = 0.6
    """Angular speed of a TwistStamped that counts as full deflection [rad/s]."""


@dataclass(frozen=True, config=STRICT)
class CameraNodeConfig:
    """Cameras behind topics."""

    cameras: tuple[str, ...] = ()
    """Cameras as NAME=SOURCE: `wrist=realsense:0123456789`, `front=uvc:/dev/video0`, `front=file:FOLDER_OR_VIDEO`,
    `front=topic:/camera/color/image_raw/compressed`."""
    depth_range: tuple[PositiveReal, ...] = (0.2, 1.2)
    """Nearest and farthest distance in depth images of a topic [m]; they become grey pictures, near is bright."""
    capture_width: NonNegative = 640
    """Width of the frames that are requested from the cameras [px]; 0 leaves the size to them."""
    capture_height: NonNegative = 480
    """Height of the frames that are requested from the cameras [px]."""
    capture_rate: Annotated[float, Field(gt=0, le=240)] = 30.0
    """Frames of each camera per second [Hz]."""
    crops: tuple[str, ...] = ()
    """What is cut out, as NAME=LEFT,TOP,WIDTH,HEIGHT [px]; without one, the largest square in the middle."""
    image_size: Annotated[int, Field(ge=0, le=LARGEST_IMAGE)] = 128
    """Height and width of the published frames [px]; 0 publishes the whole frame as it is, to calibrate with."""
    calibrations: tuple[str, ...] = ()
    """Intrinsics, as NAME=FILE of `robot-rl calibrate` or a camera_info file, at the captured resolution."""
    robot: str = ""
    """Which arm and tool the cameras belong to; a hand-eye result of another one is refused. None takes any."""
    frozen_after: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    """How long a picture may stay the same, bit for bit, before the camera counts as frozen [s]; 0: for ever."""
    silent_after: PositiveReal = 0.5
    """How long a camera may give no frame before that is a fault [s]."""
    retry: PositiveReal = 1.0
    """Time between two attempts to open a camera [s]."""


@dataclass(frozen=True, config=STRICT)
class RobotNodeConfig(ArmCap):
    """An arm behind our topics; the parameters of its driver are parameters of the node, too."""

    driver: str = "crisp"
    """Driver of the arm: `crisp` for a Cartesian controller behind topics, or one of an installed package."""
    arm_name: str = ""
    """Which of several arms it is: the node is in a namespace of that name, below that of the cell; none: the only."""
    wrench_cutoff: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 10.0
    """Corner frequency of the low-pass of the wrench [Hz]; 0: none."""
    interpolation: Literal["driver", "none", "linear", "minimum_jerk"] = "driver"
    """How the set-point gets from one command to the next; `driver`: as is best for its arms."""
    state_rate: Annotated[float, Field(gt=0, le=1000)] = 100.0
    """At most so many messages of each part of the state per second [Hz]."""
    max_age: PositiveReal = 0.2
    """Oldest pose with which the arm is let move [s]."""
    start_inactive: bool = False
    """Start in the state `inactive`, in which the arm is only measured, until activated (`ros2 lifecycle set`)."""


@dataclass(frozen=True, config=STRICT)
class TaskNodeConfig:
    """A task on a real robot, judged by a person or by the arm itself."""

    task: str = "task"
    """Its name, as in the run's settings."""
    file: str = ""
    """YAML file with its facts; `launch/config/task.yaml` is an example."""
    image_size: Annotated[int, Field(ge=32, le=LARGEST_IMAGE)] = 128
    """Height and width of the cameras' frames [px]."""
    judge: Literal["person", "goal"] = "person"
    """Who decides whether an episode succeeded: a person; or `goal`, the arm itself: the tcp is at a goal drawn for
    each episode. The node then also demonstrates, straight to the goal."""
    scene: Literal["person", "none"] = "person"
    """Who makes the scene ready before each episode: a person, who then says so; or nobody."""
    goal_spread: tuple[Real, ...] = (0.04, 0.04, 0.04)
    """Largest distance of the goal from the start along each axis of the base [m]."""
    goal_tolerance: PositiveReal = 0.008
    """Distance of the tcp below which it is at the goal [m]."""
    goal_steps: Positive = 2
    """Steps in a row for which it has to be there."""
    episode_seed: NonNegative = 0
    """The actor's number of the episode: the goal follows from it; without one, nothing does."""


@dataclass(frozen=True, config=STRICT)
class CalibrateNodeConfig:
    """A camera calibrated with the arm: its lens, and where it is on the tool or beside the arm."""

    camera: str = "wrist"
    """Name of the camera; its whole frames have to be published (`image_size:=0` of camera_node)."""
    board: str = "charuco:11x8:20mm:15mm"
    """As printed: squares across x down, square, marker; or apriltag:7x5:24mm:8mm."""
    mounting: Literal["eye_in_hand", "eye_to_hand"] = "eye_in_hand"
    """The camera is on the tool and the board on the table, or beside the arm and the board in the gripper."""
    robot: str = "arm"
    """Which arm and tool; the result is refused for another one."""
    model: Literal["pinhole", "fisheye"] = "pinhole"
    """Kind of lens."""
    intrinsics: str = ""
    """The lens, if it is calibrated already: a result or a camera_info file; none has it calibrated, too."""
    out: str = ""
    """Directory for results, reports, and the pictures with their poses; none takes `calibration`."""
    views: Annotated[int, Field(ge=8, le=200)] = 20
    """How many pictures."""
    drive: bool = False
    """Consent: the arm is driven to the poses. Without it somebody moves the arm by hand, until `calibrate/drive`."""
    box_low: tuple[Real, ...] = (0.3, -0.25, 0.1)
    """Least x, y, z of the tcp in the base frame [m]; inside the safety node's box."""
    box_high: tuple[Real, ...] = (0.7, 0.25, 0.5)
    """Largest x, y, z of the tcp in the base frame [m]."""
    max_turn: Annotated[float, Field(gt=0, le=1.5)] = 0.7
    """By how much the tool may be turned from how it is at the start [rad]."""
    speed: Annotated[float, Field(gt=0, le=0.5)] = 0.1
    """Largest speed of the tcp [m/s]."""
    turn_rate: Annotated[float, Field(gt=0, le=2.0)] = 0.5
    """Largest rate at which it turns [rad/s]."""
    max_age: PositiveReal = 0.2
    """Oldest state of the arm that is acted on [s]; an older one stops it."""
    lockstep: bool = False
    """The arm is simulated, and its time stands still until this node moves it on."""
    graph_timeout: PositiveReal = 60.0
    """How long to wait for the other nodes at the start [s]."""
    seed: NonNegative = 0
    """Of the random poses among which the best are chosen."""


@dataclass(frozen=True, config=STRICT)
class ActorNodeConfig:
    """The run: demonstrations, learning, evaluation."""

    job: Literal["train", "practice", "demo", "eval"] = "train"
    """`train`: all of it; `practice`: a task and its reverse in turn, without resets; `demo`: demonstrations into a
    store; `eval`: the policy of a run, left alone."""
    config: str = ""
    """YAML file with the settings of the run, as for `robot-rl train --config`; none takes the defaults."""
    settings: tuple[str, ...] = ()
    """Overrides `key=value`, as for `robot-rl train --set`."""
    out: str = ""
    """Where to record. Training: the run directory; none takes runs/<task>-seed<seed>-<time>, and one that holds a run
    is continued. Practice: its directory; one that holds a practice is continued. Demonstrations: the directory of the
    store; one that holds some is continued. Evaluation: the directory of a new store for its episodes; none keeps
    none."""
    demos: str = ""
    """Training: a store of demonstrations to begin a new run with; none has them made."""
    run: str = ""
    """Evaluation: the run directory whose policy is evaluated."""
    episodes: NonNegative = 0
    """Number of demonstrations, or of evaluation episodes; 0: as in the settings, or in those of the run."""
    learner: Literal["node", "inside"] = "node"
    """Where the learner is: in `learner_node`, over topics, or a process of the actor's own. A practice has one of its
    own for each task."""
    unattended: bool = False
    """Practice: nobody is there; nobody takes over, and where only a person could help, it ends."""
    patience: Positive = 30
    """Practice: robot time without a success after which a person is needed [min]."""
    fleet: str = ""
    """Training: a fleet file (YAML); then the learner is the fleet's, and the settings of the run are those of the
    file."""
    fleet_robot: str = ""
    """Name of this robot in the fleet file."""
    fleet_learner: str = ""
    """Address of the fleet's learner, HOST, :PORT or HOST:PORT; none: 127.0.0.1:8490."""
    max_age: PositiveReal = 0.2
    """Oldest state that is acted on [s]; an older one stops the arm."""
    max_camera_age: PositiveReal = 0.25
    """Oldest frame that is acted on [s]."""
    max_skew: PositiveReal = 0.05
    """Largest difference between the stamps of the parts of the arm's state [s]."""
    operator_timeout: PositiveReal = 0.2
    """Age at which an intervention ends if no more of it arrives [s]."""
    graph_timeout: PositiveReal = 60.0
    """How long to wait for the other nodes at the start [s]."""
    robot_file: str = ""
    """The file that describes the cell: a run records it and its newest commissioning."""


@dataclass(frozen=True, config=STRICT)
class RecorderNodeConfig:
    """Bags (MCAP) of what passes on the topics."""

    folder: str = "bags"
    """Where bags are put; each is named by the time at which it was begun."""
    start: bool = False
    """Begins a bag at the start; otherwise the service `recorder/record` does."""
    topics: tuple[str, ...] = ()
    """Which topics; none takes all that are published, also later ones."""
    without: tuple[str, ...] = ("link/to_learner", "link/to_actor")
    """Topics to leave out; by default the link between actor and learner, which carries what is recorded anyway."""


@dataclass(frozen=True, config=STRICT)
class LearnerNodeConfig:
    """The learner, which takes its configuration from the actor."""

    threads: Positive = 1
    """Threads that torch computes with."""


@dataclass(frozen=True, config=STRICT)
class LabellerNodeConfig:
    """A labeller that judges episodes beside the training that records them."""

    run: str = ""
    """Run directory or store that is recorded; it may come later."""
    config: str = ""
    """YAML file with the labeller's settings, as for `robot-rl label run --config`."""
    settings: tuple[str, ...] = ()
    """Overrides `key=value` of those settings; `robot-rl label run --list-settings` names them."""
    name: str = ""
    """Of the labels; none: their kind."""
    pause: PositiveReal = 2.0
    """Between two looks at the store [s]."""


@dataclass(frozen=True, config=STRICT)
class ConsoleNodeConfig:
    """The operator console, for a browser."""

    address: str = ""
    """Where it is served: HOST, :PORT or HOST:PORT; none: 127.0.0.1:8480. On an address that others can reach it
    demands a token, made up or taken from ROBOT_RL_CONSOLE_TOKEN."""
    tls: bool = False
    """Serve over TLS, with a certificate of its own whose fingerprint is printed; `certificate` names another."""
    certificate: str = ""
    """PEM file of a certificate, to serve over TLS; needs `key`."""
    key: str = ""
    """PEM file of its key."""
    run: str = ""
    """Run directory or store that is recorded, to show its curves, and to replay and label its episodes."""
    map: str = ""
    """What the page's axes and buttons mean: the name of a map or a file; none: `browser`."""
    engage: Literal["", "move", "hold"] = ""
    """Take over by moving, or only while a button is held; none: as in the map."""
    heartbeat: Annotated[float, Field(ge=0.1, le=10.0)] = 0.2
    """Time without a message from the page in control after which the arm holds [s]."""
    max_age: PositiveReal = 1.0
    """Oldest state that is shown [s]."""
    graph_timeout: PositiveReal = 60.0
    """How long to wait for the task at the start [s]."""


NODE_CONFIGS: Mapping[str, type] = {
    "sim_node": SimNodeConfig,
    "safety_node": SafetyNodeConfig,
    "teleop_node": TeleopNodeConfig,
    "camera_node": CameraNodeConfig,
    "robot_node": RobotNodeConfig,
    "task_node": TaskNodeConfig,
    "calibrate_node": CalibrateNodeConfig,
    "actor_node": ActorNodeConfig,
    "recorder_node": RecorderNodeConfig,
    "learner_node": LearnerNodeConfig,
    "labeller_node": LabellerNodeConfig,
    "console_node": ConsoleNodeConfig,
}
"""The settings of each node, by its name."""

REPLACED_PARAMETERS: Mapping[type, Mapping[str, str]] = {
    TeleopNodeConfig: {
        "axes": "map",
        "scale": "map",
        "deadband": "map (its dead_zone)",
        "take_over_button": "map (its button `take`) and engage:=hold",
        "close_button": "map (its button `close`)",
        "open_button": "map (its button `open`)",
    },
    TaskNodeConfig: {
        "success_button": "the button `start` or `success` in the map of teleop_node",
        "failure_button": "the button `failure` in the map of teleop_node",
    },
}
"""Parameters of earlier versions by the settings that they were part of, and what replaces each."""
