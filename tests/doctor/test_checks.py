"""Each check of the machine, on a machine that is made of files."""

import socket
import threading

import pytest
from fake_machine import FakeMachine

from robot_rl.doctor.checks.can import check_can
from robot_rl.doctor.checks.clock_sync import check_clock_sync, kernel_clock
from robot_rl.doctor.checks.dds import check_dds
from robot_rl.doctor.checks.device_nodes import check_device_nodes
from robot_rl.doctor.checks.disk import check_disk
from robot_rl.doctor.checks.graphics import check_graphics
from robot_rl.doctor.checks.holders import check_holders
from robot_rl.doctor.checks.network import check_network, judge_round_trips, route_card, split_host
from robot_rl.doctor.checks.packages import check_packages
from robot_rl.doctor.checks.processor import check_processor
from robot_rl.doctor.checks.realtime import check_realtime
from robot_rl.doctor.checks.serial_ports import check_serial_ports
from robot_rl.doctor.checks.shared_memory import check_shared_memory
from robot_rl.doctor.checks.usb import check_usb
from robot_rl.doctor.checks.wake_up import check_wake_up
from robot_rl.doctor.contract.machine import Machine

LIMITS = (
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max realtime priority     {priority:<20} 99\n"
    "Max locked memory         {memory:<20} unlimited            bytes\n"
)


@pytest.fixture
def fake(tmp_path):
    return FakeMachine(tmp_path)


def found(check, fake, **arguments):
    """What a check finds, by name."""
    results = list(check(fake.machine, **arguments))
    assert len({result.name for result in results}) == len(results)
    for result in results:
        assert result.severity == "ok" or result.cure or "not reported" in result.text, result
    return {result.name: result for result in results}


# ---------------------------------------------------------------- kernel and processor


def test_a_kernel_without_real_time_and_a_user_without_rights(fake):
    fake.files(**{"proc/version": "Linux version 6.1.0 (gcc)", "etc/os-release": 'NAME="x"\nID=ubuntu\n'})
    fake.write("proc/self/limits", LIMITS.format(priority="0", memory="8388608"))
    fake.write("proc/self/status", "CapEff:\t0000000000000000\n")
    results = found(check_realtime, fake)
    assert results["real-time kernel"].severity == "note" and "pro enable" in results["real-time kernel"].cure
    rights = results["real-time rights"]
    assert (rights.severity, rights.value) == ("note", 0.0) and "8 MiB" in rights.text


@pytest.mark.parametrize(
    ("limits", "status"),
    [
        (LIMITS.format(priority="99", memory="unlimited"), "CapEff:\t0000000000000000\n"),
        (LIMITS.format(priority="0", memory="65536"), "CapEff:\t0000000000800000\n"),
    ],
)
def test_a_real_time_kernel_and_a_user_with_rights(fake, limits, status):
    fake.files(**{"sys/kernel/realtime": "1\n", "proc/self/limits": limits, "proc/self/status": status})
    assert {result.severity for result in found(check_realtime, fake).values()} == {"ok"}


def test_limits_that_are_not_reported_are_no_praise(fake):
    assert found(check_realtime, fake)["real-time rights"].severity == "note"


@pytest.mark.parametrize(("late", "severity"), [(0.0005, "ok"), (0.01, "note"), (0.05, "fault")])
def test_lateness_is_that_of_the_clock(fake, late, severity):
    time = [0]

    def sleep(seconds):
        time[0] += round(1e9 * (seconds + late))

    (result,) = found(check_wake_up, fake, sleep=sleep, now=lambda: time[0]).values()
    assert (result.severity, result.value) == (severity, pytest.approx(1e3 * late, abs=1e-3))


