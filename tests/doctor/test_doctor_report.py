"""The report: no credentials, escaped, the worst first; and the command as users call it."""

import json
import subprocess
import sys
from pathlib import Path

from packages import install_package

from robot_rl.doctor import examine
from robot_rl.doctor.contract.result import CheckResult, percentile, without_credentials
from robot_rl.doctor.report import conclusion, html_page, summary, text_lines

RESULTS = [
    CheckResult("a disk", "ok", "fast"),
    CheckResult("a <camera>", "note", "rtsp://me:secret1@cam/1 is <b>slow</b>", 3.0, "Hz", "at least 10 Hz", "x && y"),
    CheckResult("a trip", "ok", "short", histogram=(("0 to 1 ms", 3), ("1 to 2 ms", 0), ("over 2 ms", 1))),
    CheckResult("an arm", "fault", "desk_password=secret2 is wrong", cure="API_KEY: secret3\x1b[31m"),
]


def test_faults_come_first_with_their_cure():
    lines = text_lines(RESULTS)
    assert lines[0].startswith("fault  an arm") and lines[1].strip().startswith("cure:")
    assert lines[2].startswith("note") and "       seen: 3 Hz" in lines
    assert lines[-1] == "1 fault, 1 note: cure the fault first"
    assert conclusion([]).startswith("no fault, 0 notes")


def test_no_report_has_credentials_or_control_characters():
    for text in ("\n".join(text_lines(RESULTS)), json.dumps(summary(RESULTS, "cell")), html_page(RESULTS, "cell")):
        assert "secret" not in text and "\x1b" not in text
        assert "***" in text
    assert without_credentials("token=abc, user=me") == "token=***, user=me"


def test_the_page_is_escaped_and_whole():
    page = html_page(RESULTS, "<script>")
    assert "<b>slow" not in page and "&lt;b&gt;slow" in page and "<script" not in page
    assert page.count("<section") == len(RESULTS) == page.count("</section>")
    assert "x &amp;&amp; y" in page and "width:33.3%" in page


def test_percentiles_are_nearest_ranks():
    values = list(range(1, 101))
    assert (percentile(values, 0.5), percentile(values, 0.99), percentile(values, 1.0)) == (50, 99, 100)
    assert percentile([7.0], 0.01) == 7.0


def test_the_command_answers_in_json_and_as_a_page(tmp_path):
    page = tmp_path / "new/page.html"  # in a folder that is not there yet
    command = [Path(sys.executable).with_name("robot-rl"), "doctor", "--json", "--html", page, "--folder", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    answer = json.loads(done.stdout)
    assert done.returncode == (1 if answer["faults"] else 0), done.stderr
    assert answer["faults"] + answer["notes"] + answer["ok"] == len(answer["results"]) > 10
    assert all(result["cure"] for result in answer["results"] if result["severity"] == "fault")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_other_packages_add_checks(monkeypatch, tmp_path):
    checks = {"humidity": f"{__name__}:check_humidity", "broken": "no_such_module:check"}
    install_package(tmp_path, "lab", {"robot_rl.checks": checks})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(examine.checks, "MACHINE_CHECKS", ())
    found = {result.name: result for result in examine.examine(examine.Machine())}
    assert found["humidity"].severity == "note"
    assert "no_such_module" in found["check broken"].text


def check_humidity(machine):
    yield CheckResult("humidity", "note", "it is damp", 80.0, "%", "at most 60 %", "open a window")
