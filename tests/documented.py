"""The code of the pages in docs/add, as modules: what is shown there is what the tests run."""

import re
import types
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs" / "add"
MAX_LINES = 60


def python_blocks(page: str) -> list[str]:
    """Return the Python blocks of a page, in their order; one of more than 60 lines is an error."""
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    if not blocks:
        raise ValueError(f"{page} shows no Python")
    longest = max(len(block.splitlines()) for block in blocks)
    if longest > MAX_LINES:
        raise ValueError(f"{page} has an example of {longest} lines, allowed are {MAX_LINES}")
    return blocks


def example_module(page: str) -> types.ModuleType:
    """Return the first Python block of a page, executed as a module."""
    module = types.ModuleType(f"example_{Path(page).stem}")
    exec(compile(python_blocks(page)[0], str(DOCS / page), "exec"), module.__dict__)
    return module
