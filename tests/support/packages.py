"""A package as pip would have installed it, so that its entry points are found: only its dist-info, without pip."""

from collections.abc import Mapping
from pathlib import Path


def install_package(folder: Path, name: str, points: Mapping[str, Mapping[str, str]]) -> None:
    """Write what tells that a package lies in a folder; who looks for it needs the folder on its path.

    Args:
        folder: It is made where it is missing.
        name: Of the package.
        points: By group, what each name of an entry point stands for.
    """
    info = folder / f"{name}-0.0.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.0.0\n")
    lines = [
        line
        for group, values in points.items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in values.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
