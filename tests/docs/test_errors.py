"""Troubleshooting by error message: each message of the page is one that the program gives."""

import ast
import functools
import re

from document_checks import OURS
from documents import ROOT

PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")


@functools.cache
def texts():
    """All texts in the source, with `…` for what is put in."""
    found = []
    for path in (path for place in OURS for path in (ROOT / place).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found


def test_each_message_is_one_of_the_program():
    messages = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)
    assert len(messages) >= 35
    for message in messages:
        pattern = re.compile(".*".join(map(re.escape, filter(None, map(str.strip, message.split("…"))))), re.DOTALL)
        assert any(pattern.search(text) for text in texts()), message
