"""Cameras in the network, against a small server that sends MJPEG over HTTP as a camera does."""

import io
import itertools
import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from PIL import Image

from robot_rl.camera.feed import CameraFeed, FeedLimits
from robot_rl.camera.open_source import opener
from robot_rl.camera.source import CaptureFormat
from robot_rl.camera.stream import without_password
from robot_rl.errors import CameraError, ConfigError, PluginError

cv2 = pytest.importorskip("cv2", reason="needs OpenCV: pip install 'robot_rl[cameras]'")
OWN_SIZE = CaptureFormat(0, 0, 30.0)
LEVELS = (40, 90, 140, 190)


def jpeg(level):
    data = io.BytesIO()
    Image.fromarray(np.full((48, 64, 3), (level, 0, 200), np.uint8)).save(data, "JPEG", quality=95)
    return data.getvalue()


class Camera:
    """A camera with a page of MJPEG; it can hang up on whoever looks, and be switched off and on."""

    def __init__(self):
        self.frames = [jpeg(level) for level in LEVELS]
        self.hang_up, self.silent, self.port = threading.Event(), threading.Event(), 0
        self.on()

    def on(self):
        camera = self

        class Page(BaseHTTPRequestHandler):
            def do_GET(self):
                if self.path != "/mjpeg":
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
                self.end_headers()
                number = 0
                while not camera.hang_up.is_set():
                    if camera.silent.is_set():
                        time.sleep(0.02)
                        continue
                    data = camera.frames[number % len(camera.frames)]
                    head = f"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: {len(data)}\r\n\r\n"
                    try:
                        self.wfile.write(head.encode() + data + b"\r\n")
                    except OSError:
                        return
                    number += 1
                    time.sleep(0.02)

            def log_message(self, *_):
                pass

        self.hang_up.clear()
        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), Page)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def off(self):
        self.hang_up.set()
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/mjpeg"


@pytest.fixture
def camera():
    made = Camera()
    yield made
    made.off()


def test_frames_of_a_stream_are_rgb_in_order_and_stamped_on_arrival(camera):
    source = opener(camera.url, OWN_SIZE)()
    frames = [source.read() for _ in range(6)]
    source.close()
    assert frames[0].image.shape == (48, 64, 3)
    assert frames[0].image[0, 0, 2] == pytest.approx(200, abs=8), "the third channel is blue"
    shown = [min(range(4), key=lambda i: abs(LEVELS[i] - int(frame.image[0, 0, 0]))) for frame in frames]
    assert [(b - a) % 4 for a, b in itertools.pairwise(shown)] == [1] * 5
    assert all(a.stamp < b.stamp for a, b in itertools.pairwise(frames))
    assert abs(frames[-1].stamp - time.time_ns()) < 5e9


def test_a_stream_that_breaks_off_is_named_and_opened_again(camera):
    frames, faults = queue.Queue(), queue.Queue()
    limits = FeedLimits(retry=0.1, frozen_after=0.0)
    feed = CameraFeed("wrist", opener(camera.url, OWN_SIZE), frames.put, faults.put, limits)
    feed.start()
    try:
        frames.get(timeout=10.0)
        camera.off()
        assert faults.get(timeout=10.0).startswith(f"stream {camera.url} has ended, or gave no frame for 3 s")
        assert "cannot be opened; check that the camera is on" in faults.get(timeout=10.0)
        while not frames.empty():
            frames.get()
        camera.on()
        frames.get(timeout=10.0)
        assert feed.state().opened >= 2
    finally:
        feed.close()


def test_a_stream_that_falls_silent_is_an_error_and_no_wait_for_ever(camera):
    source = opener(camera.url, OWN_SIZE)()
    source.read()
    camera.silent.set()
    began = time.monotonic()
    with pytest.raises(CameraError, match="gave no frame for 3 s"):
        for _ in range(100):  # some are on the way
            source.read()
    assert time.monotonic() - began < 10.0
    source.close()


def test_what_is_no_stream_or_has_another_size_is_named(camera):
    with pytest.raises(CameraError, match="cannot be opened; check that the camera is on and its address, user"):
        opener(camera.url.replace("mjpeg", "nothing"), OWN_SIZE)()
    with pytest.raises(CameraError, match="gives frames of 64 x 48 px, not 640 x 480; set width and height to that"):
        opener(camera.url, CaptureFormat(640, 480, 30.0))()


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("rtsp:", "a stream needs a host, e.g. rtsp://"),
        ("http:/stream", "a stream needs a host, e.g. http://"),
        ("gstreamer:", "has to end in `! appsink`"),
        ("gstreamer:videotestsrc ! videoconvert", "has to end in `! appsink`"),
        ("gstreamer:rtspsrc location=rtsp://10.0.0.2/latency=0 ! appsink", "write `rtspsrc latency=0`"),
    ],
)
def test_an_address_that_cannot_be_one_is_refused_before_it_is_opened(text, cure):
    with pytest.raises(ConfigError) as raised:
        opener(text, OWN_SIZE)
    assert cure in str(raised.value) and "\n" not in str(raised.value)


def test_an_opencv_without_gstreamer_is_told_where_there_is_one():
    if cv2.videoio_registry.hasBackend(cv2.CAP_GSTREAMER):
        pytest.skip("this OpenCV has GStreamer")
    with pytest.raises(PluginError, match=r"is built without GStreamer: .*apt install python3-opencv"):
        opener("gstreamer:videotestsrc ! videoconvert ! appsink", OWN_SIZE)


def test_a_pipeline_of_gstreamer_gives_frames():
    if not cv2.videoio_registry.hasBackend(cv2.CAP_GSTREAMER):
        pytest.skip("this OpenCV is built without GStreamer, as those of PyPI are")
    source = opener("gstreamer:videotestsrc ! video/x-raw,width=64,height=48 ! videoconvert ! appsink", OWN_SIZE)()
    assert source.read().image.shape == (48, 64, 3)
    source.close()


def test_messages_show_no_password():
    assert without_password("rtsp://me:se/cret@10.0.0.2/s") == "rtsp://me:se/cret@10.0.0.2/s"  # no valid address
    assert without_password("rtsp://me:secret@10.0.0.2/s") == "rtsp://me:...@10.0.0.2/s"
    assert without_password("http://10.0.0.2/s") == "http://10.0.0.2/s"
