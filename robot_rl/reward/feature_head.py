"""What heads on a frozen image encoder have in common: what they were made for, and on what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class FeatureHead:
    """A head says something of frames of one camera, by their features.

    Attributes:
        encoder: Whose features it is for.
        size: Of the frames [px].
        camera: Who sees them.
        task: What the robot was to do.
        trained_on: Ids of the episodes that it was trained on; a report leaves them out.
    """

    encoder: str
    size: int
    camera: str
    task: str
    trained_on: tuple[str, ...]
