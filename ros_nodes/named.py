"""Parameters that say something of several things: a list of texts `NAME=VALUE`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from robot_rl.errors import ConfigError, UnknownNameError


def named_values(parameter: str, entries: Sequence[str], names: Collection[str] | None = None) -> dict[str, str]:
    """The values by name.

    Args:
        parameter: What the parameter is called.
        entries: Its texts.
        names: Names that exist; None takes any.

    Raises:
        ConfigError: if an entry is not of this form, or a name appears twice.
        UnknownNameError: if a name does not exist.
    """
    values: dict[str, str] = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not (name and equals and value):
            raise ConfigError(f"{parameter}: an entry has to be NAME=VALUE, got {entry!r}")
        if name in values:
            raise ConfigError(f"{parameter}: {name} appears twice")
        if names is not None and name not in names:
            raise UnknownNameError(f"name in {parameter}", name, names)
        values[name] = value
    return values
