"""Success on a task without learning: baselines that show how hard the task is.

    python benchmarks/baselines.py [--task ram_insert] [--episodes 300] [--obs pixels]

Scripted policies and behaviour cloning from the same 20 demonstrations, on the evaluation's held-out resets.

Behaviour cloning's stopping rule: of up to 3,000 gradient steps, the parameters of least validation loss on four
held-out demonstrations.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from robot_rl.config.components import TrainConfig
from robot_rl.config.load import load_config
from robot_rl.data.chunk_layout import ChunkLayout
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.choice import join_grippers
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.geometry import Pose, quat_conjugate, quat_multiply, yaw_pose
from robot_rl.learn.actor import Rollout
from robot_rl.learn.algorithms.bc import clone
from robot_rl.learn.local_learner import LocalLearner
from robot_rl.learn.networks.networks import Policy, make_policy
from robot_rl.learn.perception import Perception, make_perception
from robot_rl.run.demonstrate import record_demonstrations
from robot_rl.run.deployment import Deployment, workcell_options
from robot_rl.run.evaluation import evaluate
from robot_rl.statistics import mean
from sim.scene import DOWNWARD
from sim.tasks.cable_clip import CLIP as CABLE_CLIP
from sim.tasks.cable_clip import REACH as CABLE_REACH
from sim.tasks.pan_flip import START as PAN_START
from sim.tasks.pan_flip import TOSS, pitch_of, toss_motion
from sim.tasks.two_arms.belt_operator import EndOperator
from sim.tasks.two_arms.handover_operator import GRASP
from sim.tasks.usb_pick_insert import half_turn
from sim.tasks.whip import ROD, START, WhipOperator, struck_from
from sim.tasks.whip import STROKE as WHIP

ESTIMATE, PLUG, CLIP = "state/hole_estimate", "state/plug_estimate", "state/clip_estimate"
BAR, PLACE, BLOCK = "state/bar_estimate", "state/place", "state/block_estimate"
EGG, PULLEY = "state/egg_estimate", "state/{}_pulley_estimate"
STRAIGHT, AROUND = "straight to the estimate and down", "beside the estimate, down, and sideways into it"
RULES = dict.fromkeys(
    ("peg_insert", "peg_hard", "ram_insert", "usb_pick_insert"), ("do nothing", "push down", STRAIGHT)
)
RULES["cable_clip"] = ("do nothing", "push down", STRAIGHT, AROUND)
STROKE = "the operator's stroke, at the estimate"
RULES["whip"] = ("do nothing", "push down", STRAIGHT, STROKE)
THROWN, TOSSED = "up at full speed, then still", "the operator's toss, at the estimate"
RULES["pan_flip"] = ("do nothing", "push down", THROWN, TOSSED)
RULES["handover"] = ("do nothing", "push down", STRAIGHT)
PULLED = "the operator's way, at the estimate"
RULES["belt"] = ("do nothing", "push down", STRAIGHT, PULLED)


class Scripted(Policy):
    """Hand-written policy that reads the unscaled observation of the environment."""

    def __init__(self, env: RobotEnv, rule: str) -> None:
        torch.nn.Module.__init__(self)
        self.chunk = ChunkLayout(1, env.spec_task.action_size)
        self._env, self._rule = env, rule
        self.generator = torch.Generator()
        self._stroke = 0  # steps of the stroke that are left
        self._toss = self._leant = self._rest = 0  # the next step of the toss, how long the pan has leaned, is to rest
        self._down = {"left": 0, "right": 0}  # steps since an end of the belt was pressed down

    def begin(self, seed: int) -> None:
        """Begin an episode; nothing that a rule does is random."""
        del seed

    def act(self, state: Tensor, images: Tensor | None = None, *, deterministic: bool) -> Tensor:
        """Return the action of the rule; the packed observation is not used."""
        del state, images, deterministic
        action = np.zeros(self._env.spec_task.action_size, np.float32)
        axes = self._env.spec_task.action_axes
        if self._rule == "push down":
            action[axes.index("z")] = 1.0
        if self._rule == STROKE:
            action[:] = self._struck()
        elif self._rule == THROWN:
            action[axes.index("z")] = -float(self._env.observation["state/tcp_pose"][2] > -0.1)
        elif self._rule == TOSSED:
            action[:] = self._tossed()
        elif self._rule == STRAIGHT and BAR in self._env.observation:
            action[:] = self._handed()
        elif self._rule in (STRAIGHT, PULLED) and PULLEY.format("left") in self._env.observation:
            action[:] = self._belted()
        elif self._rule in (STRAIGHT, AROUND):
            motion, gripper = self._motion(), 0.0
            if PLUG in self._env.observation:
                motion, gripper = self._picked()
            spec = self._env.spec_task
            scale = {axis: spec.action_translation for axis in ("x", "y", "z")} | {"yaw": spec.action_rotation}
            action[: len(axes)] = [motion.get(axis, 0.0) / scale.get(axis, 1.0) for axis in axes]
            if spec.gripper:
                action[-1] = gripper
        return torch.from_numpy(np.clip(action, -1.0, 1.0))[None]

    def _motion(self) -> dict[str, float]:
        """Return the motion of the rule with what is held already."""
        if BLOCK in self._env.observation:
            return self._pushed()
        if CLIP not in self._env.observation:
            return self._inserted()
        return self._clipped() if self._rule == STRAIGHT else self._clipped_around()

    def _clipped(self) -> dict[str, float]:
        """Return the motion of a cable pulled taut over the estimated clip, then down."""
        way = self._to_clip(-CABLE_CLIP.seat, 0.015)
        there = np.hypot(way["x"], way["y"]) < 0.0015 and abs(way["yaw"]) < 0.03
        return way | {"z": 1.0} if there else way

    def _clipped_around(self) -> dict[str, float]:
        """Return the motion of a cable to beside the estimated clip, to the height of its mouth, and into it."""
        way = self._to_clip(0.012, 0.0)
        if way["z"] > 0.0015:
            return way if way["x"] < 0.006 else way | {"z": 0.0}
        return way | {"x": -1.0}

    def _to_clip(self, x: float, z: float) -> dict[str, float]:
        """Return the motion in the tcp frame to a place in the frame of the estimated clip, the cable pulled taut."""
        *here, turn = self._env.observation[CLIP]
        c, s = np.cos(turn), np.sin(turn)
        y = CABLE_REACH + 0.002
        # The tcp points down: its y and z are opposite to those of the clip.
        return {"x": here[0] + c * x + s * y, "y": here[1] + s * x - c * y, "z": here[2] - z, "yaw": turn}

    def _pushed(self) -> dict[str, float]:
        """Return the motion of the rod to before the estimated block, then straight through it; y is away from it."""
        x, _, z, turn = self._env.observation[BLOCK]
        there = abs(x) < 0.004 and abs(z) < 0.0015 and abs(turn) < 0.03
        return {"x": x, "z": z, "yaw": turn} | ({"y": -1.0} if there else {})

    def _struck(self) -> np.ndarray:
        """Return the action of one stroke after another at the estimated block, from where the operator strikes."""
        seen, twist = self._env.observation, self._env.observation["state/tcp_twist"]
        if not seen["state/tcp_pose"].any():  # at reset
            self._stroke = 0
        *place, turn = seen[BLOCK]
        T_base_tcp = START @ Pose.from_rotvec(seen["state/tcp_pose"][:3], seen["state/tcp_pose"][3:])
        upright = quat_multiply(yaw_pose(0.0, 0.0, 0.0, turn).quaternion, quat_conjugate(DOWNWARD))
        block = T_base_tcp @ Pose(np.array(place) + np.array([ROD.length, 0.0, 0.0]), upright)
        way = T_base_tcp.inverse() @ struck_from(block)
        still = np.abs(twist[:3]).max() < 0.03 and abs(twist[5]) < 0.1
        if not self._stroke and still and float(np.linalg.norm(way.position)) < WhipOperator.ready:
            self._stroke = WHIP.forward + WHIP.back
        if self._stroke:
            self._stroke -= 1
            sign = -1.0 if self._stroke >= WHIP.back else 1.0
            return np.array([0.0, sign, 0.0, sign], np.float32)
        spec = self._env.spec_task
        motion = np.append(way.position / spec.action_translation, way.rotvec[2] / spec.action_rotation)
        return (0.5 * motion).astype(np.float32)

    def _tossed(self) -> np.ndarray:
        """Return the action that leans the pan until the estimated egg is at the back, tosses and catches it."""
        seen = self._env.observation
        if not seen["state/tcp_pose"].any():  # at reset
            self._toss = self._leant = self._rest = 0
        here = PAN_START @ Pose.from_rotvec(seen["state/tcp_pose"][:3], seen["state/tcp_pose"][3:])
        x, y, z, *_, down = seen[EGG]  # the tcp's z points down
        if not self._toss and not self._rest:
            self._leant = self._leant + 1 if x < TOSS.back and abs(pitch_of(here) - TOSS.lean) < 0.02 else 0
            self._toss = int(self._leant > 5)
        if self._toss:
            motion = np.array(toss_motion(self._toss - 1, here, np.array([x, -y, -z])))
            self._toss = (self._toss + 1) % (TOSS.duration + 1)
            self._leant, self._rest = 0, 0 if self._toss else 10
        else:
            way = (here.inverse() @ PAN_START).position
            lean = TOSS.lean if down < 0.0 and not self._rest else 0.0
            self._rest = max(0, self._rest - 1)
            motion = np.array([0.4 * way[0], 0.4 * way[2], lean - pitch_of(here)])
        spec = self._env.spec_task
        return (motion / [spec.action_translation, spec.action_translation, spec.action_rotation]).astype(np.float32)

    def _inserted(self) -> dict[str, float]:
        """Return the motion in the tcp frame [m, rad]: over the estimated hole at first, then down."""
        x, y, z, turn = self._env.observation[ESTIMATE]
        there = np.hypot(x, y) < 0.0007 and abs(turn) < 0.012
        return {"x": x, "y": y, "z": 1.0 if there else z - 0.006, "yaw": turn}

    def _handed(self) -> np.ndarray:
        """Return the action of two arms: the left one to its end of the bar and up, the right one to the place."""
        x, y, z, turn = self._env.observation[BAR]
        end = np.array([x - GRASP * np.cos(turn), y - GRASP * np.sin(turn), z])
        gripped = float(self._env.observation["state/left/gripper_width"][0]) < 0.05
        close = gripped or float(np.linalg.norm(end)) < 0.008
        way = np.array([0.02, 0.0, -0.02]) if gripped else end
        there = self._env.observation[PLACE]
        right = -1.0 if float(np.linalg.norm(there)) < 0.02 else 1.0
        scale, turned = 0.02, 0.0 if gripped else turn / 0.06
        axes = [*(way / scale), turned, *(there / scale), 0.0, join_grippers([-1.0 if close else 1.0, right])]
        return np.array(axes, np.float32)

    def _belted(self) -> np.ndarray:
        """Return the action of two arms: each brings its end of the belt to beside its pulley and down, and lets go."""
        seen, ways, grippers = self._env.observation, [], []
        for arm in self._down:
            if not seen[f"state/{arm}/tcp_pose"].any():  # at reset
                self._down[arm] = 0
            x, y, z = seen[PULLEY.format(arm)]
            way = np.array([x - EndOperator.pull, y, z - EndOperator.press])
            down, over = self._down[arm], np.hypot(*way[:2]) < EndOperator.aligned or z < 0.8 * EndOperator.hover
            if self._rule == PULLED and down > 3:
                way[2] = z  # level with the groove
            elif self._rule == PULLED and not down:
                way[2] = EndOperator.descent if over else z - EndOperator.hover
            self._down[arm] += bool(down) or float(np.linalg.norm(way)) < 0.008
            ways += list(way / self._env.spec_task.arms[arm].action_translation)
            grippers.append(1.0 if self._down[arm] > (10 if self._rule == PULLED else 0) else -1.0)
        return np.array([*ways, join_grippers(grippers)], np.float32)

    def _picked(self) -> tuple[dict[str, float], float]:
        """Return the motion that grasps the plug, lifts it and inserts it where the estimates are, and the gripper."""
        width = float(self._env.observation["state/gripper_width"][0])
        if width > 0.016:
            x, y, z, turn = self._env.observation[PLUG]
            over = np.hypot(x, y) < 0.002 and abs(turn) < 0.03
            close = over and abs(z) < 0.004
            return {"x": x, "y": y, "z": z if over else z - 0.05, "yaw": turn}, -1.0 if close else 0.0
        x, y, z, turn = self._env.observation[ESTIMATE]
        turn = half_turn(turn)
        carried, lateral = z - 0.045, np.hypot(x, y)
        if carried < -0.003 and lateral > 0.02:
            return {"z": carried}, 0.0
        there = lateral < (0.0007 if carried > -0.006 else 0.0015) and abs(turn) < 0.012
        return {"x": x, "y": y, "z": 1.0 if there else carried, "yaw": turn}, 0.0


def cloned(env: RobotEnv, perception: Perception, config: TrainConfig) -> Policy:
    """Train behaviour cloning on the 20 demonstrations of a training run with this configuration."""
    learner, seed, history = LocalLearner(env.environment_spec, perception, config), config.seed, config.replay.history
    with tempfile.TemporaryDirectory() as folder, EpisodeStore.create(Path(folder) / "demos") as store:
        record_demonstrations(env, store, episodes=config.demonstrations, seed=seed)
        lengths = [row.length for row in store.summaries()]
        for episode in store.episodes():
            learner.add_demonstration(episode)
    demos, everything = learner.demos, np.arange(len(learner.demos))
    steps = {"n_step": 1, "discount": learner.algorithm.discount, "history": history}
    rows = demos.gather(everything, np.random.default_rng(0), **steps)
    images = demos.images_of(everything)
    policy = make_policy(env.environment_spec, perception.spec, config, torch.Generator().manual_seed(seed))
    info = clone(
        policy,
        torch.from_numpy(rows.observation),
        torch.from_numpy(rows.action),
        None if images is None else torch.from_numpy(images),
        episode=np.repeat(np.arange(len(lengths)), lengths),
        steps=3000,
        batch_size=config.replay.batch_size,
        learning_rate=config.sac.learning_rate,
        seed=seed,
    )
    print(f"  cloning stopped at step {info.best_step}, validation loss {info.validation_loss:.4f}")
    return policy


def main() -> None:
    """Print one JSON line per baseline."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", default="peg_insert")
    parser.add_argument("--obs", choices=("state", "pixels"), default="state")
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2], help="seeds of behaviour cloning")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    config = Deployment().with_cameras(load_config(None, [f"task={arguments.task}", f"observations={arguments.obs}"]))
    options = workcell_options(config)
    env = RobotEnv(make_workcell(config.task, options), options=options)
    perception = make_perception(env.observation_specs, config)

    def report(name: str, policy: Policy, episodes: int) -> float:
        rollout = Rollout(env, policy, perception, config.replay.history)
        summary = evaluate(rollout, episodes=episodes, seed=TrainConfig().evaluation.seed).summary()
        kept = ("episodes", "success_rate", "success_ci95", "cycle_time_s", "force_peak_p95_n", "failures")
        print(json.dumps({"baseline": name, **{key: summary[key] for key in kept}}), flush=True)
        return float(summary["success_rate"])

    if config.observations == "state":
        for rule in RULES.get(config.task, ()):
            report(rule, Scripted(env, rule), arguments.episodes)
    rates = [
        report(
            f"behaviour cloning, seed {seed}", cloned(env, perception, replace(config, seed=seed)), arguments.episodes
        )
        for seed in arguments.seeds
    ]
    if rates:
        print(json.dumps({"baseline": "behaviour cloning, mean", "success_rate": mean(rates)}))


if __name__ == "__main__":
    main()
