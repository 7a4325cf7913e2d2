"""Make the artefacts of this folder with the code of an older revision.

    git worktree add /tmp/old 7635f21 && make -C /tmp/old setup
    python tests/compatibility/make_artefacts.py /tmp/old

The files under `artefacts/` were made by revision 7635f21, the last one before the modules moved to the folders of
their roles. Do not make them anew with a later revision: they are there to show that what users have can still be
read. For a later format, add a folder beside them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent / "artefacts"
TASK = "move the tip of the tool to the green ball and keep it there"
COMMON = {
    "demonstrations": 1,
    "update_to_data": 1,
    "replay.batch_size": 8,
    "sac.hidden_sizes": "[8,8]",
    "sac.ensemble_size": 2,
    "evaluation.curve_interval": 0,
    "evaluation.video_episodes": 0,
}
HEADS = f"""
from pathlib import Path
import torch
from robot_rl.data.store import EpisodeStore
from robot_rl.reward.head_training import HeadSettings, train_for
from robot_rl.reward.progress_head import ProgressHead, ProgressNet
from robot_rl.reward.query import Kind
from robot_rl.reward.truth import read_truth
from robot_rl.config.labelling import FramesConfig
from scenes import stamped_store
torch.manual_seed(0)
net, basis = ProgressNet(4).eval(), torch.randn(1280, 4) / 100
torch.nn.init.normal_(net.last.weight)
ProgressHead("bundled", 64, "front", {TASK!r}, (), torch.zeros(1280), basis, net).write(Path("progress_head.pt"))
stamped_store(Path("labelled"), 4, steps=4)
with EpisodeStore.open(stamped_store(Path("many"), 36)) as store:
    settings = HeadSettings({TASK!r}, "bundled", 64, FramesConfig(count=2), share=0.5, seed=0)
    train_for(Kind.SUCCESS, store, read_truth(store), settings)[0].write(Path("success_head.pt"))
"""
"""Heads, and a store to label: by functions and test helpers of the old revision; its commands make large ones."""


VALUES = """
import json
from pathlib import Path
import torch
from robot_rl.reward.classifier_file import read_classifier_file
from robot_rl.reward.head_backend import read_head
features = torch.randn(6, 1280, generator=torch.Generator().manual_seed(0))
classifier = read_classifier_file(Path("classifier.pt")).classifier
logits = classifier.heads["front"].logits(features).mean(1)
print(json.dumps({
    "classifier": classifier.probability(logits.double().numpy()[:, None]).tolist(),
    "success_head": read_head(Path("success_head.pt")).logits(features).mean(1).tolist(),
    "progress_head": read_head(Path("progress_head.pt"))(features).tolist(),
}))
"""
"""Prints the output of classifier and heads for the same features."""


def main(old: Path) -> None:
    """Make all artefacts below `artefacts/` with the revision that is checked out, and set up, in `old`."""
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MUJOCO_GL": "egl", "PYTHONPATH": f"{old}:{old}/tests"}

    def call(program: str, *arguments: object) -> str:
        command = [str(old / ".venv" / "bin" / program), *map(str, arguments)]
        return subprocess.run(command, cwd=HERE, env=environment, check=True, text=True, stdout=subprocess.PIPE).stdout

    def train(out: str, steps: int, *flags: object, **settings: object) -> None:
        given = COMMON | {"warmup_steps": steps // 3, "checkpoint_interval": steps // 2}
        given |= {key.replace("__", "."): value for key, value in settings.items()}
        words = [word for key, value in given.items() for word in ("--set", f"{key}={value}")]
        call("robot-rl", "train", "reach", "--out", out, "--steps", steps, "--episodes", 2, *flags, *words)
        for name in ("learning_curve.png", "checkpoint.pt.previous"):
            (HERE / out / name).unlink(missing_ok=True)
        shutil.rmtree(HERE / out / "tensorboard", ignore_errors=True)

    few = ("--positives", 30, "--negatives", 45, "--size", 64)
    call("robot-rl", "reward", "record", "reach", "--out", "frames", *few, "--camera", "front")
    call("robot-rl", "reward", "train", "frames", "--out", "classifier.pt", *few, "--looks", 0)
    call("python", "-c", HEADS)
    head = ("--set", "backend=head", "--set", f"task={TASK}", "--set")
    call("robot-rl", "label", "run", "labelled", *head, "head=success_head.pt")
    call("robot-rl", "label", "run", "labelled", "--kind", "progress", *head, "head=progress_head.pt")
    call("robot-rl", "demo", "reach", "--out", "store", "--episodes", 2)
    train("run", 60)
    train("offline", 20, "--demos", "store", offline__steps=5)
    labels = {"reward__kind": "vlm", "reward__path": "labelled", "reward__allow_uncalibrated": "true"}
    small = {"encoder__image_size": 32, "encoder__cameras": "[front]"}
    train("labels", 12, reward__shaping__head="progress_head.pt", **labels, **small)
    results = {"values": json.loads(call("python", "-c", VALUES))}
    for run in ("run", "offline"):
        flags = ("--episodes", 3, "--json")
        results[run] = json.loads(call("robot-rl", "eval", run, *flags))["results"]
    (HERE / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for name in ("frames", "many"):
        shutil.rmtree(HERE / name)
    (HERE / "labels" / "progress_head.pt").unlink()  # the same file again; the test copies it back
    for path in HERE.rglob("*.lock"):
        path.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
