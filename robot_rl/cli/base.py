"""The base policy on the command line."""

from __future__ import annotations

import json


def base_settings(base: str | None) -> list[str]:
    """Return the settings that `--base KIND[:PATH]` stands for."""
    if base is None:
        return []
    kind, _, path = base.partition(":")
    return [f"base.{key}={json.dumps(value)}" for key, value in (("kind", kind), ("path", path)) if value]
