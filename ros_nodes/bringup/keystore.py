"""Keys and permissions for SROS2 (DDS Security): a keystore in which each topic of an arm has its writers.

    python -m ros_nodes.bringup.keystore --out keystore --namespace cell

The layout is that of `ros2 security`: an enclave for each node, whose certificate names it and whose permissions are
signed. Participants without a certificate are not heard. Needs no ROS; needs the package cryptography.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.sax.saxutils import escape

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs7
from cryptography.x509.oid import NameOID

from robot_rl.config.nodes import NODE_CONFIGS
from robot_rl.errors import ConfigError, RobotRLError

WRITERS: Mapping[str, Sequence[str]] = {
    "safe_command": ("safety_node",),
    "safety/stopped": ("safety_node",),
    "command": ("actor_node", "calibrate_node"),
}
"""Topics that only some nodes may write; any node of the keystore may write the others, and read all."""
MEASURED = ("current_pose", "current_twist", "wrench", "joint_states", "tool_state")
"""Topics that only whoever drives the arm may write; each of several arms has them below its name."""
DRIVER, SIMULATION = "robot_node", "sim_node"
TARGET = "/target_pose"
"""Set-point of the controller of one arm."""
LIFETIME = timedelta(days=3650)
"""Of certificates and permissions."""
OVERLAP = timedelta(days=1)
"""How long before now they begin: the clocks of two machines may differ."""

_GOVERNANCE = """<?xml version="1.0" encoding="UTF-8"?>
<dds xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:noNamespaceSchemaLocation="http://www.omg.org/spec/DDS-SECURITY/20170901/omg_shared_ca_governance.xsd">
  <domain_access_rules>
    <domain_rule>
      <domains><id_range><min>0</min></id_range></domains>
      <allow_unauthenticated_participants>false</allow_unauthenticated_participants>
      <enable_join_access_control>true</enable_join_access_control>
      <discovery_protection_kind>ENCRYPT</discovery_protection_kind>
      <liveliness_protection_kind>ENCRYPT</liveliness_protection_kind>
      <rtps_protection_kind>SIGN</rtps_protection_kind>
      <topic_access_rules>
        <topic_rule>
          <topic_expression>*</topic_expression>
          <enable_discovery_protection>true</enable_discovery_protection>
          <enable_liveliness_protection>true</enable_liveliness_protection>
          <enable_read_access_control>true</enable_read_access_control>
          <enable_write_access_control>true</enable_write_access_control>
          <metadata_protection_kind>SIGN</metadata_protection_kind>
          <data_protection_kind>NONE</data_protection_kind>
        </topic_rule>
      </topic_access_rules>
    </domain_rule>
  </domain_access_rules>
