"""Reports of calibrations: complete, self-contained, safe with any name; a result is written only if it is good."""

import html
import re

import numpy as np
import pytest
from motions import motion, readings
from synthetic import FISHEYE, PINHOLE, random_rig, random_views

from calibration.arm.time_offset import calibrate_time_offset
from calibration.arm.wrench import calibrate_wrench
from calibration.camera.intrinsics import calibrate_intrinsics
from calibration.hand_eye.hand_eye import calibrate_hand_eye
from calibration.report.camera_reports import hand_eye_report, intrinsics_report
from calibration.report.motion_reports import time_offset_report, wrench_report
from calibration.report.report import CalibrationReport, bars, new_figure, write_result_and_report
from calibration.result import CameraIntrinsics, Quality, TimeOffset, load_result
from robot_rl.errors import RunDirectoryError

OFFSET = TimeOffset("fr3", "wrist", 0.03, 0.001)


def text_of(page):
    """The text of a page, without tags."""
    body = re.sub(r"<style>.*?</style>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", " ", body))


@pytest.mark.parametrize("good", [True, False])
def test_the_report_is_always_written_and_the_result_only_if_it_is_good(good, tmp_path):
    out, page = tmp_path / "delay.yaml", tmp_path / "delay.html"
    quality = Quality(good, "the verdict", {"sigma_ms": 1.25}, {"a.png": "is blurred"})
    lines = write_result_and_report(OFFSET, quality, CalibrationReport("Delay", quality), out, page)
    assert page.exists()
    assert out.exists() == good
    assert lines[0] == "the verdict"
    assert "left out: a.png: is blurred" in lines
    assert (f"result: {out}" in lines) == good
    assert any("no result was written" in line for line in lines) == (not good)
    assert f'class="verdict {"good" if good else "bad"}"' in page.read_text()
    for words in ("the verdict", "sigma_ms", "1.25", "a.png", "is blurred"):
        assert words in text_of(page)


def test_a_bad_result_leaves_the_good_one_of_before(tmp_path):
    out, page = tmp_path / "delay.yaml", tmp_path / "delay.html"
    for good in (True, False):
        quality = Quality(good, "v")
        write_result_and_report(OFFSET, quality, CalibrationReport("Delay", quality), out, page)
    assert load_result(out, TimeOffset)[0] == OFFSET
    assert 'class="verdict bad"' in page.read_text()


def test_names_from_files_cannot_change_the_page(tmp_path):
    evil = '<script>alert("1")</script>&amp;'
    quality = Quality(False, evil, {evil: 1.0}, {evil: evil})
    report = CalibrationReport(evil, quality, {evil: [(evil, "b"), (evil, "2.5")]}, {evil: new_figure()})
    report.write(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<script" not in page
    assert text_of(tmp_path / "page.html").count(evil) >= 7


def test_numbers_are_aligned_and_texts_are_not(tmp_path):
    report = CalibrationReport(
        "t", Quality(True, "v"), {"Table": [("name", "value"), ("fx", "610.2"), ("note", "n/a")]}
    )
    report.write(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert '<td class="number">610.2</td>' in page
    assert '<td class="">n/a</td>' in page


def test_a_report_that_cannot_be_written_is_an_error_of_ours(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirectoryError):
        CalibrationReport("t", Quality(True, "v")).write(tmp_path / "file" / "page.html")


@pytest.mark.parametrize("count", [1, 25, 26, 300])
def test_bars_have_as_many_names_as_there_is_room_for(count):
    axes = new_figure().subplots()
    bars(axes, [f"a long name of view {i}.png" for i in range(count)], np.ones(count), "error [px]", line=0.5)
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert 1 <= len(labels) <= 50
    assert all(len(label) <= 14 for label in labels)
    assert len(axes.patches) == count


# ------------------------------------------------------------------ the five kinds


def fits():
    intrinsics = {
        lens.model: calibrate_intrinsics(random_views(0, 10, lens), "wrist", lens.model) for lens in (PINHOLE, FISHEYE)
    }
    sightings, _ = random_rig(0, "eye_to_hand", 10)
    return {
        **{f"intrinsics {model}": (intrinsics_report, fit) for model, fit in intrinsics.items()},
        "hand-eye": (hand_eye_report, calibrate_hand_eye(PINHOLE, sightings, "eye_to_hand", "fr3")),
        "delay": (
            time_offset_report,
            calibrate_time_offset(*motion(0, "eye_in_hand", delay=0.02, rate=18.0, span=2.0)),
        ),
        "wrench": (wrench_report, calibrate_wrench(*readings(0), "fr3")),
    }


@pytest.fixture(scope="module")
def reports():
    return fits()


@pytest.mark.parametrize(
    "kind", ["intrinsics rational_polynomial", "intrinsics equidistant", "hand-eye", "delay", "wrench"]
)
def test_a_report_has_every_figure_and_needs_nothing_else(reports, kind, tmp_path):
    make, fit = reports[kind]
    make(fit).write(tmp_path / "page.html")
    page, text = (tmp_path / "page.html").read_text(), text_of(tmp_path / "page.html")
    assert fit.quality.verdict in text
    for name, value in fit.quality.figures.items():
        assert f"{name}" in text
        assert f"{value:.5g}" in text
    assert page.count("data:image/png;base64,") == len(make(fit).figures) > 0
    assert not re.search(r'(src|href)="(?!data:)', page), "a page that loads something is no document"


def test_the_tables_have_the_numbers_of_the_result(reports, tmp_path):
    make, fit = reports["intrinsics rational_polynomial"]
    make(fit).write(tmp_path / "lens.html")
    text = text_of(tmp_path / "lens.html")
    assert all(f"{value:.3f}" in text for value in fit.result.vector[:4])
    make, fit = reports["wrench"]
    make(fit).write(tmp_path / "tool.html")
    assert f"{fit.result.mass:.5f}" in text_of(tmp_path / "tool.html")
    make, fit = reports["hand-eye"]
    make(fit).write(tmp_path / "camera.html")
    text = text_of(tmp_path / "camera.html")
    assert all(f"{1e3 * x:.3f}" in text for x in fit.result.position)
    assert all(name in text for name in fit.closed_forms)
    assert isinstance(fit.given, CameraIntrinsics)
