"""How late and how regular frames of a network camera are: RTSP by OpenCV's FFMPEG and by GStreamer.

    /usr/bin/python3 benchmarks/network_camera.py serve &          # prints its address; needs the packages below
    python benchmarks/network_camera.py read rtsp://127.0.0.1:8554/camera [--seconds 20]
    python benchmarks/network_camera.py read 'gstreamer:rtspsrc location=rtsp://127.0.0.1:8554/camera latency=0 !
        decodebin ! videoconvert ! video/x-raw,format=BGR ! appsink drop=true max-buffers=1'

`serve` is a camera: pictures of 640 x 480 px, 30 a second, in H.264, whose stripes tell when they were made. `read`
opens it as a robot file does, and prints by how much later the frames arrive, and their intervals (p50, p99, largest).
The server needs GStreamer, on Debian: apt-get install gir1.2-gst-rtsp-server-1.0 python3-gi python3-numpy
gstreamer1.0-plugins-good gstreamer1.0-plugins-ugly. A `gstreamer:` camera also needs Debian's python3-opencv.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import numpy as np

WIDTH, HEIGHT, RATE, PORT = 640, 480, 30, 8554
BITS = 32
"""Stripes in a picture: the time since the epoch modulo 2^32 ms."""


def picture() -> np.ndarray:
    """Return a picture that tells the time, uint8 (HEIGHT, WIDTH, 3)."""
    now = int(time.time() * 1e3) % 2**BITS
    stripes = np.array([(now >> bit) & 1 for bit in range(BITS)], np.uint8) * 200 + 20
    return np.broadcast_to(stripes.repeat(WIDTH // BITS)[None, :, None], (HEIGHT, WIDTH, 3)).copy()


def age(image: np.ndarray) -> float:
    """Return how old a picture is [ms]."""
    bright = image[HEIGHT // 2 - 8 : HEIGHT // 2 + 8].mean(axis=(0, 2)).reshape(BITS, -1).mean(axis=1) > 120
    made = sum(int(on) << bit for bit, on in enumerate(bright))
    return (time.time() * 1e3 - made) % 2**BITS


def serve() -> None:
    """Be a camera until Ctrl-C."""
    import gi

    gi.require_version("Gst", "1.0")
    gi.require_version("GstRtspServer", "1.0")
    from gi.repository import GLib, Gst, GstRtspServer

    Gst.init(None)

    class Camera(GstRtspServer.RTSPMediaFactory):  # type: ignore[misc]
        def do_create_element(self, url: object) -> Any:
            caps = f"video/x-raw,format=BGR,width={WIDTH},height={HEIGHT},framerate={RATE}/1"
            return Gst.parse_launch(
                f"appsrc name=source is-live=true do-timestamp=true format=time caps={caps} ! videoconvert ! "
                "video/x-raw,format=I420 ! x264enc tune=zerolatency speed-preset=ultrafast key-int-max=30 ! "
                "rtph264pay name=pay0 pt=96"
            )

        def do_configure(self, media: Any) -> None:
            source = media.get_element().get_child_by_name("source")

            def push() -> bool:
                buffer = Gst.Buffer.new_wrapped(picture().tobytes())
                return bool(source.emit("push-buffer", buffer) == Gst.FlowReturn.OK)

            GLib.timeout_add(1000 // RATE, push)

    server, camera = GstRtspServer.RTSPServer(address="127.0.0.1", service=str(PORT)), Camera()
    camera.set_shared(True)
    server.get_mount_points().add_factory("/camera", camera)
    server.attach(None)
    print(f"rtsp://127.0.0.1:{PORT}/camera", flush=True)
    GLib.MainLoop().run()


def read(source: str, seconds: float) -> None:
    """Open a camera as a robot file does, and print how late its frames are."""
    from robot_rl.camera.source import CaptureFormat
    from robot_rl.camera.stream import make_gstreamer, make_rtsp

    kind, _, which = source.partition(":")
    make = {"rtsp": make_rtsp, "gstreamer": make_gstreamer}[kind]
    began = time.monotonic()
    stream = make(which, CaptureFormat(WIDTH, HEIGHT, RATE))()
    opened = time.monotonic() - began
    for _ in range(RATE):
        stream.read()
    ages, stamps, end = [], [], time.monotonic() + seconds
    while time.monotonic() < end:
        frame = stream.read()
        ages.append(age(frame.image))
        stamps.append(frame.stamp)
    stream.close()
    late, interval = (
        np.percentile(values, (50, 99, 100)).round(1).tolist() for values in (ages, 1e-6 * np.diff(stamps))
    )
    figures = {"opened_s": round(opened, 2), "frames": len(ages), "late_ms": late, "interval_ms": interval}
    print(json.dumps({"source": source.split(" ")[0]} | figures))


def main() -> None:
    """Be the camera, or read it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["serve", "read"])
    parser.add_argument("source", nargs="?", default=f"rtsp://127.0.0.1:{PORT}/camera")
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    if arguments.what == "serve":
        sys.exit(serve())
    read(arguments.source, arguments.seconds)


if __name__ == "__main__":
    main()