</dds>
"""
_DOMAINS = "<domains><id_range><min>0</min></id_range></domains>"


class Authority:
    """A certificate authority that is made with the keystore, and signs for its nodes."""

    def __init__(self, name: str, now: datetime) -> None:
        self._now = now
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = _name(name)
        constraint = x509.BasicConstraints(ca=True, path_length=1)
        unsigned = self._unsigned(self.name, self.key).add_extension(constraint, critical=True)
        self.certificate = unsigned.sign(self.key, hashes.SHA256())

    def issue(self, name: str, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
        """Return a certificate that this key belongs to a node."""
        constraint = x509.BasicConstraints(ca=False, path_length=None)
        return self._unsigned(_name(name), key).add_extension(constraint, critical=True).sign(self.key, hashes.SHA256())

    def sign(self, text: str) -> bytes:
        """Return the text with a signature, as S/MIME, which is what DDS Security reads."""
        options = [pkcs7.PKCS7Options.Text, pkcs7.PKCS7Options.DetachedSignature]
        builder = pkcs7.PKCS7SignatureBuilder().set_data(text.encode())
        return builder.add_signer(self.certificate, self.key, hashes.SHA256()).sign(
            serialization.Encoding.SMIME, options
        )

    def _unsigned(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - OVERLAP)
            .not_valid_after(self._now + LIFETIME)
        )


def permissions(enclave: str, denied: Sequence[str], now: datetime) -> str:
    """Return the permissions of an enclave: it may write and read everything, but not write some topics.

    Args:
        enclave: Its name, e.g. `/cell/safety_node`.
        denied: Full names of topics.
        now: When they begin.
    """
    topics = "".join(f"<topic>rt{escape(name)}</topic>" for name in denied)
    deny = f"<deny_rule>{_DOMAINS}<publish><topics>{topics}</topics></publish></deny_rule>" if denied else ""
    every = "<topics><topic>*</topic></topics>"
    begin, end = (time.strftime("%Y-%m-%dT%H:%M:%S") for time in (now - OVERLAP, now + LIFETIME))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<dds xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        'xsi:noNamespaceSchemaLocation="http://www.omg.org/spec/DDS-SECURITY/20170901/omg_shared_ca_permissions.xsd">'
        f'<permissions><grant name="{escape(enclave)}"><subject_name>CN={escape(enclave)}</subject_name>'
        f"<validity><not_before>{begin}</not_before><not_after>{end}</not_after></validity>{deny}"
        f"<allow_rule>{_DOMAINS}<publish>{every}</publish><subscribe>{every}</subscribe></allow_rule>"
        "<default>DENY</default></grant></permissions></dds>\n"
    )


def make_keystore(
    out: Path,
    namespace: str = "",
    targets: Sequence[str] | None = None,
    others: Sequence[str] = (),
    arms: Sequence[str] = (),
) -> None:
    """Make a keystore for all our nodes.

    Args:
        out: Its directory, which does not exist yet.
        namespace: Of the nodes.
        targets: The set-point of the controller, which only `robot_node` may write; of several arms, that of each.
            None: `/target_pose`, of several arms none.
        others: Names of more enclaves, e.g. `/controller_manager`, for the controller and drivers of devices.
        arms: Names of several arms, each of which has a `robot_node` in a namespace of its own; none: there is one.

    Raises:
        ConfigError: if the directory exists, the name of an enclave does not begin with a slash, or the number of
            targets is not that of the arms.
    """
    if out.exists():
        raise ConfigError(f"--out {out} exists; keys are not replaced: name another directory, or move this one away")
    for name in others:
        if not name.startswith("/"):
            raise ConfigError(f"--also {name}: the name of an enclave begins with a slash, e.g. /{name}")
    targets = ([] if arms else [TARGET]) if targets is None else targets
    for option, names in (("--arms", arms), ("--target", targets)):
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigError(f"{option} names {', '.join(twice)} twice; each arm has its own")
    if targets and len(targets) != (len(arms) or 1):
        count = f"{len(targets)} topics, and there are {len(arms) or 1} arms"
        raise ConfigError(f"--target names {count}; name that of each, in their order")
    place = f"/{namespace.strip('/')}".rstrip("/")
    writers = {f"{place}/{topic}": [f"{place}/{node}" for node in nodes] for topic, nodes in WRITERS.items()}
    places = [f"{place}/{arm}" for arm in arms] or [place]
    drivers = [f"{own}/{DRIVER}" for own in places]
    for own, driver in zip(places, drivers, strict=True):
        writers |= {f"{own}/{topic}": [driver, f"{place}/{SIMULATION}"] for topic in MEASURED}
    writers |= {target: [driver] for target, driver in zip(targets, drivers, strict=False)}  # a simulation has none
    now = datetime.now(UTC)
    authority = Authority("robot_rl", now)
    private = out / "private"
    private.mkdir(parents=True, mode=0o700)
    _write_key(private / "ca.key.pem", authority.key)
    ours = authority.certificate.public_bytes(serialization.Encoding.PEM)
    (out / "public").mkdir()
    (out / "public" / "ca.cert.pem").write_bytes(ours)
    governance = authority.sign(_GOVERNANCE)
    nodes = [f"{place}/{node}" for node in NODE_CONFIGS if node != DRIVER]
    for enclave in [*nodes, *drivers, *others]:
        folder = out / "enclaves" / enclave.strip("/")
        folder.mkdir(parents=True)
        key = ec.generate_private_key(ec.SECP256R1())
        _write_key(folder / "key.pem", key)
        (folder / "cert.pem").write_bytes(authority.issue(enclave, key).public_bytes(serialization.Encoding.PEM))
        (folder / "identity_ca.cert.pem").write_bytes(ours)
        (folder / "permissions_ca.cert.pem").write_bytes(ours)
        (folder / "governance.p7s").write_bytes(governance)
        text = permissions(enclave, [topic for topic, nodes in writers.items() if enclave not in nodes], now)
        (folder / "permissions.xml").write_text(text, encoding="utf-8")
        (folder / "permissions.p7s").write_bytes(authority.sign(text))


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Make a keystore as the arguments request; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m ros_nodes.bringup.keystore", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory of the keystore, a new one")
    parser.add_argument("--namespace", default="", metavar="X", help="namespace of the nodes")
    parser.add_argument("--arms", nargs="*", default=[], metavar="X", help="names of the arms of a task of several")
    parser.add_argument(
        "--target",
        nargs="+",
        metavar="X",
        help="topic of the set-point of the controller of each arm",
    )
    parser.add_argument("--also", nargs="*", default=[], metavar="X", help="more enclaves, e.g. /controller_manager")
    arguments = parser.parse_args(argv)
    try:
        make_keystore(arguments.out, arguments.namespace, arguments.target, arguments.also, arguments.arms)
    except RobotRLError as error:
        print(f"robot-rl: {error}", file=sys.stderr)
        return 2
    print(f"export ROS_SECURITY_KEYSTORE={arguments.out.resolve()} ROS_SECURITY_ENABLE=true", end=" ")
    print("ROS_SECURITY_STRATEGY=Enforce")
    return 0


if __name__ == "__main__":
    sys.exit(main())
