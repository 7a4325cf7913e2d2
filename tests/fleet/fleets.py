"""What tests of fleets share: which processes a fleet has, and whether its rows have arrived once and in order."""

from pathlib import Path

import numpy as np

from robot_rl.data.store.store import EpisodeStore
from robot_rl.learn.checkpoint import load_checkpoint


def processes(supervisor: int) -> dict[str, int]:
    """Running processes of a fleet on this machine: `learner`, and robots by their names."""
    found = {}
    for task in Path(f"/proc/{supervisor}/task").iterdir():
        for pid in (task / "children").read_text().split():
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            if "learner" in words[: words.index("--plan")] if "--plan" in words else False:
                found["learner"] = int(pid)
            elif "robot" in words:
                found[words[words.index("robot") + 1]] = int(pid)
    return found


def recorded(run: Path, *, demonstrations: bool = False) -> np.ndarray:
    """Actions in a robot's store, in their order; shape (steps, n)."""
    with EpisodeStore.open(run / "episodes") as store:
        rows = [e.action for e in store.episodes() if bool(e.metadata.get("demonstration")) == demonstrations]
    return np.concatenate(rows)


def remembered(learner: Path, robot: str) -> np.ndarray:
    """Actions in the learner's memory of a robot's online steps, in their order."""
    ring = load_checkpoint(learner / "checkpoint.pt")["learner"]["online"]["robots"][robot]
    return _steps(ring)


def demonstrated(learner: Path, robot: str) -> np.ndarray:
    """Actions in the learner's memory of a robot's demonstrations, in their order."""
    memory = load_checkpoint(learner / "checkpoint.pt")["learner"]["demos"]
    names = [str(name) for name in memory["episode_names"] for _ in range(1)]
    wanted = np.repeat([name.startswith(f"{robot}/") for name in names], memory["episode_rows"])
    return _steps(memory, wanted)


def _steps(memory: dict, wanted: np.ndarray | None = None) -> np.ndarray:
    lengths = np.asarray(memory["episode_rows"])
    is_step = np.ones(lengths.sum(), bool)
    is_step[np.cumsum(lengths) - 1] = False
    return np.asarray(memory["action"])[is_step if wanted is None else is_step & wanted]


def complaints(path: Path, robots: list[str]) -> list[str]:
    """What is wrong with the rows of a fleet that has ended: lost, doubled or in another order."""
    found = []
    for name in robots:
        for kind, kept, there in (
            ("online", remembered(path / "learner", name), recorded(path / "robots" / name)),
            (
                "demonstrated",
                demonstrated(path / "learner", name),
                recorded(path / "robots" / name, demonstrations=True),
            ),
        ):
            if kept.shape != there.shape or not np.array_equal(kept, there.astype(np.float32)):
                found.append(f"{name}: {len(kept)} {kind} steps at the learner, {len(there)} in its store, or others")
    return found
