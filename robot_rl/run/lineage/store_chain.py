"""Where the episodes of a store come from: other stores, other formats, or this one; and who else gave rewards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from robot_rl.data.episode_facts import CopiedFrom
from robot_rl.data.signature.store_signature import signature_files
from robot_rl.data.store.layout import STORE_HEAD
from robot_rl.data.store.reward_overlays import overlay_fingerprints, overlay_names, read_overlay
from robot_rl.data.store.store import EpisodeStore
from robot_rl.data.store.summary import EpisodeSummary
from robot_rl.errors import DataError, RobotRLError
from robot_rl.run.lineage.chain import ChainLink
from robot_rl.system.printable import some

Made = Mapping[str, Any]


class StoreChain:
    """Follows episodes from store to store; each store is shown once and its episodes are read once.

    Args:
        on_episode: Called after each episode that is read.
    """

    def __init__(self, on_episode: Callable[[], object] = lambda: None) -> None:
        self._on_episode = on_episode
        self._fingerprints: dict[Path, dict[str, str]] = {}
        self._shown: set[Path] = set()

    def fingerprints(self, path: Path) -> dict[str, str]:
        """Return the fingerprint of each episode of a store by its id.

        Raises:
            DataError: if there is no store, or it cannot be read.
        """
        path = path.resolve()
        if path not in self._fingerprints:
            with EpisodeStore.open(path) as store:
                found = {}
                for name in store.ids():
                    found[name] = store.fingerprint(name)
                    self._on_episode()
            self._fingerprints[path] = found
        return self._fingerprints[path]

    def store(self, path: Path) -> ChainLink:
        """Return a store with all that its episodes come from.

        Raises:
            DataError: if there is no store, or it cannot be read.
        """
        path = path.resolve()
        link = ChainLink("store", str(path))
        if path in self._shown:
            link.facts["above"] = True
            return link
        self._shown.add(path)
        with EpisodeStore.open(path) as store:
            rows, made = store.summaries(), store.metadata
        link.facts |= {"episodes": len(rows), "task": made.get("task")}
        if signatures := len(signature_files(path)):
            link.facts["signatures"] = signatures
        if "imported_from" in made:
            link.facts["imported_from"] = made["imported_from"]
        copies = [(row, origin) for row in rows if (origin := row.facts.copied_from) is not None]
        plain = [row for row in rows if row.facts.copied_from is None]
        whole = self._copied_whole(link, path, plain, made)
        link.sources += [*whole, *self._changed_copies(link, copies, {Path(one.name) for one in whole})]
        link.facts["recorded_here"] = len(plain) - link.facts.pop("copied_whole", 0)
        link.sources += self._overlays(path)
        return link

    def episode(self, path: Path, episode_id: str) -> ChainLink:
        """Return one episode with all that it comes from.

        Raises:
            DataError: if there is no such episode, or it cannot be read.
        """
        path = path.resolve()
        with EpisodeStore.open(path) as store:
            episode, mark, made = store.read(episode_id), store.fingerprint(episode_id), store.metadata
            position = store.ids().index(episode_id)
        facts = {"store": str(path), "fingerprint": mark, "steps": len(episode), "rewards": episode.reward_source}
        link = ChainLink("episode", episode_id, facts)
        if "imported_from" in made:
            link.facts["imported_from"] = made["imported_from"]
        for name in overlay_names(path):
            if mark in overlay_fingerprints(path, name):
                link.sources.append(self._overlay(path, name, [mark]))
        if (origin := episode.facts.copied_from) is not None:
            if (source := self._source(link, origin["store"])) is not None:
                self._compare(link, source, [(episode_id, origin)])
                if origin["episode_id"] in self.fingerprints(source):
                    link.sources.append(self.episode(source, origin["episode_id"]))
            return link
        origin_stores = _made_of(made)
        if origin_stores and position < _copied(origin_stores, position + 1):
            sources = [self._source(link, str(one.get("path"))) for one in origin_stores]
            here = [source for source in sources if source is not None]
            same = [source for source in here if self.fingerprints(source).get(episode_id) == mark]
            if same:
                link.sources.append(self.episode(same[0], episode_id))
            elif len(here) == len(origin_stores):
                link.breaks.append("it is not as in the stores that this one was made of")
        return link

    # ----------------------------------------------------------------- copies

    def _copied_whole(self, link: ChainLink, path: Path, rows: Sequence[EpisodeSummary], made: Made) -> list[ChainLink]:
        """Return the stores whose files this one was made of, and compare them; how many goes into the facts."""
        origins = _made_of(made)
        if not origins:
            return []
        known = all(isinstance(one.get("episodes"), int) for one in origins)
        candidates = [row.episode_id for row in rows if row.position < _copied(origins, row.position + 1)]
        found: set[str] = set()
        there: list[Path] = []
        for one in origins:
            if (source := self._source(link, str(one.get("path")))) is not None:
                there.append(source)
                found |= set(self.fingerprints(source).values())
        mine = self.fingerprints(path)
        foreign = [name for name in candidates if mine[name] not in found]
        link.facts["copied_whole"] = len(candidates) if known else len(candidates) - len(foreign)
        if foreign and len(there) == len(origins):
            told = f"{some(foreign)}: not as in the stores that this one was made of"
            if known:
                link.breaks.append(told)
            else:
                link.unchecked.append(f"{told}; they may have been recorded later")
        return [self.store(source) for source in there]

    def _changed_copies(
        self, link: ChainLink, copies: Sequence[tuple[EpisodeSummary, CopiedFrom]], shown: set[Path]
    ) -> list[ChainLink]:
        """Return the stores that episodes were copied from with changes, and compare them."""
        by_store: dict[str, list[tuple[str, CopiedFrom]]] = {}
        for row, origin in copies:
            by_store.setdefault(origin["store"], []).append((row.episode_id, origin))
        links = []
        for name, episodes in by_store.items():
            rewards = sorted({origin["rewards"] for _, origin in episodes if origin["rewards"] is not None})
            link.facts.setdefault("copied", []).append({"store": name, "episodes": len(episodes), "rewards": rewards})
            if (source := self._source(link, name)) is not None:
                self._compare(link, source, episodes)
                links += [] if source in shown else [self.store(source)]
        return links

    def _compare(self, link: ChainLink, source: Path, episodes: Sequence[tuple[str, CopiedFrom]]) -> None:
        """Compare copies with the episodes that they were made of."""
        there = self.fingerprints(source)
        gone = [origin["episode_id"] for _, origin in episodes if origin["episode_id"] not in there]
        other = [
            origin["episode_id"]
            for _, origin in episodes
            if origin["episode_id"] in there and there[origin["episode_id"]] != origin["fingerprint"]
        ]
        if gone:
            link.breaks.append(f"{source}: {some(gone)}, copied from there, {_are(gone)} gone")
        if other:
            link.breaks.append(f"{source}: {some(other)} {_are(other)} not what was copied from there")
        for name in sorted({origin["rewards"] for _, origin in episodes if origin["rewards"] is not None}):
            having = overlay_fingerprints(source, name)
            without = [o["episode_id"] for _, o in episodes if o["rewards"] == name and o["fingerprint"] not in having]
            if without:
                link.breaks.append(f"{source}: the rewards {name!r} of {some(without)} are gone")

    def _source(self, link: ChainLink, name: str) -> Path | None:
        """Return the path of a store that episodes come from; None if it is not here or cannot be read."""
        path = Path(name)
        if not (path / STORE_HEAD).is_file():
            link.unchecked.append(f"{name}: is not here any more, so what was copied from it cannot be compared")
            return None
        try:
            self.fingerprints(path)
        except DataError as error:
            link.breaks.append(f"{name}: cannot be read: {error}")
            return None
        return path.resolve()

    # ---------------------------------------------------------------- rewards

    def _overlays(self, path: Path) -> list[ChainLink]:
        names = overlay_names(path)
        return [self._overlay(path, name, sorted(overlay_fingerprints(path, name))) for name in names]

    def _overlay(self, path: Path, name: str, marks: Sequence[str]) -> ChainLink:
        here = set(self.fingerprints(path).values())
        link = ChainLink("overlay", name, {"episodes": sum(mark in here for mark in marks)})
        if others := sum(mark not in here for mark in marks):
            link.facts["of_other_recordings"] = others
        for mark in marks:
            try:
                link.facts.setdefault("provenance", dict(read_overlay(path, name, mark).provenance))
            except RobotRLError as error:
                link.breaks.append(str(error))
        return link


def _made_of(made: Made) -> list[dict[str, Any]]:
    """Return the stores that a store was made of by merging or splitting."""
    split = made.get("split_from")  # first: a part inherits what its store was merged from
    found = [split] if split is not None else made.get("merged_from")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _copied(origins: Sequence[Made], unknown: int) -> int:
    """Return how many episodes a store began with, or `unknown`: older versions did not record it."""
    counts = [count for one in origins if isinstance(count := one.get("episodes"), int)]
    return sum(counts) if len(counts) == len(origins) else unknown


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
