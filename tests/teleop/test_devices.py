"""Every device through its own code: what it reads, that it rests, that it is lost and comes back."""

import os
import pty
import time
from dataclasses import replace

import numpy as np
import pytest
from documents import ADD, Example
from fakes import SPEC
from virtual_devices import RANGES, VirtualHid, VirtualPad

from robot_rl.clock import NS_PER_S, FakeClock
from robot_rl.errors import UnknownNameError
from robot_rl.geometry import Pose
from robot_rl.teleop.device import DeviceError, DeviceLostError, Reading
from robot_rl.teleop.gamepad import Gamepad, find_gamepads, open_gamepad
from robot_rl.teleop.keyboard import FIRST, REPEAT, TerminalKeyboard
from robot_rl.teleop.listing import KINDS, list_devices, open_devices
from robot_rl.teleop.mapping import CommandMapper, default_map
from robot_rl.teleop.pushed import PushedDevice
from robot_rl.teleop.spacemouse import SpaceMouse


def test_spacemouse_frames_scale_and_buttons():
    hid = VirtualHid()
    mouse = SpaceMouse(hid.connect)
    assert not mouse.read().axes.any()
    hid.move(translation=(0.5, -1.0, 2.0), rotation=(0.1, 0.2, -0.3))  # its own frame: y towards the person, z down
    np.testing.assert_allclose(mouse.read().axes, [0.5, 1.0, -1.0, 0.1, -0.2, 0.3], atol=2e-3)
    hid.press(0b10)
    assert mouse.read().buttons == (False, True)
    hid.reports.append(bytes([1]) + bytes(12))  # a newer one: all six in one report
    assert not mouse.read().axes.any()


def test_only_the_newest_of_many_reports_counts():
    hid = VirtualHid()
    mouse = SpaceMouse(hid.connect)
    for value in np.linspace(0, 1, 200):
        hid.move(translation=(value, 0, 0))
    assert mouse.read().axes[0] == pytest.approx(1.0)
    assert not hid.reports


def test_reports_of_other_kinds_and_short_ones_do_no_harm():
    hid = VirtualHid()
    mouse = SpaceMouse(hid.connect)
    for report in (b"\x17\x01", b"\x01\x02", b"\x03", b"\x02", bytes(64)):
        hid.reports.append(report)
    assert not mouse.read().axes.any()


def make_pad():
    pad = VirtualPad()
    return pad, Gamepad(pad.connect)


def make_mouse():
    hid = VirtualHid()
    return hid, SpaceMouse(hid.connect)


@pytest.mark.parametrize("make", [make_mouse, make_pad])
def test_a_device_that_is_unplugged_says_so_and_resumes_at_rest(make):
    hardware, device = make()
    if isinstance(hardware, VirtualHid):
        hardware.move(translation=(1, 0, 0))
    else:
        hardware.axis(0, 32767)
    assert device.read().axes[0] == pytest.approx(1.0)
    hardware.plugged = False
    for _ in range(3):
        with pytest.raises(DeviceLostError, match="unplugged"):
            device.read()
    hardware.plugged = True
    if isinstance(hardware, VirtualPad):
        hardware.axis(0, 0)
    assert abs(device.read().axes[0]) < 1e-4


@pytest.mark.parametrize("make", [make_mouse, make_pad])
def test_a_device_that_cannot_be_opened_says_the_cure(make):
    hardware, device = make()
    hardware.plugged = False
    with pytest.raises(DeviceError, match=r"cannot open .*: .*(udev|usermod)"):
        type(device)(hardware.connect)


def test_gamepad_sticks_triggers_and_buttons():
    pad, gamepad = make_pad()
    pad.axis(1, -32768)
    pad.axis(3, 16384)
    pad.axis(5, 200)
    pad.button(0x130, True)
    reading = gamepad.read()
    np.testing.assert_allclose(reading.axes, [0.0, -1.0, 0.5, 0.0], atol=1e-4)
    down = {name for name, pressed in zip(gamepad.buttons, reading.buttons, strict=True) if pressed}
    assert down == {"a", "right_trigger"}
    pad.button(0x130, False)
    pad.axis(5, 0)
    assert not any(gamepad.read().buttons)


def test_a_gamepad_that_is_held_already_when_it_is_opened_is_read_as_held():
    pad = VirtualPad()
    pad.values[0] = 32767
    assert Gamepad(pad.connect).read().axes[0] == pytest.approx(1.0)


def test_a_gamepad_shakes_if_it_has_a_motor_and_may_be_written_to():
    pad = VirtualPad()
    gamepad = Gamepad(pad.connect, upload=lambda stream: 3)
    gamepad.rumble()
    assert pad.written == [(0x15, 3, 1)]  # EV_FF, the uploaded effect, once
    pad.plugged = False
    gamepad.rumble()  # the next reading says that it is unplugged

    def refuse(stream):
        raise PermissionError(13, "Permission denied")

    for upload in (refuse, lambda stream: None):
        still = VirtualPad()
        Gamepad(still.connect, upload=upload).rumble()
        assert not still.written


