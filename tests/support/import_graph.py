"""Who imports whom, read from the source: between files, between folders, and between roles.

A file is named like its module (`robot_rl.env.task`), a folder like its package. A role is a sub-package as a whole:
`robot_rl.data` with `robot_rl.data.store` and all others below it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

Graph = dict[str, set[str]]
"""The names that each name imports."""


class Source(NamedTuple):
    """A file below the root of the project, with forward slashes, and its text."""

    path: str
    text: str

    @property
    def module(self) -> str:
        return self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    @property
    def folder(self) -> str:
        """The package that the file is in; an `__init__.py` is in the package that it makes."""
        return ".".join(self.path.split("/")[:-1])


@cache
def imported_modules(source: Source) -> list[tuple[int, str]]:
    """Line and full name of everything imported; `from a import b` counts as `a.b`. A dozen rules want it."""
    package = source.path.removesuffix(".py").split("/")[:-1]
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(source.text, source.path)):
        if isinstance(node, ast.Import):
            found += ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found += ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
    return found


def file_graph(files: Iterable[Source]) -> Graph:
    """The modules among the files that each of them imports, wherever in the file it does so."""
    by_module = {source.module: source for source in files}
    graph: Graph = {}
    for module, source in by_module.items():
        graph[module] = set()
        for _, name in imported_modules(source):
            found = name if name in by_module else name.rpartition(".")[0]
            if found in by_module:
                graph[module].add(found)
        graph[module].discard(module)
    return graph


def collapse(files: Iterable[Source], name_of: Callable[[Source], str]) -> Graph:
    """The graph of the files with those of the same name made one."""
    files = list(files)
    names = {source.module: name_of(source) for source in files}
    graph: Graph = {}
    for module, targets in file_graph(files).items():
        graph.setdefault(names[module], set()).update({names[target] for target in targets} - {names[module]})
    return graph


def folder_graph(files: Iterable[Source]) -> Graph:
    return collapse(files, lambda source: source.folder)


def role_graph(files: Iterable[Source]) -> Graph:
    return collapse(files, lambda source: ".".join(source.folder.split(".")[:2]))


def find_cycle(graph: Graph) -> list[str]:
    """A way from a name back to itself, as its names in order; empty if there is none."""
    done: set[str] = set()

    def visit(node: str, trail: list[str]) -> list[str]:
        if node in trail:
            return [*trail[trail.index(node) :], node]
        if node not in done:
            for target in sorted(graph.get(node, ())):
                if cycle := visit(target, [*trail, node]):
                    return cycle
        done.add(node)
        return []

    return next((cycle for node in sorted(graph) if (cycle := visit(node, []))), [])
