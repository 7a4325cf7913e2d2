"""What the policy of a run was made of: a checkpoint, the episodes that it learned from, and the run before it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from robot_rl.data.store.layout import STORE_HEAD, find_store
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import CheckpointError, RunDirectoryError
from robot_rl.learn.checkpoint import read_checkpoint
from robot_rl.learn.networks.networks import policy_digest
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.run.lineage.chain import ChainLink
from robot_rl.run.lineage.source_run import checkpoint_at
from robot_rl.run.lineage.store_chain import StoreChain
from robot_rl.system.checked_json import read_object
from robot_rl.system.model_files import TRAINING
from robot_rl.system.printable import some
from robot_rl.system.regular_file import read_regular

PINNED = ("classifier", "progress_head", "stage_")
"""How the facts of a run begin about files that it pinned; a copy has the name of its fact."""


def trace(path: Path, episode_id: str | None = None, *, on_episode: Callable[[], object] = lambda: None) -> ChainLink:
    """Return a run, a store or an episode with all that it goes back to.

    Args:
        path: Directory of a run or a store.
        episode_id: Only this episode; None: all.
        on_episode: Called after each episode that is read.

    Raises:
        DataError: if there is neither a run nor a store, or its store cannot be read.
        RunDirectoryError: if the run cannot be read.
    """
    stores = StoreChain(on_episode)
    if episode_id is not None:
        return stores.episode(find_store(path), episode_id)
    if RunDirectory.holds_run(path):
        return _Runs(stores).run(path)
    store = find_store(path)
    link = stores.store(store)
    with EpisodeStore.open(store) as opened:
        played = opened.metadata
    if isinstance(run := played.get("evaluation_of"), str):
        link.facts["played_by"] = played.get("policy")
        _Runs(stores).of_evaluation(link, Path(run), played.get("policy"))
    return link


class _Runs:
    """Follows runs to those that they began from."""

    def __init__(self, stores: StoreChain) -> None:
        self._stores = stores
        self._shown: set[Path] = set()

    def run(self, path: Path) -> ChainLink:
        """Return a run with all that it goes back to.

        Raises:
            RunDirectoryError: if it cannot be read.
        """
        path = path.resolve()
        facts = RunDirectory.read_facts(path)
        link = ChainLink("run", str(path))
        if path in self._shown:
            link.facts["above"] = True
            return link
        self._shown.add(path)
        start = facts["starts"][0] if facts["starts"] else {}
        link.facts |= {"task": facts["task"], "seed": facts["seed"], "begun": start.get("started")}
        link.facts["git_revision"] = (start.get("git") or {}).get("revision")
        store = path / "episodes"
        try:
            state, digest = read_checkpoint(path / "checkpoint.pt", kind=TRAINING.name)
        except CheckpointError as error:
            known = link.breaks if (path / "checkpoint.pt").exists() else link.unchecked
            known.append(str(error))
            link.sources += [self._stores.store(store)] if (store / STORE_HEAD).is_file() else []
        else:
            policy = ChainLink("policy", policy_digest(state["deployed"]["policy"]))
            _compare_summary(policy, path, state)
            policy.sources.append(self._checkpoint(path, state, digest))
            link.sources.append(policy)
        pinned = [(n, fact) for n, fact in facts.items() if n.startswith(PINNED) and isinstance(fact, dict)]
        link.sources += [_pinned(path / f"{name}.pt", fact) for name, fact in pinned]
        if isinstance(origin := facts.get("origin"), dict):
            link.sources += self._origin(link, origin)
        return link

    def of_evaluation(self, link: ChainLink, run: Path, policy: Any) -> None:
        """Add the run whose policy played the episodes of a store."""
        if not RunDirectory.holds_run(run):
            link.unchecked.append(f"{run}: the run whose policy played is not here any more")
            return
        played_by = self.run(run)
        link.sources.append(played_by)
        now = next((one.name for one in played_by.sources if one.kind == "policy"), None)
        if policy is None:
            link.unchecked.append("which policy of that run played was not recorded by older versions")
        elif policy != now:
            link.breaks.append(f"{run}: its policy is not the one that played; it may have been trained on since")

    def _checkpoint(self, path: Path, state: Mapping[str, Any], digest: str) -> ChainLink:
        """Return the checkpoint of a run with the episodes that it learned from."""
        link = ChainLink("checkpoint", digest, {"env_steps": int(state["env_steps"]), "episodes": int(state["stored"])})
        store = path / "episodes"
        if not (store / STORE_HEAD).is_file():
            link.breaks.append(f"{store}: the episodes that it learned from are gone")
            return link
        link.sources.append(self._stores.store(store))
        recorded = state.get("recorded")
        if not isinstance(recorded, dict):
            link.unchecked.append("older versions did not record which episodes a checkpoint learned from")
            return link
        there = self._stores.fingerprints(store)
        if gone := [name for name in recorded if name not in there]:
            link.breaks.append(f"{some(gone)}, which it learned from, {'is' if len(gone) == 1 else 'are'} gone")
        if other := [name for name, mark in recorded.items() if name in there and there[name] != mark]:
            link.breaks.append(f"{some(other)} {'is' if len(other) == 1 else 'are'} not what it learned from")
        if since := len(there.keys() - recorded.keys()):
            link.facts["episodes_since"] = since
        return link

    def _origin(self, link: ChainLink, origin: Mapping[str, Any]) -> list[ChainLink]:
        """Return the run that another one began from, and check that it still has that checkpoint."""
        run, env_steps = Path(str(origin.get("run"))), origin.get("env_steps")
        link.facts["began"] = {
            key: origin[key] for key in ("how", "parts", "changed", "run", "env_steps") if key in origin
        }
        if not RunDirectory.holds_run(run):
            link.unchecked.append(f"{run}: the run that it began from is not here any more")
            return []
        try:
            starts = RunDirectory.read_facts(run)["starts"]
            if origin.get("started") != (starts[0]["started"] if starts else None):
                link.breaks.append(f"{run}: is another run than the one that it began from")
                return []
            if (expected := origin.get("checkpoint")) is None:
                link.unchecked.append("older versions did not record the checkpoint that a run began from")
            elif read_checkpoint(checkpoint_at(run, int(env_steps or 0)))[1] != expected:
                link.breaks.append(
                    f"{run}: its checkpoint after {env_steps} env steps is not the one that it began from"
                )
        except CheckpointError as error:
            link.unchecked.append(f"the checkpoint that it began from is not kept: {error}")
        except RunDirectoryError as error:
            link.breaks.append(str(error))
            return []
        return [self.run(run)]


def _compare_summary(policy: ChainLink, path: Path, state: Mapping[str, Any]) -> None:
    """Add the result of the final evaluation, if it is of this policy."""
    file = path / "summary.json"
    if not file.exists():
        policy.unchecked.append("it was not evaluated yet: there is no summary.json")
        return
    try:
        summary = read_object(file)
    except (OSError, ValueError) as error:
        policy.breaks.append(f"{file}: cannot be read: {error}")
        return
    if summary.get("policy") is None:
        policy.unchecked.append("older versions did not record which policy summary.json is about")
    elif summary["policy"] == policy.name:
        policy.facts |= {"success_rate": summary.get("success_rate"), "of": summary.get("episodes")}
    elif summary.get("env_steps") != state["env_steps"]:
        steps = f"{summary.get('env_steps')} env steps, the checkpoint {state['env_steps']}"
        policy.unchecked.append(f"summary.json is about another policy, of {steps}")
    else:
        policy.breaks.append(f"{file}: is about another policy ({str(summary['policy'])[:16]}...)")


def _pinned(copy: Path, fact: Mapping[str, Any]) -> ChainLink:
    """Return a file that a run pinned."""
    link = ChainLink("file", copy.name, {"taken_from": fact.get("path"), "sha256": fact.get("sha256")})
    try:
        found = hashlib.sha256(read_regular(copy)).hexdigest()
    except OSError as error:
        link.breaks.append(f"{copy}: cannot be read: {error.strerror}")
    else:
        if found != fact.get("sha256"):
            link.breaks.append(f"{copy}: was changed since the run began")
    return link
