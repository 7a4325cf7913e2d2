"""TLS for the console: with a certificate of the user's or of its own, recognized by its fingerprint."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import os
import re
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from robot_rl.console.access.address import Address, ConsoleError
from robot_rl.console.access.networks import reachable_hosts

VALID_FOR = datetime.timedelta(days=730)
"""Browsers accept certificates of up to 825 days that a person has trusted."""
MOST_NAMES = 50
"""Of an older certificate, in a new one."""
LEFT = datetime.timedelta(days=30)
"""A kept certificate with less time left is replaced."""
FILE = "console.pem"


Certificate = tuple[Path, Path] | Literal["own"]
"""PEM files of certificate and key; or one that the console makes and keeps."""


class Tls:
    """The TLS side of one console.

    Args:
        certificate: What it shows to browsers.
        address: Where the console listens.

    Raises:
        ConsoleError: if the certificate cannot be used or kept.
    """

    def __init__(self, certificate: Certificate, address: Address) -> None:
        if certificate == "own":
            kept = own_certificate(reachable_hosts(address), state_directory())
            certificate = (kept, kept)
        file, key = certificate
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            self.context.load_cert_chain(file, key)
        except (OSError, ssl.SSLError) as error:
            raise ConsoleError(f"cannot use certificate {file} with key {key}: {error}") from error
        self.fingerprint = fingerprint(file)


def state_directory() -> Path:
    """Return where this user's programs keep their state (XDG Base Directory Specification)."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "robot_rl"


def own_certificate(hosts: Sequence[str], directory: Path) -> Path:
    """Return a PEM file with a key and a certificate for it, which only this user can read.

    The file is kept, so that people accept its fingerprint once. It is made anew if it does not name one of the hosts,
    or is about to expire; a new one also names what the old one did, so that two hosts do not replace each other's.

    Args:
        hosts: Names and numbers by which the console is opened, besides those of this machine itself.
        directory: Where the file is kept.

    Raises:
        ConsoleError: if the file cannot be written.
    """
    path, now = directory / FILE, datetime.datetime.now(datetime.UTC)
    names = sorted({"localhost", "127.0.0.1", "::1", socket.gethostname(), *hosts})
    alternatives = [_general_name(name) for name in names]
    if path.is_file():
        try:
            kept = x509.load_pem_x509_certificate(path.read_bytes())
            known = kept.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            if set(alternatives) <= set(known) and kept.not_valid_after_utc - now > LEFT:
                return path
            alternatives += [name for name in known if name not in alternatives][:MOST_NAMES]
        except (ValueError, OSError, x509.ExtensionNotFound):
            pass  # whatever it was, it is replaced
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "robot_rl console")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + VALID_FOR)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write_privately(path, secret + certificate.public_bytes(serialization.Encoding.PEM))
    return path


def fingerprint(path: Path) -> str:
    """Return the SHA-256 fingerprint of the first certificate of a PEM file, as browsers show it: `AB:CD:...`.

    Raises:
        ConsoleError: if there is no certificate in the file.
    """
    text = path.read_text(encoding="utf-8", errors="replace")
    found = re.search("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", text, re.DOTALL)
    if found is None:
        raise ConsoleError(f"{path} has no certificate; expected a PEM file")
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(found[0])).digest().hex(":").upper()


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name.partition("%")[0]))
    except ValueError:
        return x509.DNSName(name)


def _write_privately(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError as error:
        raise ConsoleError(
            f"cannot keep the console's certificate in {path}: {error.strerror}; make the folder writable, "
            "or give a certificate of your own: --tls CERT KEY"
        ) from error
