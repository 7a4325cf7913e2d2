"""Signs an episode store, and names what differs from what was signed.

    <store>/signatures/000000.json    the first signature; 000001.json signs all of the store anew, and so on

The newest signature counts. Each names the hash of the one before, so that none disappears from between.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from robot_rl.data.signature.contents import SIGNATURES, Entry, covered_files, entry_of, holds_signed_part
from robot_rl.data.signature.envelope import Statement, seal, unseal
from robot_rl.data.signature.keys import by_id, key_id
from robot_rl.data.store.layout import ASIDE, EPISODES, LOCK, read_head
from robot_rl.errors import DataError
from robot_rl.system.atomic_file import replace_file, writing
from robot_rl.system.directory_lock import Lock
from robot_rl.system.printable import some
from robot_rl.system.regular_file import read_regular

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

Change = Literal["added", "grown", "edited", "swapped", "removed", "taken out", "signature"]
HARMLESS: frozenset[Change] = frozenset({"added", "grown", "taken out"})
"""Changes that the ordinary use of a store makes; a new signature takes them without being told to."""
OnFile = Callable[[int, int], object]


@dataclass(frozen=True)
class Difference:
    """A file that is not as it was signed.

    Attributes:
        file: Below the store.
        change: What was done to it.
        detail: The same for a person.
    """

    file: str
    change: Change
    detail: str


@dataclass(frozen=True)
class SignedState:
    """A store, compared with its newest signature.

    Attributes:
        number: Of that signature; None if it has none that counts.
        signed: When, by the clock of whoever signed; empty without one.
        key: Id of the key; empty without one.
        files: How many files are as they were signed.
        differences: Those that are not, and signatures that do not hold.
    """

    number: int | None
    signed: str
    key: str
    files: int
    differences: list[Difference]


def compare_with_signature(
    store: Path, keys: Mapping[str, Ed25519PublicKey], *, on_file: OnFile = lambda done, total: None
) -> SignedState:
    """Compare every file of a store with its newest signature.

    Args:
        store: Its directory.
        keys: Trusted keys by id.
        on_file: Called after each file with the number of those compared, and of all.

    Raises:
        DataError: if it was never signed, or cannot be listed.
    """
    files = signature_files(store)
    if not files:
        raise DataError(f"{store}: is not signed; `robot-rl data sign {store}` signs it")
    broken = list(_broken_signatures(store, files, keys))
    if any(one.file == f"{SIGNATURES}/{files[-1].name}" for one in broken):
        return SignedState(None, "", "", 0, broken)
    statement, key = _read(files[-1], keys)
    entries, differences = _differences(store, statement.files, on_file)
    same = len(set(statement.files) & set(entries)) - sum(one.file in statement.files for one in differences)
    return SignedState(statement.number, statement.signed, key, same, broken + differences)


def sign_store(
    store: Path,
    key: Ed25519PrivateKey,
    trusted: Mapping[str, Ed25519PublicKey],
    *,
    accept_changes: bool = False,
    on_file: OnFile = lambda done, total: None,
) -> SignedState:
    """Sign all that is in a store now.

    Args:
        store: Its directory; somebody may be recording into it, what is unfinished is not signed.
        key: The signer's.
        trusted: Keys that may have made earlier signatures; the signer's own is one.
        accept_changes: Sign also what was edited, swapped or removed since the signature before, or if that does not
            hold.
        on_file: As for `compare_with_signature`.

    Returns:
        The state by the new signature; its differences are those from the signature before.

    Raises:
        DataError: if there is no store, a file cannot be read, or changes would have to be accepted.
        RunDirectoryError: if another process signs it, or it cannot be written.
    """
    read_head(store)
    keys = {**trusted, **by_id(key.public_key())}
    folder = store / SIGNATURES
    with writing(folder):
        folder.mkdir(exist_ok=True)
    with Lock(folder / LOCK):
        files = signature_files(store)
        broken = list(_broken_signatures(store, files, keys))
        counts = files and not any(one.file == f"{SIGNATURES}/{files[-1].name}" for one in broken)
        before = _read(files[-1], keys)[0].files if counts else {}
        entries, differences = _differences(store, before, on_file)
        unread = [one for one in differences if one.file not in entries and one.change in ("edited", "added")]
        if unread:
            raise DataError(f"{store / unread[0].file}: {unread[0].detail}; nothing was signed")
        suspect = broken + [one for one in differences if one.change not in HARMLESS]
        if suspect and not accept_changes:
            shown = some([f"{one.file} {one.detail}" for one in suspect], between="; ")
            raise DataError(
                f"{store}: changed since it was signed: {shown}; bring back what was signed, or sign it as it is "
                "now with --accept-changes"
            )
        number = 1 + (int(files[-1].stem) if files else -1)
        previous = hashlib.sha256(read_regular(files[-1])).hexdigest() if files else None
        now = datetime.now(UTC).isoformat(timespec="seconds")
        statement = Statement(dict(sorted(entries.items())), number, now, previous)
        path = folder / f"{number:06d}.json"
        with writing(path):
            replace_file(path, [seal(statement, key)])
    return SignedState(number, now, key_id(key.public_key()), len(entries), broken + differences)


def signature_files(store: Path) -> list[Path]:
    """Return the files of a store's signatures, oldest first."""
    folder = store / SIGNATURES
    found = folder.glob("*.json") if folder.is_dir() else ()
    return sorted(file for file in found if file.stem.isascii() and file.stem.isdecimal() and len(file.stem) == 6)


