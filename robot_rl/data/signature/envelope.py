"""A signed statement about the files of a store, in the formats of software supply chains.

The statement is an in-toto Statement v1 (https://in-toto.io/Statement/v1): subjects with digests, and a predicate. The
envelope is DSSE v1 (https://github.com/secure-systems-lab/dsse): the signature covers the bytes that are stored, so
nothing depends on how JSON is written.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from robot_rl.data.signature.contents import Entry
from robot_rl.data.signature.keys import holds, key_id
from robot_rl.errors import DataError
from robot_rl.system.checked_json import parse_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:robot-rl:episode-store:v1"


@dataclass(frozen=True)
class Statement:
    """What is signed.

    Attributes:
        files: Entry of each file, by its name below the store.
        number: Of this signature of the store, from 0.
        signed: When, ISO 8601 in UTC, by the clock of whoever signed.
        previous: SHA-256 of the file of the signature before; None for the first.
    """

    files: Mapping[str, Entry]
    number: int
    signed: str
    previous: str | None


def seal(statement: Statement, key: Ed25519PrivateKey) -> bytes:
    """Return the content of a signature's file."""
    subjects = [
        {
            "name": name,
            "digest": {"sha256": entry["sha256"]},
            "annotations": {what: value for what, value in entry.items() if what != "sha256"},
        }
        for name, entry in statement.files.items()
    ]
    facts = {"number": statement.number, "signed": statement.signed, "previous": statement.previous}
    told = {"_type": STATEMENT, "subject": subjects, "predicateType": PREDICATE, "predicate": facts}
    payload = json.dumps(told).encode()
    signature = {"keyid": key_id(key.public_key()), "sig": _encoded(key.sign(_what_is_signed(payload)))}
    envelope = {"payloadType": PAYLOAD_TYPE, "payload": _encoded(payload), "signatures": [signature]}
    return json.dumps(envelope, indent=1).encode()


def unseal(content: bytes, keys: Mapping[str, Ed25519PublicKey]) -> tuple[Statement, str]:
    """Return the statement in a signature's file, and the id of the key that signed it.

    Args:
        content: The file's.
        keys: Those that are trusted, by id.

    Raises:
        DataError: if it is no signature, no trusted key made it, or it was altered.
    """
    try:
        envelope = parse_json(content)
        kind, payload = envelope["payloadType"], base64.b64decode(envelope["payload"], validate=True)
        signatures = {one["keyid"]: base64.b64decode(one["sig"], validate=True) for one in envelope["signatures"]}
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise DataError("is not a signature (a DSSE envelope)") from error
    if kind != PAYLOAD_TYPE:
        raise DataError(f"signs {kind!r:.60}, not a statement about files")
    known = [name for name in signatures if name in keys]
    if not known:
        raise DataError(f"is by the key {', '.join(map(str, signatures))[:64]}, which is not trusted here")
    name = known[0]
    if not holds(keys, name, signatures[name], _what_is_signed(payload)):
        raise DataError(f"was altered: the signature of the key {name} does not hold")
    return _statement(payload), name


def _statement(payload: bytes) -> Statement:
    try:
        told = parse_json(payload)
        if (told["_type"], told["predicateType"]) != (STATEMENT, PREDICATE):
            raise ValueError("of another kind")
        files = {
            str(one["name"]): {"sha256": str(one["digest"]["sha256"]), **dict(one.get("annotations", {}))}
            for one in told["subject"]
        }
        facts: dict[str, Any] = told["predicate"]
        previous = facts["previous"]
        return Statement(files, int(facts["number"]), str(facts["signed"]), None if previous is None else str(previous))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError("signs a statement that this program cannot read; use the version that wrote it") from error


def _what_is_signed(payload: bytes) -> bytes:
    """Return DSSE's pre-authentication encoding of the payload."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
