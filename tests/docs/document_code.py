"""What a document shows as code, read for the tests that hold it against the program.

A *line* is a whole command of a block, which has to be one that the program accepts. A *span* of running text may leave
out what it does not speak of: `robot-rl data verify` without a path. Both may be placeholders, in capitals: `RUN`.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_ENDS = {"|", "||", "&&", ";", "&", ">", ">>", "2>&1"}


@dataclass(frozen=True)
class Block:
    """A fenced block (with its language) or an indented one (language `""`)."""

    language: str
    text: str


def read_document(path: Path) -> str:
    """The Markdown of a page or of a notebook, whose cells of code become blocks of Python."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"]]
    return "\n\n".join(source if kind == "markdown" else f"```python\n{source}\n```" for kind, source in cells)


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks, then the indented ones."""
    for _, language, content in FENCE.findall(text):
        yield Block(language, content)
    for content in re.findall(r"(?:^    .*\S.*\n?(?:^ *\n(?=    ))*)+", FENCE.sub("", text), re.MULTILINE):
        yield Block("", re.sub(r"^    ", "", content, flags=re.MULTILINE))


def spans(text: str) -> list[str]:
    """The code in running text."""
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", FENCE.sub("", text))


def lines(text: str) -> Iterator[str]:
    """The lines of all blocks that are no Python, YAML or TOML; a continued line is one."""
    for block in blocks(text):
        if block.language not in ("python", "yaml", "toml", "json"):
            yield from re.sub(r"\\\n\s*", " ", block.text).splitlines()


def commands(line: str) -> Iterator[list[str]]:
    """The commands of a line of a shell, each as its words; also those inside `$(...)`."""
    for inner in re.findall(r"\$\(([^()]*)\)", line):
        yield from commands(inner)
    try:
        words = shlex.split(line.strip().removeprefix("$ "), comments=True)
    except ValueError:  # prose, or half a line
        return
    command: list[str] = []
    for word in [*words, ";"]:
        if word in _ENDS:
            if command:
                yield command
            command = []
        elif command or not re.fullmatch(r"[A-Z_]+=.*", word):  # NAME=VALUE in front of a command
            command.append(word)


def links(text: str) -> Iterator[str]:
    """The targets of links and pictures, in Markdown and in HTML."""
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))
    yield from re.findall(r"\]\(([^)\s]+)", prose)
    yield from re.findall(r"^\[[^\]]+\]:\s*(\S+)", prose, re.MULTILINE)
    yield from re.findall(r"""<(?:img|a|video|source)\b[^>]*?(?:src|href)=["']([^"']+)""", prose)


def anchors(text: str) -> set[str]:
    """The anchors of the headings, as GitHub and the site make them, and those that HTML gives."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.+?) *#*$", FENCE.sub("", text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
        found |= {slug, re.sub(r"-+", "-", slug)}
    return found | set(re.findall(r"""\b(?:id|name)=["']([\w-]+)""", text))
