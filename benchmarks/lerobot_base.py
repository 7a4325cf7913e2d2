"""A policy of LeRobot made reliable: a real ACT, trained by LeRobot on demonstrations of ours, then corrected.

    python benchmarks/lerobot_base.py --lerobot-env ENV --out DIR [--task cube_lift] [--act-steps 3000] [--steps 4000]

ENV is the folder of an environment with `lerobot[dataset,training]` and msgpack. The script demonstrates, exports a
dataset, trains ACT with `lerobot-train`, evaluates it alone, trains a correction of it without anybody who intervenes,
and prints JSON. What is in DIR already is not made again. The commands are printed; docs/base_policies.md has them.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

EVALUATION_SEED = 100
ROBOT = {
    "peg_insert": ("tcp_pose", "tcp_twist", "wrench"),
    "cube_lift": ("gripper_width", "tcp_pose", "tcp_twist", "wrench"),
}
SCENE = {"peg_insert": "state/hole_estimate", "cube_lift": "state/cube_estimate"}
ACT = (
    *("--policy.type=act", "--policy.device=cpu", "--policy.push_to_hub=false", "--policy.use_vae=false"),
    *("--policy.chunk_size=8", "--policy.n_action_steps=8", "--policy.dim_model=128", "--policy.dim_feedforward=512"),
    *("--policy.n_heads=4", "--policy.n_encoder_layers=2", "--policy.optimizer_lr=3e-4"),
    *("--batch_size=64", "--num_workers=0", "--wandb.enable=false"),
)


def names(task: str) -> str:
    """Return the setting that names what ACT observes, as the exported dataset does."""
    robot = "+".join(f"state/{what}" for what in ROBOT[task])
    return f"base.names=[observation.state={robot}, observation.environment_state={SCENE[task]}]"


def call(*words: object, **environment: str) -> str:
    """Run a command, which is printed; return what it writes to standard output."""
    text = [str(word) for word in words]
    print("$", shlex.join(text), file=sys.stderr, flush=True)
    return subprocess.run(
        text, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1", **environment}
    ).stdout


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Do it all; return the success of the base, the curve of the correction and its end."""
    out, python = arguments.out, arguments.lerobot_env / "bin" / "python"
    robot_rl = (sys.executable, "-m", "robot_rl")
    demos, dataset, act, corrected = (out / name for name in ("demos", "dataset", "act", "corrected"))
    seed = ("--seed", arguments.seed)
    if not demos.exists():
        call(*robot_rl, "demo", arguments.task, "--episodes", 20, *seed, "--out", demos)
    if not dataset.exists():
        call(*robot_rl, "data", "export", demos, "--scene", SCENE[arguments.task], "--out", dataset)
    policy = act / "checkpoints" / "last" / "pretrained_model"
    if not policy.exists():
        steps = (f"--steps={arguments.act_steps}", f"--save_freq={arguments.act_steps}")
        source = ("--dataset.repo_id=local/peg", f"--dataset.root={dataset.resolve()}", f"--output_dir={act}")
        call(arguments.lerobot_env / "bin" / "lerobot-train", *source, *ACT, *steps, HF_HUB_OFFLINE="1")
    base = ("--base", f"lerobot:{policy}", "--set", f"base.python={python}", "--set", names(arguments.task))
    held_out = ("--episodes", arguments.episodes)
    alone = json.loads(
        call(*robot_rl, "base", "eval", arguments.task, *base, *held_out, "--seed", EVALUATION_SEED, "--json")
    )
    if not (corrected / "summary.json").exists():
        evaluation = {"seed": EVALUATION_SEED, "curve_interval": 500, "curve_episodes": 40, "video_episodes": 0}
        settings = [("--set", f"evaluation.{key}={value}") for key, value in evaluation.items()]
        train = (
            *robot_rl,
            "train",
            arguments.task,
            *seed,
            "--demos",
            demos,
            *base,
            "--set",
            "base.replan=8",
            *held_out,
        )
        flags = ("--steps", arguments.steps, "--set", "intervention.enabled=false", "--out", corrected)
        call(*train, *(word for setting in settings for word in setting), *flags)
    summary = json.loads((corrected / "summary.json").read_text())
    keys = ("episodes", "success_rate", "success_ci95", "cycle_time_s", "force_peak_p95_n")
    rows = [json.loads(line) for line in (corrected / "metrics.jsonl").read_text().splitlines()]
    curve = {row["env_step"]: row["success_rate"] for row in rows if row["kind"] == "curve"}
    return {"base": {key: alone[key] for key in keys}, "curve": curve, "end": {key: summary[key] for key in keys}}


def main() -> None:
    """Parse the flags and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lerobot-env", type=Path, required=True, metavar="ENV")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--task", choices=tuple(SCENE), default="cube_lift", help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=102, help="of demonstrations and training (default: %(default)s)")
    parser.add_argument("--act-steps", type=int, default=3_000, help="of lerobot-train (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=4_000, help="of the correction (default: %(default)s)")
    parser.add_argument("--episodes", type=int, default=100, help="of each evaluation (default: %(default)s)")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    print(json.dumps(run(arguments), indent=2))


if __name__ == "__main__":
    main()
