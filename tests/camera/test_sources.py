"""Names of cameras; and frames from folders and videos, which everybody has."""

import queue
import sys

import numpy as np
import pytest
from documents import ADD, Example
from PIL import Image

from robot_rl.camera.feed import CameraFeed
from robot_rl.camera.file import FileSource
from robot_rl.camera.open_source import opener
from robot_rl.camera.source import CaptureFormat
from robot_rl.clock import NS_PER_S, FakeClock
from robot_rl.data.formats.mp4 import Mp4Writer
from robot_rl.errors import CameraError, ConfigError, PluginError

WANTED = CaptureFormat(64, 48, 10.0)


def pictures(folder, numbers):
    folder.mkdir(exist_ok=True)
    for number in numbers:
        Image.fromarray(np.full((48, 64, 3), number, np.uint8)).save(folder / f"{number:03d}.png")


def shown(source, count):
    return [int(source.read().image[0, 0, 0]) for _ in range(count)]


def test_a_folder_is_shown_in_order_over_and_over_at_the_cameras_pace(tmp_path):
    pictures(tmp_path / "frames", (3, 1, 2))
    clock = FakeClock(5 * NS_PER_S)
    source = FileSource(str(tmp_path / "frames"), 10.0, clock)
    frames = [source.read() for _ in range(7)]
    assert [int(f.image[0, 0, 0]) for f in frames] == [1, 2, 3, 1, 2, 3, 1]
    assert [f.stamp - 5 * NS_PER_S for f in frames] == [(i + 1) * NS_PER_S // 10 for i in range(7)]


def test_what_is_added_to_a_folder_is_shown_the_next_time_round(tmp_path):
    pictures(tmp_path / "frames", (1, 2))
    source = FileSource(str(tmp_path / "frames"), 10.0, FakeClock())
    assert shown(source, 1) == [1]
    pictures(tmp_path / "frames", (5,))
    assert shown(source, 4) == [2, 1, 2, 5]


def test_a_video_is_shown_over_and_over(tmp_path):
    with Mp4Writer(tmp_path / "film.mp4", 10) as film:
        for level in (40, 120, 200):
            film.add(np.full((48, 64, 3), level, np.uint8))
    source = FileSource(str(tmp_path / "film.mp4"), 10.0, FakeClock())
    assert shown(source, 6) == pytest.approx([40, 120, 200] * 2, abs=6)
    source.close()


def test_what_cannot_be_shown_is_named(tmp_path):
    with pytest.raises(CameraError, match="no such video or folder"):
        FileSource(str(tmp_path / "nothing"), 10.0)
    with pytest.raises(CameraError, match="holds no pictures"):
        FileSource(str(tmp_path), 10.0)
    (tmp_path / "a.png").write_text("no picture")
    with pytest.raises(CameraError, match=r"a\.png: cannot be read as a picture"):
        FileSource(str(tmp_path), 10.0, FakeClock()).read()
    (tmp_path / "a.mp4").write_text("no video")
    with pytest.raises(CameraError, match=r"a\.mp4: cannot be read as a video"):
        FileSource(str(tmp_path / "a.mp4"), 10.0, FakeClock()).read()


@pytest.mark.parametrize("text", ["", "uvc", "uvc:", "file:", "webcam:0", "/dev/video0"])
def test_other_names_of_cameras_are_refused(text):
    with pytest.raises(ConfigError, match=r"no camera is called .*; valid: "):
        opener(text, WANTED)


def test_a_usb_camera_that_is_not_there_is_named_with_those_that_are():
    pytest.importorskip("cv2", reason="needs OpenCV: pip install 'robot_rl[cameras]'")
    with pytest.raises(CameraError, match=r"/dev/no-such-camera cannot be opened: unplugged.*here are: "):
        opener("uvc:/dev/no-such-camera", WANTED)()


@pytest.mark.parametrize(
    ("text", "module", "extra"), [("uvc:0", "cv2", "cameras"), ("realsense:", "pyrealsense2", "realsense")]
)
def test_a_package_that_is_missing_is_named_with_how_to_get_it(text, module, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)  # as Python itself marks what cannot be imported
    with pytest.raises(PluginError, match=rf"pip install 'robot_rl\[{extra}\]'"):
        opener(text, WANTED)


def test_a_realsense_that_is_not_there_is_named():
    pytest.importorskip("pyrealsense2", reason="needs pyrealsense2: pip install 'robot_rl[realsense]'")
    with pytest.raises(CameraError, match="RealSense 000 cannot be opened"):
        opener("realsense:000", WANTED)()


def test_the_camera_of_the_page_is_found_by_its_kind_and_keeps_a_feed_going(tmp_path, monkeypatch):
    Example.read(ADD / "camera.md").load("bar_camera", tmp_path, monkeypatch)
    frames, faults = queue.Queue(), []
    feed = CameraFeed("wrist", opener("bar:green", CaptureFormat(64, 48, 100.0)), frames.put, faults.append)
    feed.start()
    first, second = frames.get(timeout=20), frames.get(timeout=20)
    feed.close()
    assert (feed.serial, faults) == ("bar-green", [])
    assert first.image.shape == (48, 64, 3)
    assert first.image.dtype == np.uint8
    assert 0 < second.stamp - first.stamp < 20 * NS_PER_S
    assert [channel.max() for channel in np.moveaxis(first.image, -1, 0)] == [0, 255, 0]
    with pytest.raises(CameraError, match="valid: bar:red"):
        opener("bar:white", WANTED)()


def test_kinds_that_are_installed_are_named():
    with pytest.raises(
        ConfigError, match="installed kinds: file, gstreamer, http, https, pattern, realsense, rtsp, uvc"
    ):
        opener("webcam:0", WANTED)


def test_the_pattern_shows_when_a_frame_was_made():
    opened = opener("pattern:", CaptureFormat(128, 96, 100.0))()
    frames = [opened.read() for _ in range(5)]
    opened.close()
    for frame in frames:
        assert frame.image.shape == (96, 128, 3)
        line = np.flatnonzero((frame.image == 0).all(axis=(0, 2)))
        assert line[0] == frame.stamp % 1_000_000_000 * 128 // 1_000_000_000
    assert len({frame.stamp for frame in frames}) == 5


def test_the_pattern_has_no_name_of_its_own():
    with pytest.raises(ConfigError, match="nothing after the colon"):
        opener("pattern:bars", CaptureFormat(0, 0, 30.0))