@pytest.mark.skipif(not os.access("/dev/uinput", os.W_OK), reason="this kernel lets us make no input device (uinput)")
def test_a_gamepad_made_with_uinput():
    evdev = pytest.importorskip("evdev", reason="needs the package evdev")
    ranges = [(code, evdev.AbsInfo(0, low, high, 0, 0, 0)) for code, (low, high) in RANGES.items()]
    with evdev.UInput({evdev.ecodes.EV_ABS: ranges, evdev.ecodes.EV_KEY: [0x130]}, name="robot_rl test pad") as pad:
        time.sleep(0.5)
        found = [one for one in find_gamepads() if one.name == "robot_rl test pad"]
        gamepad = open_gamepad(found[0])
        pad.write(evdev.ecodes.EV_ABS, 0, 32767)
        pad.syn()
        time.sleep(0.1)
        assert gamepad.read().axes[0] == pytest.approx(1.0)
        gamepad.close()


@pytest.fixture
def terminal():
    person, process = pty.openpty()
    yield person, process
    os.close(person)
    os.close(process)


def test_terminal_keyboard(terminal):
    person, process = terminal
    clock = FakeClock()
    keyboard = TerminalKeyboard(process, clock)
    assert not keyboard.read().axes.any()
    os.write(person, b"wo")
    time.sleep(0.05)
    reading = keyboard.read()
    assert reading.axes.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert reading.buttons[keyboard.buttons.index("o")]
    clock.sleep_until(round((FIRST - 0.01) * NS_PER_S))
    os.write(person, b"w")  # the terminal repeats a key that is held
    time.sleep(0.05)
    assert keyboard.read().axes[0] == 1.0
    clock.sleep_until(clock.now() + round((REPEAT + 0.01) * NS_PER_S))
    assert not keyboard.read().axes.any()
    keyboard.close()
    keyboard.close()


def test_a_keyboard_needs_a_terminal():
    read, write = os.pipe()
    with pytest.raises(DeviceError, match="needs a terminal"):
        TerminalKeyboard(read)
    os.close(read)
    os.close(write)


def test_pushed_readings_age_and_wrong_ones_are_refused():
    clock = FakeClock()
    device = PushedDevice("joy", ("a", "b"), ("x",), max_age=0.2, clock=clock)
    assert not device.read().axes.any(), "nobody has pushed yet"
    device.push([0.5, -1.0], [True])
    clock.sleep_until(round(0.2 * NS_PER_S))
    assert device.read().axes.tolist() == [0.5, -1.0]
    clock.sleep_until(round(0.21 * NS_PER_S))
    with pytest.raises(DeviceLostError, match=r"0.21 s old, allowed is 0.20 s"):
        device.read()
    device.detach()
    assert not device.read().axes.any()
    for axes, buttons, message in (([0.0], [True], "1 axes"), ([0.0, 2.0], [True], "-1, 1"), ([0, np.nan], [0], "nan")):
        with pytest.raises(DeviceError, match=message):
            device.push(axes, buttons)


def test_what_is_plugged_in_is_listed_and_what_is_not_says_why():
    rows = list_devices()
    assert {row.kind for row in rows} == {*KINDS, "servo_leader", "so101_leader", "gello"}
    assert all(row.remark for row in rows)
    with pytest.raises(UnknownNameError, match=r"gamepad, .*keyboard, .*spacemouse"):
        open_devices(["joystick"])


@pytest.mark.skipif(any(row.ready for row in list_devices() if row.kind == "spacemouse"), reason="one is plugged in")
def test_a_kind_that_is_not_plugged_in_points_to_the_list():
    with pytest.raises(DeviceError, match=r"robot-rl devices|pip install"):
        open_devices(["spacemouse"])


def test_the_device_of_the_page_is_listed_opened_and_mapped_by_its_own_map(tmp_path, monkeypatch):
    Example.read(ADD / "device.md").load("circle_device", tmp_path, monkeypatch)
    assert ("circle", "Circle", True) in [row[:3] for row in list_devices()]
    (device,) = open_devices(["circle"])
    reading = device.read()
    assert (len(reading.axes), len(reading.buttons)) == (len(device.axes), len(device.buttons))
    assert abs(float(np.linalg.norm(reading.axes)) - 1.0) < 1e-9
    mapper = CommandMapper(default_map(device.kind), device, replace(SPEC, gripper=False))
    mapper.intent(reading, Pose.identity(), reading.stamp)
    action = mapper.intent(Reading(0, np.array([0.0, 1.0]), (False,)), Pose.identity(), reading.stamp + NS_PER_S).action
    assert np.argmax(np.abs(action)) == 0
    device.close()
    device.close()
    with pytest.raises(DeviceLostError):
        device.read()
