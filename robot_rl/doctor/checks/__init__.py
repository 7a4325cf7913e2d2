"""Checks of the machine, one concern a file. Each reads; none changes anything, moves anything, or needs root."""

from robot_rl.doctor.checks.can import check_can
from robot_rl.doctor.checks.clock_sync import check_clock_sync
from robot_rl.doctor.checks.dds import check_dds
from robot_rl.doctor.checks.device_nodes import check_device_nodes
from robot_rl.doctor.checks.disk import check_disk
from robot_rl.doctor.checks.graphics import check_graphics
from robot_rl.doctor.checks.holders import check_holders
from robot_rl.doctor.checks.network import check_network
from robot_rl.doctor.checks.packages import check_packages
from robot_rl.doctor.checks.processor import check_processor
from robot_rl.doctor.checks.realtime import check_realtime
from robot_rl.doctor.checks.serial_ports import check_serial_ports
from robot_rl.doctor.checks.shared_memory import check_shared_memory
from robot_rl.doctor.checks.usb import check_usb
from robot_rl.doctor.checks.wake_up import check_wake_up

MACHINE_CHECKS = (
    check_realtime,
    check_wake_up,
    check_processor,
    check_network,
    check_dds,
    check_shared_memory,
    check_clock_sync,
    check_usb,
    check_serial_ports,
    check_device_nodes,
    check_holders,
    check_can,
    check_disk,
    check_graphics,
    check_packages,
)
"""In the order in which they are made. Not as entry points: those have no order."""
