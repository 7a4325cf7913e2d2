"""Keys that sign stores: Ed25519 (RFC 8032), kept as PEM files that OpenSSL reads, too.

$XDG_CONFIG_HOME/robot_rl/keys/<name>.key    secret; only its owner may read it
$XDG_CONFIG_HOME/robot_rl/keys/<name>.pub    public; whoever has it can verify. All that lie there are trusted
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_rl.errors import DataError, PluginError, RunDirectoryError
from robot_rl.system.atomic_file import sync_directory, writing
from robot_rl.system.regular_file import read_regular

if TYPE_CHECKING:  # an extra
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SECRET, PUBLIC = ".key", ".pub"
"""Endings of the files."""


def key_directory() -> Path:
    """Return where this user's keys lie (XDG Base Directory Specification)."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "robot_rl" / "keys"


def key_id(key: Ed25519PublicKey) -> str:
    """Return the SHA-256 of the 32 bytes of a public key, by which it is known."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()


def make_key(name: str, directory: Path) -> tuple[Path, Path, str]:
    """Make a new key.

    Args:
        name: Of its files; letters, digits, `.`, `-` and `_`.
        directory: Where they are put; made for this user alone if it is missing.

    Returns:
        The files of the secret and of the public key, and the id of the key.

    Raises:
        DataError: if the name cannot be used.
        PluginError: if `cryptography` is not installed.
        RunDirectoryError: if there is a key of that name, or it cannot be written.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise DataError(f"key name {name!r}: must consist of letters, digits, `.`, `-` and `_`")
    ed25519, serialization = _cryptography()
    secret, public = directory / f"{name}{SECRET}", directory / f"{name}{PUBLIC}"
    for path in (secret, public):
        if path.exists() or path.is_symlink():
            raise RunDirectoryError(f"{path}: is there already, and no key is ever overwritten; choose another name")
    key = ed25519.Ed25519PrivateKey.generate()
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    content = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write_new(secret, content, 0o600)
    shown = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    _write_new(public, shown, 0o644)
    return secret, public, key_id(key.public_key())


def read_secret_key(path: Path) -> Ed25519PrivateKey:
    """Read a secret key.

    Raises:
        DataError: if there is none, it is encrypted or of another kind, or others than its owner may read it.
        PluginError: if `cryptography` is not installed.
    """
    ed25519, serialization = _cryptography()
    try:
        content, mode = read_regular(path), path.stat().st_mode
    except OSError as error:
        raise DataError(f"{path}: no key there: {error.strerror}; `robot-rl data key NAME` makes one") from error
    try:
        key = serialization.load_pem_private_key(content, password=None)
    except TypeError as error:
        raise DataError(f"{path}: is encrypted; decrypt it: openssl pkey -in FILE -out {path}") from error
    except ValueError as error:
        raise DataError(f"{path}: not a secret key in PEM format; `robot-rl data key NAME` makes one") from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise DataError(f"{path}: a key of another kind, must be Ed25519; `robot-rl data key NAME` makes one")
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise DataError(
            f"{path}: others can read this key (permissions {stat.S_IMODE(mode):03o}), so it proves nothing; "
            f"`chmod 600 {path}` if nobody has, otherwise make a new one"
        )
    return key


def read_public_key(path: Path) -> Ed25519PublicKey:
    """Read a public key.

    Raises:
        DataError: if there is none, or it is of another kind.
        PluginError: if `cryptography` is not installed.
    """
    ed25519, serialization = _cryptography()
    try:
        key = serialization.load_pem_public_key(read_regular(path))
    except OSError as error:
        raise DataError(f"{path}: no public key there: {error.strerror}; name the lab's `.pub` file") from error
    except ValueError as error:
        raise DataError(f"{path}: not a public key in PEM format; name the lab's `{PUBLIC}` file") from error
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise DataError(f"{path}: a key of another kind, must be Ed25519")
    return key


def only_secret_key(directory: Path) -> Path:
    """Return the file of the one secret key in a directory.

    Raises:
        DataError: if there is none, or more than one.
    """
    found = sorted(directory.glob(f"*{SECRET}")) if directory.is_dir() else []
    if not found:
        raise DataError(f"{directory}: no key there; `robot-rl data key NAME` makes one")
    if len(found) > 1:
        raise DataError(f"{directory}: several keys ({', '.join(file.name for file in found)}); choose with --key FILE")
    return found[0]


def trusted_keys(directory: Path) -> dict[str, Ed25519PublicKey]:
    """Return the public keys in a directory by their id.

    Raises:
        DataError: if there is none, or one cannot be read.
    """
    files = sorted(directory.glob(f"*{PUBLIC}")) if directory.is_dir() else []
    if not files:
        raise DataError(
            f"{directory}: no public key there, so no signature can be trusted; put the lab's `{PUBLIC}` file "
            "there, or name it with --key FILE"
        )
    return by_id(*map(read_public_key, files))


def by_id(*keys: Ed25519PublicKey) -> dict[str, Ed25519PublicKey]:
    """Return public keys by their id."""
    return {key_id(key): key for key in keys}


def holds(keys: Mapping[str, Ed25519PublicKey], name: str, signature: bytes, content: bytes) -> bool:
    """Return whether the key of that id, which is one of `keys`, signed the content."""
    from cryptography.exceptions import InvalidSignature

    try:
        keys[name].verify(signature, content)
    except InvalidSignature:
        return False
    return True


def _write_new(path: Path, content: bytes, mode: int) -> None:
    """Write a file that must not be there yet, with these permissions from the start."""
    with writing(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        try:
            with open(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            sync_directory(path.parent)
        except OSError:
            path.unlink(missing_ok=True)  # half a key is none, and would be in the way of a whole one
            raise


def _cryptography() -> tuple[Any, Any]:
    """Return the modules of Ed25519 and of key files."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise PluginError(
            "signatures need the package cryptography; install it with: pip install 'robot_rl[signing]'"
        ) from error
    return ed25519, serialization
