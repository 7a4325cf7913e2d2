"""The chain from a policy back to the episodes that were recorded: what each thing was made of, and where it breaks.

    run -> policy -> checkpoint -> store of the run -> stores that its episodes were copied from -> overlays
                                -> run that it began from, by its checkpoint

Each link is checked by content, not by name: fingerprints of episodes, digests of checkpoints and policies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class ChainLink:
    """One thing in the chain.

    Attributes:
        kind: `run`, `policy`, `checkpoint`, `store`, `episode`, `overlay` or `file`.
        name: Its path, id or digest.
        facts: What is known of it.
        breaks: What contradicts the chain here, one sentence each.
        unchecked: What cannot be checked here, one sentence each.
        sources: What it was made of.
    """

    kind: str
    name: str
    facts: dict[str, Any] = field(default_factory=dict)
    breaks: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    sources: list[ChainLink] = field(default_factory=list)

    def all(self) -> Iterator[ChainLink]:
        """Yield this link and all that it goes back to."""
        yield self
        for source in self.sources:
            yield from source.all()
