"""Keys and permissions for SROS2: signed by their authority, and each topic of the arm has its writers only."""

import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest
from cryptography import x509

from ros_nodes.bringup.keystore import MEASURED, WRITERS, main
from ros_nodes.bringup.table import NodeSpec
from ros_nodes.interface.topics import TOPICS


@pytest.fixture(scope="module")
def keystore(tmp_path_factory):
    out = tmp_path_factory.mktemp("keys") / "keystore"
    assert main(["--out", str(out), "--namespace", "cell", "--also", "/controller_manager"]) == 0
    return out


def certificate(path):
    return x509.load_pem_x509_certificate(path.read_bytes())


def may_write(keystore, enclave, topic):
    """Whether the permissions allow it: the first rule that names the topic counts."""
    tree = ElementTree.parse(keystore / "enclaves" / enclave.strip("/") / "permissions.xml")
    for rule in tree.find("permissions/grant"):
        names = [one.text for one in rule.findall("publish/topics/topic")]
        if f"rt{topic}" in names or "*" in names:
            return rule.tag == "allow_rule"
    return False


def test_each_node_has_a_certificate_of_its_own_name_from_the_authority(keystore):
    authority = certificate(keystore / "public/ca.cert.pem")
    folders = [path.parent for path in keystore.glob("enclaves/**/cert.pem")]
    assert len(folders) > 10
    for folder in folders:
        cert = certificate(folder / "cert.pem")
        cert.verify_directly_issued_by(authority)
        assert cert.subject.rfc4514_string() == f"CN=/{folder.relative_to(keystore / 'enclaves')}"
        assert (folder / "key.pem").stat().st_mode & 0o077 == 0
    assert (keystore / "private").stat().st_mode & 0o077 == 0


def test_only_the_writers_of_a_topic_may_write_it(keystore):
    every = WRITERS | dict.fromkeys(MEASURED, ("robot_node", "sim_node"))
    assert {topic.name for topic in TOPICS} >= set(every)
    nodes = [path.parent.name for path in keystore.glob("enclaves/cell/*/cert.pem")]
    for topic, writers in every.items():
        allowed = {node for node in nodes if may_write(keystore, f"/cell/{node}", f"/cell/{topic}")}
        assert allowed == set(writers), topic
    assert not may_write(keystore, "/controller_manager", "/cell/safe_command")
    assert [node for node in nodes if may_write(keystore, f"/cell/{node}", "/target_pose")] == ["robot_node"]
    assert may_write(keystore, "/cell/teleop_node", "/cell/intervention")


def test_each_of_several_arms_has_its_own_driver_which_may_not_write_the_others_topics(tmp_path, capsys):
    out, arms = tmp_path / "keystore", ["--arms", "left", "right"]
    assert main(["--out", str(tmp_path / "simulated"), *arms]) == 0
    assert main(["--out", str(out), "--namespace", "cell", *arms, "--target", "/goal"]) == 2
    assert "--target names 1 topics, and there are 2 arms; name that of each, in their order" in capsys.readouterr().err
    assert main(["--out", str(out), "--arms", "left", "left"]) == 2
    assert "--arms names left twice; each arm has its own" in capsys.readouterr().err
    assert main(["--out", str(out), *arms, "--target", "/goal", "/goal"]) == 2
    assert "--target names /goal twice" in capsys.readouterr().err
    assert main(["--out", str(out), "--namespace", "cell", *arms, "--target", "/left_arm/goal", "/right_arm/goal"]) == 0
    enclaves = [f"/{path.parent.relative_to(out / 'enclaves')}" for path in out.glob("enclaves/**/cert.pem")]
    assert "/cell/robot_node" not in enclaves

    def writers(topic):
        return {enclave for enclave in enclaves if may_write(out, enclave, topic)}

    for arm in ("left", "right"):
        driver = f"/cell/{arm}/robot_node"
        assert writers(f"/{arm}_arm/goal") == {driver}
        for topic in MEASURED:
            assert writers(f"/cell/{arm}/{topic}") == {driver, "/cell/sim_node"}
    assert writers("/cell/safe_command") == {"/cell/safety_node"}


@pytest.mark.parametrize("name", ["permissions.p7s", "governance.p7s"])
def test_signatures_hold_and_break_with_the_text(keystore, tmp_path, name):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: nothing else here verifies S/MIME")
    signed = keystore / "enclaves/cell/safety_node" / name
    changed = tmp_path / name
    changed.write_bytes(re.sub(rb"(<id_range>.*?<min>)0", rb"\g<1>7", signed.read_bytes(), flags=re.DOTALL))
    assert changed.read_bytes() != signed.read_bytes()
    verify = ["openssl", "smime", "-verify", "-text", "-CAfile", str(keystore / "public/ca.cert.pem"), "-in"]
    assert subprocess.run([*verify, str(signed)], capture_output=True, check=False).returncode == 0
    assert subprocess.run([*verify, str(changed)], capture_output=True, check=False).returncode != 0


def test_keys_are_not_replaced_and_enclaves_have_full_names(keystore, tmp_path, capsys):
    assert main(["--out", str(keystore)]) == 2
    assert "keys are not replaced" in capsys.readouterr().err
    assert main(["--out", str(tmp_path / "new"), "--also", "camera"]) == 2
    assert "begins with a slash, e.g. /camera" in capsys.readouterr().err


def test_nodes_start_in_their_enclaves_where_security_is_on():
    spec = NodeSpec("safety", "safety_node")
    assert "--enclave" not in spec.command("cell")
    command = spec.command("cell", secured=True)
    assert command[command.index("--enclave") + 1] == "/cell/safety_node"
    assert spec.command("", secured=True)[-1] == "/safety_node"