def _read(file: Path, keys: Mapping[str, Ed25519PublicKey]) -> tuple[Statement, str]:
    statement, key = unseal(read_regular(file), keys)
    if statement.number != int(file.stem):
        raise DataError(f"was signed as number {statement.number}, and lies here as {int(file.stem)}")
    return statement, key


def _broken_signatures(store: Path, files: list[Path], keys: Mapping[str, Ed25519PublicKey]) -> Iterator[Difference]:
    """Yield the signatures that do not hold, and those that are missing."""
    there = {int(file.stem): file for file in files}
    expected: str | None = None  # hash of the file before, by the one after it
    for number in range(max(there, default=-1), -1, -1):
        name = f"{SIGNATURES}/{number:06d}.json"
        if number not in there:
            yield Difference(name, "signature", "was removed")
            expected = None
            continue
        try:
            found = hashlib.sha256(read_regular(there[number])).hexdigest()
            if expected is not None and found != expected:
                raise DataError("is not the one that the next signature names")
            expected = _read(there[number], keys)[0].previous
        except (OSError, DataError) as error:
            yield Difference(name, "signature", str(error))
            expected = None


def _differences(
    store: Path, signed: Mapping[str, Entry], on_file: OnFile
) -> tuple[dict[str, Entry], list[Difference]]:
    """Return the entries of the files that can be read, and those that differ from what was signed."""
    names = list(covered_files(store))
    entries: dict[str, Entry] = {}
    differences: list[Difference] = []
    was = {entry["sha256"]: name for name, entry in signed.items()}
    for done, name in enumerate(names, start=1):
        file, before = store / name, signed.get(name)
        try:
            entries[name] = entry = entry_of(file)
            if before is None:
                differences.append(_added(name, was.get(entry["sha256"])))
            elif entry != before:
                differences.append(_changed(file, name, before, was.get(entry["sha256"])))
        except DataError as error:
            differences.append(Difference(name, "added" if before is None else "edited", str(error)))
        on_file(done, len(names))
    gone = sorted(set(signed) - set(names))
    aside = _aside(store) if gone else {}
    for name in gone:
        if (place := aside.get(signed[name]["sha256"])) is not None:
            differences.append(Difference(name, "taken out", f"was taken out of the store; it lies in {place}"))
        else:
            differences.append(Difference(name, "removed", "was removed"))
    return entries, differences


def _added(name: str, signed_as: str | None) -> Difference:
    copy = f"; it is a copy of {signed_as}" if signed_as is not None and name.startswith(EPISODES) else ""
    return Difference(name, "added", f"was added after the signature{copy}")


def _changed(file: Path, name: str, before: Entry, signed_as: str | None) -> Difference:
    if holds_signed_part(file, before):
        return Difference(name, "grown", "holds more than was signed; what was signed is in it")
    if signed_as is not None:
        return Difference(name, "swapped", f"holds what was signed as {signed_as}")
    return Difference(name, "edited", "is not what was signed")


def _aside(store: Path) -> dict[str, str]:
    """Return the place of each file that was taken out, by its SHA-256."""
    places = {}
    for file in sorted(store.glob(f"{ASIDE}/*/*")):
        try:
            places[str(entry_of(file)["sha256"])] = file.relative_to(store).as_posix()
        except DataError:
            continue  # a link or a FIFO there is no file of the store
    return places
