"""What is plugged in is found by names that stay, without opening anything."""

from fake_machine import FakeMachine

from robot_rl.init.plugged_in import plugged_in


def test_ports_cameras_and_devices(tmp_path):
    fake = FakeMachine(tmp_path)
    fake.write("dev/ttyACM0")
    fake.link("dev/serial/by-id/usb-Servo_Board_01", "../../ttyACM0")
    fake.usb("2-1", "Intel RealSense D435I", "8086", 5000, ["0e"], bus=2)
    fake.write("sys/bus/usb/devices/2-1/serial", "012345678901\n")
    for number, name in enumerate(["Intel(R) RealSense D435I", "Webcam"]):
        fake.write(f"dev/video{number}")
        fake.write(f"sys/class/video4linux/video{number}/name", name)
        fake.write(f"sys/class/video4linux/video{number}/index", "0")
    fake.link("dev/v4l/by-id/usb-Webcam-video-index0", "../../video1")
    fake.write("dev/input/event3")
    fake.write("sys/class/input/event3/device/js0/dev")
    found = plugged_in(fake.machine)
    assert found.ports == ("/dev/serial/by-id/usb-Servo_Board_01",)
    assert found.cameras == (
        ("realsense:012345678901", "Intel RealSense D435I"),
        ("uvc:/dev/v4l/by-id/usb-Webcam-video-index0", "Webcam"),
    )
    assert found.devices == ("gamepad",)


def test_nothing_is_nothing(tmp_path):
    found = plugged_in(FakeMachine(tmp_path).machine)
    assert (found.ports, found.cameras, found.devices) == ((), (), ())
