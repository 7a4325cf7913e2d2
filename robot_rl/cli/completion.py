"""`robot-rl completion`: a script with which a shell completes commands, options and names.

It is generated from the parser, so it needs no package, and Tab need not start Python, which takes a fifth of a second
(argcomplete does; shtab lacks fish).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from robot_rl.cli.parts.parser import CommandParser

SHELLS = ("bash", "zsh", "fish")

_BASH = """\
# robot-rl completion bash
_robot_rl() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} path="" entry flags="" names=""
  for entry in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$path $entry" in
      {paths}) path="$path $entry" ;;
    esac
  done
  case "$path" in
{cases}
  esac
  case "$path $previous" in
{values}
    *) [[ $current == -* ]] && names=$flags ;;
  esac
  COMPREPLY=($(compgen -W "$names" -- "$current"))
}}
complete -o default -F _robot_rl robot-rl
"""
_ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"
_FISH = """\
# robot-rl completion fish
function __robot_rl_at
  set -l path
  for entry in (commandline -opc)[2..-1]
    set -l next $path $entry
    contains -- "$next" {paths}; and set path $next
  end
  test "$path" = "$argv[1]"
end
"""


class _Place(NamedTuple):
    """A command, or a group of commands, on the line.

    Attributes:
        path: Its name after those of its groups, e.g. `data ls`; empty for `robot-rl` itself.
        names: What may follow: commands, or values of a positional argument.
        options: Its options by name, with their valid values (none if they are free) and their help; flags have None.
    """

    path: str
    names: tuple[str, ...]
    options: dict[str, tuple[tuple[str, ...] | None, str]]


def completion(shell: str, parser: CommandParser, names: Mapping[str, tuple[str, ...]]) -> str:
    """Return the script.

    Args:
        shell: One of `SHELLS`.
        parser: Of the whole command line.
        names: Values of the positional arguments with these `metavar`s, e.g. of `TASK`.
    """
    places = list(_places(parser, names, ""))
    if shell == "fish":
        return _fish(places)
    return (_ZSH if shell == "zsh" else "") + _bash(places)


def _places(parser: CommandParser, names: Mapping[str, tuple[str, ...]], path: str) -> Iterator[_Place]:
    options: dict[str, tuple[tuple[str, ...] | None, str]] = {}
    values = list(parser.commands)
    for action in parser.arguments():
        choices = tuple(map(str, action.choices or ()))
        for name in action.option_strings:
            flag = isinstance(action.nargs, int) and action.nargs == 0
            options[name] = (None if flag else choices, (action.help or "").replace("%%", "%"))
        if not action.option_strings:
            metavar = action.metavar if isinstance(action.metavar, str) else ""
            values += choices or names.get(metavar, ())
    yield _Place(path, tuple(values), options)
    for name, command in parser.commands.items():
        yield from _places(command, names, f"{path} {name}".strip())


def _bash(places: list[_Place]) -> str:
    paths = "|".join(f'" {place.path}"' for place in places if place.path)
    cases, values = [], []
    for place in places:
        start = f" {place.path}" if place.path else ""
        known = f'names="{" ".join(place.names)}" flags="{" ".join(place.options)}"'
        cases.append(f'    "{start}") {known} ;;')
        values += [
            f'    "{start} {option}") names="{" ".join(valid)}" ;;'
            for option, (valid, _) in place.options.items()
            if valid is not None
        ]
    return _BASH.format(paths=paths, cases="\n".join(cases), values="\n".join(values))


def _fish(places: list[_Place]) -> str:
    lines = [_FISH.format(paths=" ".join(shlex.quote(place.path) for place in places if place.path))]
    for place in places:
        start = f"complete -c robot-rl -n {shlex.quote(f'__robot_rl_at {shlex.quote(place.path)}')}"
        if place.names:
            lines.append(f"{start} -f -a {shlex.quote(' '.join(place.names))}")
        for option, (valid, text) in place.options.items():
            kind = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            value = "" if valid is None else f" -x -a {shlex.quote(' '.join(valid))}" if valid else " -r"
            lines.append(f"{start} {kind}{value} -d {shlex.quote(text)}")
    return "\n".join([*lines, ""])
