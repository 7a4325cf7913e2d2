"""`robot-rl data key | sign` and `verify --signed`: signatures over a store with a key of the lab's."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_rl.cli.parts.command import MakeParser, Reply

if TYPE_CHECKING:
    from robot_rl.data.signature.store_signature import Difference, SignedState


def add_signing_commands(commands: Any, add: MakeParser) -> None:
    """Add the sub-commands."""
    key = add(
        commands,
        "key",
        _key,
        "make a key that signs stores: a secret file for those who sign, a public one for those who verify",
        example="robot-rl data key lab",
    )
    key.add_argument("name", metavar="NAME", help="name of its files")
    key.add_argument("--out", type=Path, metavar="DIR", help="where to put them (default: ~/.config/robot_rl/keys)")

    sign = add(
        commands,
        "sign",
        _sign,
        "sign all that is in a store now; after more was recorded, sign it again",
        example="robot-rl data sign demos",
    )
    sign.add_argument("store", type=Path, metavar="STORE", help="directory of a store, or of a run")
    sign.add_argument(
        "--key", type=Path, metavar="FILE", help="secret key (default: the only one in ~/.config/robot_rl/keys)"
    )
    sign.add_argument(
        "--accept-changes",
        action="store_true",
        help="sign also what was edited, swapped or removed since the signature before",
    )


def add_verify_flags(verify: argparse.ArgumentParser) -> None:
    """Add the flags of `verify` about signatures."""
    verify.add_argument(
        "--signed", action="store_true", help="also compare each file with what was signed, see `robot-rl data sign`"
    )
    verify.add_argument(
        "--key",
        type=Path,
        metavar="FILE",
        help="of --signed: the public key to trust (default: those in ~/.config/robot_rl/keys)",
    )


def check_verify_flags(arguments: argparse.Namespace) -> None:
    """Refuse flags that contradict each other, as wrong usage."""
    if arguments.key is not None and not arguments.signed:
        arguments.parser.error("--key is the key of the signature; add --signed")
    if arguments.signed and arguments.repair:
        arguments.parser.error("--repair moves files, so that they are no longer where they were signed; leave one out")


def signed_state(path: Path, key: Path | None) -> SignedState:
    """Compare a store with its newest signature.

    Raises:
        RobotRLError: if it is not signed, or there is no key to trust.
    """
    from robot_rl.data.signature.keys import by_id, key_directory, read_public_key, trusted_keys
    from robot_rl.data.signature.store_signature import compare_with_signature
    from robot_rl.system.progress import Progress

    keys = by_id(read_public_key(key)) if key is not None else trusted_keys(key_directory())
    with Progress(None, "compare with the signature", unit="files") as progress:
        return compare_with_signature(path, keys, on_file=_shown(progress))


def state_lines(state: SignedState) -> list[str]:
    """Return the state of a signed store for a person."""
    lines = _difference_lines(state.differences)
    if state.number is None:
        return [*lines, "no signature counts, so nothing is known of the files"]
    return [
        *lines,
        f"signature {state.number} of {state.signed} by the key {state.key}: {state.files} files as signed, "
        f"{len(state.differences)} differences",
    ]


def _key(arguments: argparse.Namespace) -> Reply:
    from robot_rl.data.signature.keys import key_directory, make_key

    secret, public, name = make_key(arguments.name, arguments.out or key_directory())
    lines = [
        f"{secret}: the secret key; whoever has it can sign. Keep it off shared disks, with a copy in a safe place",
        f"{public}: the public key; give it to whoever shall verify",
        f"id {name}",
    ]
    return Reply({"secret": secret, "public": public, "id": name}, lines)


def _sign(arguments: argparse.Namespace) -> Reply:
    from robot_rl.data.signature.keys import key_directory, only_secret_key, read_secret_key, trusted_keys
    from robot_rl.data.signature.store_signature import sign_store
    from robot_rl.data.store.layout import find_store
    from robot_rl.system.progress import Progress

    path, directory = find_store(arguments.store), key_directory()
    key = read_secret_key(arguments.key or only_secret_key(directory))
    trusted = trusted_keys(directory) if directory.is_dir() and any(directory.glob("*.pub")) else {}
    with Progress(None, "sign", unit="files") as progress:
        state = sign_store(path, key, trusted, accept_changes=arguments.accept_changes, on_file=_shown(progress))
    lines = [] if state.number == 0 else _difference_lines(state.differences)
    lines.append(f"signature {state.number} of {path}: {state.files} files, by the key {state.key}")
    return Reply({"store": path, **asdict(state)}, lines)


def _shown(progress: Any) -> Any:
    def show(done: int, total: int) -> None:
        progress.total = total
        progress.update(done)

    return show


def _difference_lines(differences: Iterable[Difference]) -> list[str]:
    return [f"{one.file}, {one.change}: {one.detail}" for one in differences]