def test_governor_and_load(fake):
    for core, governor in enumerate(["performance", "powersave"]):
        fake.write(f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor", governor)
    fake.write("proc/loadavg", "3.5 2 1 1/100 4\n")
    results = found(check_processor, fake)
    assert results["CPU governor"].severity == "note" and "1 cores with 'powersave'" in results["CPU governor"].text
    assert results["CPU load"].severity == "note" and results["CPU load"].value == 3.5


# ---------------------------------------------------------------- network


def test_a_real_connection_is_measured(fake):
    with socket.create_server(("127.0.0.1", 0)) as server:
        ends = []
        thread = threading.Thread(target=lambda: ends.append(server.accept()), daemon=True)
        thread.start()
        port = server.getsockname()[1]
        machine = Machine(proc=fake.machine.proc, sys=fake.machine.sys, host=f"127.0.0.1:{port}", probe_seconds=0.3)
        results = {result.name: result for result in check_network(machine)}
    trip = results["network round trip"]
    assert 0 < trip.value < 500 and sum(count for _, count in trip.histogram) >= 2
    assert results["network loss"].value == 0.0
    assert results["network route"].text.startswith("lo leads to 127.0.0.1")


def test_a_port_where_nobody_listens_answers_too():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    results = {r.name: r for r in check_network(Machine(host=f"127.0.0.1:{port}", probe_seconds=0.1))}
    assert results["network loss"].severity == "ok"


def test_a_robot_that_is_not_there_is_a_fault():
    (result,) = judge_round_trips("172.16.0.2", [None] * 5)
    assert result.severity == "fault" and "172.16.0.2" in result.text and result.cure == "ping 172.16.0.2"


@pytest.mark.parametrize(
    ("trips", "trip", "loss"),
    [
        ([0.0003] * 100, "ok", "ok"),
        ([0.0003] * 90 + [0.005] * 10, "note", "ok"),
        ([0.0003] * 90 + [0.08] * 10, "fault", "ok"),
        ([0.0003] * 199 + [None], "ok", "note"),
        ([0.0003] * 90 + [None] * 10, "ok", "fault"),
    ],
)
def test_round_trips_and_losses_are_judged(trips, trip, loss):
    results = {result.name: result for result in judge_round_trips("arm", trips)}
    assert (results["network round trip"].severity, results["network loss"].severity) == (trip, loss)
    assert sum(count for _, count in results["network round trip"].histogram) == sum(t is not None for t in trips)


def test_an_address_that_does_not_exist(fake):
    (result,) = check_network(Machine(host="no such host", probe_seconds=0.1))
    assert result.severity == "fault" and "'no such host'" in result.text


ROUTES = (
    "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\n"
    "wlan0\t00000000\t0100A8C0\t3\t0\t0\t0\t00000000\t0\n"
    "eth1\t000010AC\t00000000\t1\t0\t0\t0\t0000FFFF\t0\n"
)


def test_the_longest_prefix_decides_on_the_card(fake):
    fake.write("proc/net/route", ROUTES)
    assert route_card(fake.machine, "172.16.0.2") == "eth1"
    assert route_card(fake.machine, "8.8.8.8") == "wlan0"
    assert route_card(fake.machine, "127.0.0.1") == "lo"


def test_hosts_with_and_without_a_port():
    assert split_host("172.16.0.2") == ("172.16.0.2", 0)
    assert split_host("robot:30004") == ("robot", 30004)


def test_buffers_domain_and_multicast(fake):
    fake.files(**{"proc/sys/net/core/rmem_max": "212992\n", "proc/sys/net/core/wmem_max": "8388608\n"})
    for index, (card, flags) in enumerate({"lo": "0x9", "eth0": "0x1003", "down": "0x1002"}.items(), 1):
        fake.files(**{f"sys/class/net/{card}/flags": flags, f"sys/class/net/{card}/ifindex": str(index)})
    results = found(check_dds, fake, has_ros=True, hears=lambda index: index == 1)
    assert results["socket buffer rmem_max"].severity == "note" and "sysctl" in results["socket buffer rmem_max"].cure
    assert results["socket buffer wmem_max"].severity == "ok"
    assert results["DDS multicast lo"].severity == "ok" and results["DDS multicast eth0"].severity == "note"
    assert "DDS multicast down" not in results
    assert results["ROS 2 domain"].severity == "note"
    assert [result.severity for result in check_dds(fake.machine, has_ros=False)] == ["ok"]


def test_left_overs_are_segments_that_nobody_has_mapped(fake):
    for number in range(25):
        fake.write(f"dev/shm/fastrtps_{number}", "xx")
    fake.write("proc/7/comm", "robot_node")
    fake.write("proc/7/maps", "7f00-7f01 rw-s 0 00:1a 5 /dev/shm/fastrtps_0\n")
    fake.link("proc/7/fd/3", "/dev/shm/fastrtps_1")
    result = found(check_shared_memory, fake)["shared memory left-overs"]
    assert (result.severity, result.value) == ("note", 23)


def test_the_clock(fake):
    assert found(check_clock_sync, fake, read=lambda: (0x40, 16.0))["clock"].severity == "note"
    assert found(check_clock_sync, fake, read=lambda: (0x2001, 0.02))["clock"].severity == "ok"
    assert found(check_clock_sync, fake, read=lambda: (0x2001, 0.5))["clock"].severity == "note"
    assert found(check_clock_sync, fake, read=lambda: None)["clock"].severity == "note"
    state = kernel_clock()
    assert state is None or state[1] >= 0.0


# ---------------------------------------------------------------- what is plugged in


def test_usb(fake):
    fake.write("sys/bus/usb/devices/usb1/idVendor", "1d6b")
    fake.write("sys/bus/usb/devices/usb1/bDeviceClass", "09")
    fake.usb("1-1", "RealSense D435", "8086", 480, ["0e", "ff"])
    fake.usb("1-2", "Webcam", "046d", 480, ["0e"], control="auto")
    fake.usb("2-1", "Fast camera", "2b03", 5000, ["0e"], bus=2)
    fake.usb("1-3", "Dongle", "0bda", 480, ["ff"], control="auto")
    fake.usb("1-4", "Servo adapter", "1a86", 12, ["ff"], control="auto")
    fake.write("sys/bus/usb/devices/1-4/1-4:1.0/ttyUSB0/dev", "188:0")
    fake.write("sys/module/usbcore/parameters/usbfs_memory_mb", "16")
    results = found(check_usb, fake)
    notes = {name for name, result in results.items() if result.severity == "note"}
    assert notes == {
        "USB speed RealSense D435",
        "USB bus 1",
        "USB sleep Webcam",
        "USB sleep Servo adapter",
        "USB memory",
    }
    assert "Webcam" in results["USB bus 1"].text and "Fast" not in results["USB bus 1"].text
    assert "1-2/power/control" in results["USB sleep Webcam"].cure


def test_serial_ports(tmp_path):
    fake = FakeMachine(tmp_path, refused=("ttyUSB0",), devices=("/dev/ttyUSB0", "/dev/ttyUSB9"))
    for name in ("ttyUSB0", "ttyACM0"):
        fake.write(f"dev/{name}")
    fake.link("dev/serial/by-id/usb-Maker_1234", "../../ttyUSB0")
    fake.write("sys/bus/usb-serial/devices/ttyUSB0/latency_timer", "16")
    fake.process(5, "ModemManager")
    results = found(check_serial_ports, fake)
    assert results["serial port /dev/ttyUSB0"].severity == "fault"
    assert results["serial port /dev/ttyACM0"].severity == "ok"
    assert results["serial port delay /dev/ttyUSB0"].value == 16.0
    assert "/dev/serial/by-id/usb-Maker_1234" in results["serial port name /dev/ttyUSB0"].cure
    assert "systemctl disable" in results["serial ports and ModemManager"].cure
    missing = found(check_device_nodes, fake)["device /dev/ttyUSB9"]
    assert missing.severity == "fault" and "/dev/ttyUSB9" in missing.text


def test_cameras_and_input_devices(tmp_path):
    fake = FakeMachine(tmp_path, refused=("video0", "hidraw0"))
    for number, index in ((0, 0), (1, 1)):
        fake.write(f"dev/video{number}")
        fake.write(f"sys/class/video4linux/video{number}/index", str(index))
        fake.write(f"sys/class/video4linux/video{number}/name", "Webcam")
    fake.write("dev/input/event3")
    fake.write("sys/class/input/event3/device/js0/dev")
    fake.write("sys/class/input/event3/device/name", "Pad")
    fake.write("dev/input/event4")
    fake.write("sys/class/input/event4/device/name", "Keyboard")
    for number, (maker, name) in enumerate([("0000256F", "SpaceMouse Compact"), ("0000046D", "Mouse")]):
        fake.write(f"dev/hidraw{number}")
        uevent = f"HID_ID=0003:{maker}:0000C635\nHID_NAME=3Dconnexion {name}\n".replace("3Dconnexion Mouse", "Mouse")
        fake.write(f"sys/class/hidraw/hidraw{number}/device/uevent", uevent)
    results = found(check_device_nodes, fake)
    assert {name: result.severity for name, result in results.items()} == {
        "camera /dev/video0 (Webcam)": "note",
        "input device /dev/input/event3 (Pad)": "ok",
        "input device /dev/hidraw0 (3Dconnexion SpaceMouse Compact)": "note",
    }


def test_who_holds_a_device(tmp_path):
    fake = FakeMachine(tmp_path, devices=("/dev/ttyUSB0",))
    fake.process(11, "old_driver", "/dev/ttyUSB0", "/dev/null", "socket:[3]")
    fake.process(12, "cheese", "/dev/video0")
    results = found(check_holders, fake)
    assert results["devices in use /dev/ttyUSB0"].severity == "fault"
    assert results["devices in use /dev/ttyUSB0"].cure.endswith("kill 11")
    assert results["devices in use /dev/video0"].severity == "note"
    assert len(results) == 2


def test_what_a_robot_needs_may_be_named_by_a_link_that_stays(tmp_path):
    """As `robot-rl init` writes it."""
    names = ("/dev/serial/by-id/usb-Maker_1234", "/dev/v4l/by-id/usb-Webcam-index0")
    fake = FakeMachine(tmp_path, refused=("video0",), devices=names)
    for node in ("ttyUSB0", "video0"):
        fake.write(f"dev/{node}")
    fake.write("sys/class/video4linux/video0/name", "Webcam")
    fake.link("dev/serial/by-id/usb-Maker_1234", "../../ttyUSB0")
    fake.link("dev/v4l/by-id/usb-Webcam-index0", "../../video0")
    fake.process(11, "old_driver", "/dev/ttyUSB0")
    fake.process(12, "cheese", "/dev/video0", "/dev/video7")
    held = found(check_holders, fake)
    severities = {name: result.severity for name, result in held.items()}
    assert severities == {
        "devices in use /dev/ttyUSB0": "fault",
        "devices in use /dev/video0": "fault",
        "devices in use /dev/video7": "note",
    }
    assert found(check_device_nodes, fake)["camera /dev/video0 (Webcam)"].severity == "fault"
    assert found(check_serial_ports, fake)["serial port /dev/ttyUSB0"].severity == "ok"


@pytest.mark.parametrize(("flags", "severity"), [("0x40081", "ok"), ("0x40080", "fault"), (None, "fault")])
def test_a_can_bus_that_a_robot_needs(tmp_path, flags, severity):
    fake = FakeMachine(tmp_path, devices=("can0",))
    if flags is not None:
        fake.files(**{"sys/class/net/can0/type": "280", "sys/class/net/can0/flags": flags})
    assert {name: result.severity for name, result in found(check_can, fake).items()} == {"CAN can0": severity}
    assert all(result.severity == "ok" for result in found(check_device_nodes, fake).values()), "a bus is no node"


def test_can(fake):
    for card, (kind, flags) in {"can0": ("280", "0x40080"), "can1": ("280", "0x40081"), "eth0": ("1", "0x1")}.items():
        fake.files(**{f"sys/class/net/{card}/type": kind, f"sys/class/net/{card}/flags": flags})
    results = found(check_can, fake)
    assert {name: result.severity for name, result in results.items()} == {"CAN can0": "note", "CAN can1": "ok"}


# ---------------------------------------------------------------- disk, graphics, packages


def test_the_disk_is_measured_and_left_clean(tmp_path):
    fake = FakeMachine(tmp_path)
    before = set(tmp_path.iterdir())
    results = found(check_disk, fake)
    assert results["disk speed"].value > 0 and results["disk space"].value > 0
    assert set(tmp_path.iterdir()) == before


def test_too_little_room_for_an_hour_is_a_fault(tmp_path):
    fake = FakeMachine(tmp_path, bytes_per_hour=1e18)
    assert found(check_disk, fake)["disk space"].severity == "fault"


@pytest.mark.parametrize(
    ("node", "version", "driver", "severity", "said"),
    [
        ("", "", "", "ok", "no NVIDIA card"),
        ("nvidia0", "cuda: Optional[str] = None\n", "", "note", "for processors only"),
        ("nvidia0", "cuda: Optional[str] = '12.8'\n", "", "fault", "not loaded"),
        (
            "nvidia0",
            "cuda: Optional[str] = '12.8'\n",
            "NVRM version: 570.86.10",
            "ok",
            "driver 570.86.10, torch for CUDA 12.8",
        ),
    ],
)
def test_graphics(fake, node, version, driver, severity, said):
    if node:
        fake.write(f"dev/{node}")
        fake.write("dev/nvidiactl")
    torch = fake.write("torch/version.py", version).parent
    if driver:
        fake.write("proc/driver/nvidia/version", driver)
    results = found(check_graphics, fake, egl=None, simulates=True, torch_folder=torch)
    assert results["GPU"].severity == severity and said in results["GPU"].text
    assert results["EGL"].severity == "note" and "libegl1" in results["EGL"].cure


def test_packages(fake):
    versions = {"torch": "2.5.1+cu124", "numpy": "2.1.0", "opencv": "5.0.0", "av": "14.0.1"}
    wanted = ["torch>=2.6", "numpy>=2.0", 'opencv<5,>=4.10; extra == "cameras"', "zarr>=3.1", "av==14.0.1"]
    constraints = fake.write("constraints.txt", "numpy==2.2.0\nav==14.0.1  # because\n")
    results = found(check_packages, fake, requirements=wanted, installed=versions.get, constraints=constraints)
    assert results["packages"].severity == "fault"
    assert results["packages"].text == "torch 2.5.1+cu124 is installed, required is >=2.6; zarr is missing"
    assert "opencv 5.0.0" in results["packages of extras"].text
    assert results["tested versions"].value == 1


def test_an_empty_machine_has_no_faults_but_keeps_quiet_about_nothing(fake):
    for check in (check_can, check_usb, check_serial_ports, check_device_nodes, check_holders, check_processor):
        assert [result.severity for result in check(fake.machine)].count("fault") == 0
        assert list(check(fake.machine))
