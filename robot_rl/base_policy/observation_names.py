"""What a policy of others calls our observations: names of theirs, each made of one or several of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from robot_rl.data.schema import IMAGE_PREFIX, Observation
from robot_rl.errors import BasePolicyError
from robot_rl.spec import ArraySpec


class ObservationNames:
    """The map of `base.names`: `THEIRS=OURS`, or `THEIRS=OURS+OURS` for vectors side by side.

    Args:
        entries: Of the setting.
        usual: Theirs to ours where the setting is empty.
        observations: Specs of ours.
        name: Of the base, for messages.

    Raises:
        BasePolicyError: if an entry is of another form, or one of ours does not exist.

    Attributes:
        ours: Shapes of those of ours that are used.
        theirs: Shapes that come of it, by their names.
    """

    def __init__(
        self,
        entries: Sequence[str],
        usual: Mapping[str, Sequence[str]],
        observations: Mapping[str, ArraySpec],
        name: str,
    ) -> None:
        chosen = {theirs: tuple(ours) for theirs, ours in usual.items()}
        if entries:
            chosen = {}
            for entry in entries:
                theirs, mark, ours = entry.partition("=")
                if not (theirs and mark and ours):
                    raise BasePolicyError(
                        f"base.names: {entry!r} of base {name}; expected THEIRS=OURS or THEIRS=OURS+OURS"
                    )
                chosen[theirs] = tuple(ours.split("+"))
        self._parts = chosen
        self.ours: dict[str, tuple[int, ...]] = {}
        for parts in chosen.values():
            for key in parts:
                if key not in observations:
                    valid = ", ".join(sorted(observations))
                    raise BasePolicyError(f"base.names: base {name} needs {key}, which is not observed; valid: {valid}")
                if len(parts) > 1 and key.startswith(IMAGE_PREFIX):
                    raise BasePolicyError(
                        f"base.names: {key} of base {name} is a picture, which cannot be beside others"
                    )
                self.ours[key] = observations[key].shape
        self.theirs = {theirs: self._shape(parts) for theirs, parts in chosen.items()}

    def _shape(self, parts: Sequence[str]) -> tuple[int, ...]:
        if parts[0].startswith(IMAGE_PREFIX):
            return self.ours[parts[0]]
        return (sum(int(np.prod(self.ours[key])) for key in parts),)

    def of_history(self, observations: Sequence[Observation]) -> dict[str, np.ndarray]:
        """Return vectors of all these observations, oldest first, shape (k, n), and the pictures of the newest."""
        rows = [self.of(observation) for observation in observations]
        given = dict(rows[-1])
        for theirs, parts in self._parts.items():
            if not parts[0].startswith(IMAGE_PREFIX):
                given[theirs] = np.stack([row[theirs] for row in rows])
        return given

    def of(self, observation: Observation) -> dict[str, np.ndarray]:
        """Return an observation under their names; pictures are uint8 (height, width, 3), vectors float32."""
        given = {}
        for theirs, parts in self._parts.items():
            if parts[0].startswith(IMAGE_PREFIX):
                given[theirs] = np.asarray(observation[parts[0]])
            else:
                given[theirs] = np.concatenate([np.asarray(observation[key], np.float32).ravel() for key in parts])
        return given
