"""Messages that documents quote: each one is a message of the program."""

import ast
import functools
import re

import pytest
from document_checks import OURS
from documents import ROOT


@functools.cache
def texts():
    """All texts in the source, one after the other behind a NUL, with `…` for what is put in."""
    found = []
    for path in (path for place in OURS for path in (ROOT / place).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\0".join(found)


def quoted(text):
    """The code at the beginning of the cells of tables whose column is called `message`."""
    for head, rows in re.findall(r"^(\|.*\|)\n\|[-|]+\|\n((?:\|.*\n?)+)", text, re.MULTILINE):
        columns = [n for n, name in enumerate(head.split("|")) if name.strip().startswith("message")]
        cells = [row.split("|")[n].strip() for row in rows.splitlines() for n in columns]
        yield from (code[1] for cell in cells if (code := re.match("`([^`]+)`", cell)))


@pytest.mark.parametrize(("page", "least"), [("errors", 35), ("arms", 6)])
def test_each_message_is_one_of_the_program(page, least):
    messages = list(quoted((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")))
    assert len(messages) >= least
    for message in messages:
        parts = [re.escape(part.strip()) for part in message.split("…") if part.strip()]
        assert re.search(r"[^\0]*".join(parts), texts()), message
