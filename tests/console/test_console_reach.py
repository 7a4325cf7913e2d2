"""How others come to the console: addresses that can be opened, a certificate of its own, a QR code."""

import asyncio
import datetime
import re
import ssl
import stat

import aiohttp
import cv2
import numpy as np
import pytest
from browser import job
from cryptography import x509
from pages import TOKEN, Rig, run
from running import robot_rl

from robot_rl.console.access.address import Address, ConsoleError
from robot_rl.console.access.networks import page_url, reachable_hosts
from robot_rl.console.access.tls import fingerprint, own_certificate
from robot_rl.console.introduction import PLAIN, WHITE_ON_BLACK, introduce, introduction, page_urls, qr_code
from robot_rl.console.server import Console


def opened(url, **options):
    """The start of the page at an address."""

    async def get():
        async with aiohttp.ClientSession() as session, session.get(url, **options) as answer:
            return answer.status, await answer.text()

    return asyncio.run(get())


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1", "::"])
def test_every_address_that_is_printed_can_be_opened(tmp_path, host):
    try:
        with Rig(tmp_path, f"[{host}]" if ":" in host else host, TOKEN) as rig:
            lines = introduction(rig.console, terminal=False).splitlines()
            urls = re.findall(r"http://\S+", " ".join(lines))
            assert lines[0] == f"operator console: {urls[0]}"
            assert urls
            for url in urls:
                assert "0.0.0.0" not in url
                assert "//[::]" not in url
                status, text = opened(url)
                assert (status, "<h1" in text) == (200, True)
    except ConsoleError as error:
        if host != "::":
            raise
        pytest.skip(f"no IPv6 here: {error}")


def test_hosts_that_are_named_stay_and_ipv6_is_put_in_brackets():
    assert reachable_hosts(Address("robot.lab:80")) == ["robot.lab"]
    assert page_url("fd00::2", 80, "https") == "https://[fd00::2]:80/"


@pytest.mark.parametrize(("host", "warns"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_plain_http_on_a_network_is_warned_of(tmp_path, caplog, host, warns):
    with Rig(tmp_path, host, TOKEN) as rig:
        introduce(rig.console)
    assert ("without TLS" in caplog.text) == warns
    assert ("--tls" in caplog.text) == warns
    assert TOKEN not in caplog.text


# ------------------------------------------------------------------- certificate


def test_a_certificate_is_kept_until_it_no_longer_fits(tmp_path):
    path = own_certificate(["192.0.2.7"], tmp_path / "state")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    first = fingerprint(path)
    assert re.fullmatch(r"([0-9A-F]{2}:){31}[0-9A-F]{2}", first)
    assert fingerprint(own_certificate(["192.0.2.7"], path.parent)) == first, "people accepted this one"
    again = own_certificate(["192.0.2.7", "robot.lab"], path.parent)
    assert fingerprint(again) != first
    kept = x509.load_pem_x509_certificate(again.read_bytes())
    names = kept.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"localhost", "robot.lab"} <= set(names.get_values_for_type(x509.DNSName))
    assert "192.0.2.7" in map(str, names.get_values_for_type(x509.IPAddress))
    left = kept.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    assert datetime.timedelta(days=700) < left < datetime.timedelta(days=825)
    assert fingerprint(own_certificate(["192.0.2.7"], path.parent)) == fingerprint(again), "hosts may take turns"
    other = own_certificate(["192.0.2.8"], path.parent)
    assert fingerprint(own_certificate(["robot.lab"], path.parent)) == fingerprint(other)
    again.write_text("no certificate")
    assert fingerprint(own_certificate(["robot.lab"], path.parent))


def test_a_certificate_that_cannot_be_kept_is_told_with_the_cure(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConsoleError, match=r"cannot keep the console's certificate in .*--tls CERT KEY"):
        own_certificate([], tmp_path / "file")
    with pytest.raises(ConsoleError, match="has no certificate"):
        fingerprint(tmp_path / "file")


def test_the_fingerprint_that_is_printed_is_that_of_what_is_served(tmp_path, caplog):
    kept = own_certificate(["127.0.0.1"], tmp_path)

    async def test():
        pin = aiohttp.Fingerprint(bytes.fromhex(rig.console.tls.fingerprint.replace(":", "")))
        async with aiohttp.ClientSession() as session:
            async with session.get(f"https://127.0.0.1:{rig.port}/", ssl=pin) as answer:
                assert answer.status == 200
            other = aiohttp.Fingerprint(bytes(32))
            with pytest.raises(aiohttp.ServerFingerprintMismatch):
                await session.get(f"https://127.0.0.1:{rig.port}/", ssl=other)
        trust = ssl.create_default_context(cafile=kept)
        url = f"https://127.0.0.1:{rig.port}/"
        async with aiohttp.ClientSession() as session, session.get(url, ssl=trust) as answer:
            assert answer.status == 200, "it names the host, for who installs it"

    with Rig(tmp_path, "0.0.0.0", TOKEN, certificate=(kept, kept)) as rig:
        assert rig.console.tls.fingerprint in introduction(rig.console, terminal=False)
        introduce(rig.console)
        assert "without TLS" not in caplog.text
        run(test)


# ------------------------------------------------------------------------ QR code


def picture(lines):
    """Half blocks of a terminal as an image, 8 px a module."""
    halves = {" ": (0, 0), "\u2580": (1, 0), "\u2584": (0, 1), "\u2588": (1, 1)}
    rows = [row for line in lines for row in zip(*(halves[block] for block in line), strict=True)]
    return np.kron(255 * np.array(rows, np.uint8), np.ones((8, 8), np.uint8))


@pytest.mark.parametrize("url", ["http://192.0.2.2:8480/", f"https://[fd00::2]:8480/#token={'x' * 32}"])
def test_a_telephone_reads_the_address(url):
    lines = [line.removeprefix(WHITE_ON_BLACK).removesuffix(PLAIN) for line in qr_code(url).splitlines()]
    assert max(map(len, lines)) <= 60, "it fits a terminal"
    assert cv2.QRCodeDetector().detectAndDecode(picture(lines))[0] == url


def test_a_qr_code_is_for_terminals_and_for_others(tmp_path):
    with Rig(tmp_path, "0.0.0.0", TOKEN) as rig:
        assert qr_code(page_urls(rig.console)[0]) in introduction(rig.console, terminal=True)
        assert "\x1b" not in introduction(rig.console, terminal=False)
    with Console(Address("127.0.0.1:0"), rig.supervision, rig.board, print) as local:
        assert "\x1b" not in introduction(local, terminal=True)


# ------------------------------------------------------------------- command line


@pytest.mark.slow
def test_tls_is_one_flag(tmp_path):
    flags = ("demo", "reach", "--out", tmp_path / "demos", "--console", "0.0.0.0:0", "--tls")
    with job(*flags) as (process, url):
        assert url.startswith("https://")
        assert "0.0.0.0" not in url
        told = next(line for line in process.stderr if "fingerprint" in line)
        pin = aiohttp.Fingerprint(bytes.fromhex(told.split()[-1].replace(":", "")))
        assert opened(url, ssl=pin)[0] == 200


@pytest.mark.parametrize("files", [["one"], ["one", "two", "three"]])
def test_tls_takes_no_file_or_two(files):
    done = robot_rl("demo", "reach", "--console", "--tls", *files)
    assert done.returncode == 2
    assert "--tls: takes no file, or a certificate and its key, got 'one" in done.stderr


def test_tls_without_a_console_is_refused():
    done = robot_rl("demo", "reach", "--out", "x", "--tls")
    assert (done.returncode, "--tls needs --console" in done.stderr) == (2, True)
