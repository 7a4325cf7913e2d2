"""Hooks of the documentation site: pages that are made of the code, and links that lead out of docs/.

README, CONTRIBUTING and CHANGELOG become pages, and so do the commands (from the parser), the settings (from the
dataclasses) and the contracts (from their docstrings). So the site cannot differ from the program.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from robot_rl.cli.main import command_line
from robot_rl.cli.parts.parser import CommandParser
from robot_rl.config.components import TrainConfig
from robot_rl.config.describe import as_typed, list_keys
from robot_rl.config.labelling import LabelConfig

ROOT = Path(__file__).resolve().parents[1]
TOP = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Documents outside docs/, and their pages."""
SHIM = "https://unpkg.com/iframe-worker/shim"
"""What the theme's offline plugin would load from the network."""
CONTRACTS = {
    "A robot": ("robot_rl.env.robot_io", "robot_rl.arm.driver"),
    "A task": ("robot_rl.env.task", "robot_rl.env.step_info"),
    "An environment": ("robot_rl.env.environment",),
    "Recorded data": ("robot_rl.data.schema", "robot_rl.data.episode_facts"),
    "An algorithm": ("robot_rl.learn.algorithms.base",),
    "A base policy": ("robot_rl.base_policy.contract",),
    "A camera, an input device": ("robot_rl.camera.source", "robot_rl.teleop.device"),
    "A labeller": ("robot_rl.reward.backend",),
}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made of something else."""
    made = {page: (ROOT / source).read_text(encoding="utf-8") for source, page in TOP.items()}
    made["reference/commands.md"] = "\n".join(_commands())
    made["reference/settings.md"] = "\n".join(_settings())
    made["reference/contracts.md"] = "\n".join(_contracts())
    for uri, content in made.items():
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to files that are no pages into their names, and links to top documents into links to their pages."""
    place = {uri: source for source, uri in TOP.items()}.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    folder, here = posixpath.dirname(place), posixpath.dirname(page.file.src_uri)

    def led(match: re.Match[str]) -> str:
        picture, text, target, anchor = match[1], match[2], match[3], match[4] or ""
        if not target or "://" in target:
            return match[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        uri = TOP.get(path, path.removeprefix("docs/") if path.startswith("docs/") else None)
        if uri is None or (files.get_file_from_path(uri) is None and (ROOT / path).exists()):
            return text if text.startswith("`") else f"{text} (`{path}`)"  # a file of the checkout, no page
        return f"{picture}[{text}]({posixpath.relpath(uri, here or '.')}{anchor})"

    return _LINK.sub(led, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Load the shim of the offline search from the site itself."""
    del config
    here = posixpath.dirname(page.file.dest_uri) or "."
    return output.replace(SHIM, posixpath.relpath("assets/iframe-worker.js", here))


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """Do the same in the page of what is not found."""
    del template_name, config
    return output_content.replace(SHIM, "/assets/iframe-worker.js")


def _commands() -> Iterator[str]:
    """Yield a page of every command, from the parser."""
    yield "# Commands"
    yield "\nEvery command has `--help`, and `--json` for programs."
    yield "Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 130 interrupted."
    for path, parser in _leaves(command_line(), "robot-rl"):
        yield f"\n## `{path}`\n"
        yield f"```text\n{parser.format_help().strip()}\n```"


def _leaves(parser: CommandParser, path: str) -> Iterator[tuple[str, CommandParser]]:
    if not parser.commands:
        yield path, parser
    for name, below in parser.commands.items():
        yield from _leaves(below, f"{path} {name}")


def _settings() -> Iterator[str]:
    """Yield a page of every setting, from the configuration."""
    yield "# Settings"
    yield "\nOn the command line `--set NAME=VALUE`, in a file `--config FILE` (YAML)."
    yield "In brackets: other defaults under a condition, and whether a resumed run or a fork may change it."
    for title, kind in (("robot-rl train", TrainConfig), ("robot-rl label", LabelConfig)):
        section = None
        yield f"\n## `{title}`"
        for key in list_keys(kind):
            if (top := key.key.partition(".")[0] if "." in key.key else "") != section:
                section = top
                yield f"\n### `{title}`: {section or 'general'}\n"
            marks = f" [{'; '.join(key.notes)}]" if key.notes else ""
            yield f"- **`{key.key}`** = `{as_typed(key.default)}` ({key.type}){marks}: {key.doc}"


def _contracts() -> Iterator[str]:
    """Yield a page of the sockets' contracts, which mkdocstrings fills."""
    yield "# Contracts"
    yield "\nWhat an extension implements. The pages under *Add your own* have complete examples."
    for title, modules in CONTRACTS.items():
        yield f"\n## {title}\n"
        for module in modules:
            yield f"::: {module}\n"
