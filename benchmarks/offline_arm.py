"""Offline learning from preferences that are partly wrong: the cost of the labeller's errors.

    python benchmarks/offline_arm.py run --seeds 0 1 2 --out runs/offline_arm
    python benchmarks/offline_arm.py report --out runs/offline_arm --plot docs/images/offline_arm.png

200 mixed episodes of `peg_insert` without rewards -> preferences between moments, queried over HTTP with the client of
users, from an oracle that uses the true distance to the goal and is wrong for a given share of the pairs (in both
orders alike, so that a second query does not help) -> Bradley-Terry ensemble -> IQL. For comparison: IQL on the true
reward, behaviour cloning of all episodes, and of the successful ones. Nine policies are learned from the same data for
each figure, because they differ more than the methods do; all are evaluated on the same held-out resets.

A method that learns from labels has no success of episodes: for it, the last moment of an episode lasts for ever, with
its reward.

Seeds 0 to 2 are for testing only; settings were chosen on seeds from 100 on. `run` skips results that exist already.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from mixed_episodes import TASK, record
from preference_oracle import labelled

from robot_rl.config.components import IQLConfig, ReplayConfig, SACConfig, TrainConfig
from robot_rl.data.replay.buffer import ReplayBuffer
from robot_rl.data.schema import IMAGE_PREFIX, Episode
from robot_rl.data.store.reward_overlays import Overlay
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.learn.actor import Rollout
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.algorithms.bc import clone
from robot_rl.learn.algorithms.iql import IQLTrainer
from robot_rl.learn.algorithms.sac import SAC
from robot_rl.learn.networks.networks import Policy, make_policy
from robot_rl.learn.perception import Perception, make_perception
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.preference.pairs import combine_orders
from robot_rl.reward.preference.rewards import features, learn_reward, rewards_of_ends
from robot_rl.reward.validation.figures import rank_correlation
from robot_rl.run.evaluation import evaluate
from robot_rl.statistics import bootstrap_interval
from robot_rl.system.atomic_file import write_atomically

Learned = tuple[Policy, dict[str, Any]]
"""A policy, and figures of how it was learned."""

ERRORS = (0.0, 0.1, 0.2, 0.3)
DISCOUNT, N_STEP, HISTORY, BATCH = 0.98, 5, (0, 1), 256
SETTINGS = ("episodes", "pairs", "steps", "expectile", "inverse_temperature", "evaluation")
"""Arguments that all policies of a figure have to share."""


class Data:
    """The episodes in the form of the learners."""

    def __init__(self, path: Path, perception: Perception, config: TrainConfig) -> None:
        self.perception, self.config, self.path = perception, config, path
        with EpisodeStore.open(path) as store:
            self.episodes = list(store.episodes())
        self.percepts = {e.episode_id: list(perception.of_rows(_seen(e))) for e in self.episodes}

    def replay(self, episodes: list[Episode]) -> ReplayBuffer:
        """Make a replay memory of these episodes."""
        rows = sum(len(episode) + 1 for episode in episodes)
        memory = ReplayBuffer(rows, self.perception.spec.state_size, episodes[0].action.shape[1])
        for episode in episodes:
            memory.add_episode(episode, self.percepts[episode.episode_id])
        return memory

    def policy(self, seed: int) -> Policy:
        """Make a new policy."""
        task = make_workcell(TASK).task.spec
        return make_policy(task, self.perception.spec, self.config, torch.Generator().manual_seed(seed))


def _seen(episode: Episode) -> dict[str, np.ndarray]:
    """Return the observations of the policy: without the stamps."""
    return {key: column for key, column in episode.observations.items() if not key.startswith(IMAGE_PREFIX)}


def learned_rewards(data: Data, error: float, seed: int) -> tuple[list[Episode], dict[str, Any]]:
    """Return the episodes with rewards by an ensemble; `rewards_of_ends` sets the end of all of them."""
    with LabelStore(data.path) as labels:
        known = combine_orders(labels.labels(f"preference-{round(100 * error)}"))
    look = features("state")
    moments = {e.episode_id: look(e) for e in data.episodes}
    ensemble, info = learn_reward(moments, known, seed)
    rewards = rewards_of_ends(ensemble, moments)
    episodes = [
        Overlay("preferences", e.episode_id, rewards[e.episode_id], {}, terminated=True).over(e) for e in data.episodes
    ]
    truth = np.load(data.path / "truth.npy")
    firsts = [int(e.metadata["first_stamp"]) for e in data.episodes]
    near = np.concatenate([-truth[f + 1 : f + 1 + len(e)] for f, e in zip(firsts, data.episodes, strict=True)])
    predicted = np.concatenate([ensemble(moments[e.episode_id][1:]).numpy() for e in data.episodes])
    facts = {
        "pairs": len(known.pairs),
        "flip_rate": known.flip_rate,
        "held_out_accuracy": info.accuracy,
        "spearman_to_truth": rank_correlation(predicted, near),
    }
    return episodes, facts


def train_iql(data: Data, episodes: list[Episode], seed: int, steps: int, config: IQLConfig) -> Policy:
    """Train IQL on these episodes."""
    memory, policy, rng = data.replay(episodes), data.policy(seed), np.random.default_rng(seed)
    sac = SAC(policy, return_range=(0.0, 1.0), config=data.config.sac)
    iql = IQLTrainer(sac, config)
    for _ in range(steps):
        sample = memory.sample(BATCH, rng, n_step=N_STEP, discount=DISCOUNT, history=HISTORY)
        iql.update(Batch._make(None if c is None else torch.from_numpy(c)[None] for c in sample))
    iql.conclude()
    return policy


def train_cloning(data: Data, episodes: list[Episode], seed: int, steps: int) -> Policy:
    """Train behaviour cloning on these episodes."""
    memory, policy = data.replay(episodes), data.policy(seed)
    rows = memory.gather(np.arange(len(memory)), np.random.default_rng(0), n_step=1, discount=DISCOUNT, history=HISTORY)
    clone(
        policy,
        torch.from_numpy(rows.observation),
        torch.from_numpy(rows.action),
        episode=np.repeat(np.arange(len(episodes)), [len(e) for e in episodes]),
        steps=steps,
        batch_size=BATCH,
        learning_rate=data.config.sac.learning_rate,
        seed=seed,
    )
    return policy


def arms(data: Data, steps: int, config: IQLConfig) -> dict[str, Callable[[int], Learned]]:
    """Return the methods to compare, by name; each learns from a seed."""
    successes = [e for e in data.episodes if e.metadata["success"]]

    def by_labels(seed: int, error: float) -> Learned:
        episodes, facts = learned_rewards(data, error, seed)
        return train_iql(data, episodes, seed, steps, config), facts

    return {
        "BC": lambda seed: (train_cloning(data, data.episodes, seed, steps), {}),
        "filtered BC": lambda seed: (train_cloning(data, successes, seed, steps), {"episodes": len(successes)}),
        "IQL, true reward": lambda seed: (train_iql(data, data.episodes, seed, steps, config), {}),
        **{f"IQL, {error:.0%} errors": partial(by_labels, error=error) for error in ERRORS},
    }


def run(arguments: argparse.Namespace) -> None:
    """Record, label, learn and evaluate what is missing."""
    torch.set_num_threads(1)
    settings = IQLConfig(expectile=arguments.expectile, inverse_temperature=arguments.inverse_temperature)
    config = TrainConfig(replay=ReplayConfig(history=HISTORY), sac=SACConfig(target_rate=0.02))
    env = RobotEnv(make_workcell(TASK))
    perception = make_perception(env.observation_specs, config)
    chosen = {key: getattr(arguments, key) for key in SETTINGS}
    for seed in arguments.seeds:
        folder = arguments.out / f"seed{seed}"
        store = folder / "episodes"
        if not (store / "truth.npy").exists():
            record(store, arguments.episodes, seed)
        for error in ERRORS:
            file = folder / f"labels-{round(100 * error)}.json"
            if not file.exists():
                file.write_text(json.dumps(labelled(store, error, arguments.pairs, seed)))
        data = Data(store, perception, replace(config, seed=seed))
        for name, learn in arms(data, arguments.steps, settings).items():
            if arguments.arms and name not in arguments.arms:
                continue
            file = folder / f"{name}.json"
            before = json.loads(file.read_text()) if file.exists() else {"settings": chosen, "of_each_policy": []}
            if (made_with := before.get("settings")) != chosen:
                raise SystemExit(f"{file}: was made with {made_with}, not {chosen}; choose another --out")
            successes = before["of_each_policy"]
            for number in range(len(successes), arguments.policies):
                policy, facts = learn(1000 * seed + number)
                rollout = Rollout(env, policy, perception, HISTORY)
                found = evaluate(rollout, episodes=arguments.evaluation, seed=1_000_000).summary()
                successes.append(found["success_rate"])
                facts |= {"success": float(np.mean(successes)), "of_each_policy": successes, "settings": chosen}
                write_atomically(file, json.dumps(facts))
                print(f"seed {seed}, {name}: {json.dumps(facts)}", flush=True)


# ------------------------------------------------------------------- the report


def report(arguments: argparse.Namespace) -> None:
    """Print a table of all arms over seeds, and draw the curve over the oracle's errors."""
    names = ["BC", "filtered BC", "IQL, true reward", *(f"IQL, {error:.0%} errors" for error in ERRORS)]
    found = {name: [json.loads(f.read_text()) for f in sorted(arguments.out.glob(f"seed*/{name}.json"))]
             for name in names}  # fmt: skip
    policies = {name: [len(row["of_each_policy"]) for row in rows] for name, rows in found.items()}
    most = max(policies.values())
    if missing := [name for name, counts in policies.items() if not counts or counts != most]:
        raise SystemExit(f"{arguments.out}: not all policies of {', '.join(missing)} yet; `run` goes on where it was")
    means: dict[str, tuple[float, float, float]] = {}
    print("| arm | success | 95 % interval over seeds | behind the true reward, same data and first parameters "
          "| 95 % interval over policies | rank correlation of the reward with the truth |")  # fmt: skip
    print("|---|---|---|---|---|---|")
    for name, rows in found.items():
        values = [row["success"] for row in rows]
        low, high = bootstrap_interval([values], lambda v: float(np.mean(v)))
        means[name] = float(np.mean(values)), low, high
        ranks = [row["spearman_to_truth"] for row in rows if "spearman_to_truth" in row]
        rank = f"{np.mean(ranks):.3f}" if ranks else "-"
        behind = [
            [true - here for true, here in zip(best["of_each_policy"], row["of_each_policy"], strict=True)]
            for best, row in zip(found["IQL, true reward"], rows, strict=True)
        ]
        less, more = bootstrap_interval(behind, lambda v: float(np.mean(v)))
        print(f"| {name} | {means[name][0]:.3f} | {low:.3f} to {high:.3f} "
              f"| {np.mean(behind):.3f} | {less:.3f} to {more:.3f} | {rank} |")  # fmt: skip
    if arguments.plot is None:
        return
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    curve = np.array([means[f"IQL, {error:.0%} errors"] for error in ERRORS])
    share = 100 * np.array(ERRORS)
    axes.plot(share, curve[:, 0], "o-", color="C0", label="IQL, reward from preferences")
    axes.fill_between(share, curve[:, 1], curve[:, 2], color="C0", alpha=0.2, linewidth=0)
    for colour, name in (("C2", "IQL, true reward"), ("C1", "filtered BC"), ("C3", "BC")):
        axes.axhline(means[name][0], color=colour, linestyle="--", label=name)
    axes.set(xlabel="pairs that the labeller gets wrong [%]", ylabel="true success", ylim=(0, 1.02), xticks=share)
    axes.legend(loc="lower left", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(arguments.plot, dpi=150)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    do = commands.add_parser("run")
    do.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    do.add_argument("--out", type=Path, required=True)
    do.add_argument("--episodes", type=int, default=200)
    do.add_argument("--pairs", type=int, default=1000)
    do.add_argument("--steps", type=int, default=3_000)
    do.add_argument("--policies", type=int, default=9)
    do.add_argument("--expectile", type=float, default=0.7)
    do.add_argument("--inverse-temperature", type=float, default=3.0)
    do.add_argument("--evaluation", type=int, default=100)
    do.add_argument("--arms", nargs="*", default=[])
    do.set_defaults(command=run)
    show = commands.add_parser("report")
    show.add_argument("--out", type=Path, required=True)
    show.add_argument("--plot", type=Path)
    show.set_defaults(command=report)
    arguments = parser.parse_args()
    arguments.command(arguments)


if __name__ == "__main__":
    main()
