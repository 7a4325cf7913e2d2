"""A UR5e controller for tests, as far as `ur_rtde` speaks to one: dashboard, script port and RTDE on their own ports.

It is a process of its own (`python ur_peer.py ADDRESS`). Its time is its own: one tick is 8 ms of it, however long the
machine takes. The uploaded URScript is not interpreted: what it does with the registers is done here. Lines on standard
input inject faults; `report` answers with one line of JSON. Protocol: Universal Robots, "RTDE Guide"; register use:
the script that ur_rtde 1.6 uploads.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

TICK = 1 / 125
"""Of the controller's own time [s]."""
DASHBOARD, SCRIPT, SCRIPT_TOO, RTDE = 29999, 30003, 30002, 30004
MOVING = 2e-3
"""Speed of the tcp above which it moves [m/s]."""
D, A = (0.1625, 0, 0, 0.1333, 0.0997, 0.0996), (0, -0.425, -0.3922, 0, 0, 0)
ALPHA = (math.pi / 2, 0, 0, math.pi / 2, -math.pi / 2, 0)
"""Denavit-Hartenberg parameters of a UR5e."""
START = (0.0, -1.57, 1.57, -1.57, -1.57, 0.0)
FORMATS = {
    "DOUBLE": "d", "UINT64": "Q", "UINT32": "I", "INT32": "i", "UINT8": "B", "BOOL": "?",
    "VECTOR6D": "6d", "VECTOR3D": "3d", "VECTOR6INT32": "6i", "NOT_FOUND": "",
}  # fmt: skip
SIX = (
    "target_q target_qd target_qdd target_current target_moment actual_q actual_qd actual_current joint_control_output"
)
SIX += " actual_TCP_pose actual_TCP_speed actual_TCP_force target_TCP_pose target_TCP_speed joint_temperatures"
SIX += " actual_joint_voltage ft_raw_wrench payload_inertia actual_current_as_torque tcp_offset external_force_torque"
ONE = "timestamp actual_execution_time speed_scaling target_speed_fraction actual_momentum actual_main_voltage payload"
ONE += " actual_robot_voltage actual_robot_current standard_analog_input0 standard_analog_input1 speed_slider_fraction"
ONE += " standard_analog_output0 standard_analog_output1 standard_analog_output_0 standard_analog_output_1"
MASKS = "standard_digital_output_mask standard_digital_output configurable_digital_output_mask tool_digital_output"
MASKS += " configurable_digital_output tool_digital_output_mask standard_analog_output_mask standard_analog_output_type"
TYPES = {
    **dict.fromkeys(SIX.split(), "VECTOR6D"),
    **dict.fromkeys(ONE.split(), "DOUBLE"),
    **dict.fromkeys(MASKS.split(), "UINT8"),
    **dict.fromkeys(("actual_tool_accelerometer", "payload_cog"), "VECTOR3D"),
    **dict.fromkeys(("actual_digital_input_bits", "actual_digital_output_bits"), "UINT64"),
    **dict.fromkeys(("robot_mode", "safety_mode", "safety_status"), "INT32"),
    **dict.fromkeys(("runtime_state", "robot_status_bits", "safety_status_bits", "speed_slider_mask"), "UINT32"),
    "joint_mode": "VECTOR6INT32",
}


def type_of(name):
    for kind, what in (("int_register", "INT32"), ("double_register", "DOUBLE"), ("bit_registers", "UINT32")):
        if kind in name:
            return what
    return TYPES.get(name, "BOOL" if "bit_register" in name else "NOT_FOUND")


def names_in(payload):
    return [name for name in payload.decode().split(",") if name]


def rotation_vector(R):
    angle = math.acos(max(-1.0, min(1.0, (np.trace(R) - 1) / 2)))
    v = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    if angle < 1e-9:
        return v / 2
    if math.pi - angle < 1e-6:
        B = (R + np.eye(3)) / 2
        k = int(np.argmax(np.diag(B)))
        return B[k] / math.sqrt(B[k, k]) * angle
    return v * angle / (2 * math.sin(angle))


def rotation(r):
    angle = float(np.linalg.norm(r))
    if angle < 1e-12:
        return np.eye(3)
    x, y, z = np.asarray(r) / angle
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + math.sin(angle) * K + (1 - math.cos(angle)) * K @ K


def jacobian(q):
    """Return the Jacobian, shape (6, 6), and the pose of the tcp, shape (4, 4)."""
    T, axes, origins = np.eye(4), [], []
    for d, a, alpha, angle in zip(D, A, ALPHA, q, strict=True):
        axes.append(T[:3, 2].copy())
        origins.append(T[:3, 3].copy())
        c, s, ca, sa = math.cos(angle), math.sin(angle), math.cos(alpha), math.sin(alpha)
        T = T @ np.array([[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, d], [0, 0, 0, 1]])
    J = np.array([[*np.cross(z, T[:3, 3] - o), *z] for z, o in zip(axes, origins, strict=True)]).T
    return J, T


def inverse(pose, q):
    q, R = np.array(q, float), rotation(pose[3:])
    for _ in range(20):
        J, T = jacobian(q)
        error = np.concatenate((pose[:3] - T[:3, 3], rotation_vector(R @ T[:3, :3].T)))
        if np.abs(error).max() < 1e-7:
            break
        q += J.T @ np.linalg.solve(J @ J.T + 1e-8 * np.eye(6), error)
    return q


class Controller:
    """Registers, safety, motion."""

    def __init__(self):
        self.lock = threading.RLock()
        self.q, self.qd, self.q_target = np.array(START), np.zeros(6), np.array(START)
        self.T = jacobian(self.q)[1]
        self.twist, self.force = np.zeros(6), np.zeros(6)
        self.ints, self.doubles, self.int_out, self.double_out = {}, {}, [0] * 48, [0.0] * 48
        self.time, self.last_data, self.watchdog = 0.0, 0.0, 0.0
        self.runtime, self.executing = 1, False
        self.safety, self.mode, self.remote = 1, 7, True
        self.frozen = self.is_cut = False
        self.set_points = self.uploads = 0
        self.payload = self.tcp = None
        self.version, self.model, self.speed_fraction = "5.15", "UR5", 1.0
        self.owner = None  # connection that has the input registers
        self.connections = set()
        self.mark()

    def mark(self):
        """Count from now how long and how far the arm moves, where it is sent, and how late this process is [s]."""
        self.marked, self.marked_at, self.moved_at, self.way = self.time, self.T[:3, 3].copy(), self.time, 0.0
        self.low, self.high, self.late = np.full(3, np.inf), np.full(3, -np.inf), 0.0

    def inject(self, what, *numbers):
        with self.lock:
            self.mark()
            if what == "home":  # as if carried there, while no program runs
                self.q, self.qd, self.q_target = np.array(START), np.zeros(6), np.array(START)
                self.T = jacobian(self.q)[1]
                self.mark()
            elif what == "protective":
                self.safety, self.runtime = 4, 1
            elif what == "estop":
                self.safety, self.runtime, self.mode = 1 << 6 | 1 << 7, 1, 3
            elif what == "release":
                self.safety, self.mode = 1, 7
            elif what in ("cut", "mend"):
                self.is_cut = what == "cut"
                for connection in self.connections if self.is_cut else ():
                    with contextlib.suppress(OSError):  # the client has closed it
                        connection.shutdown(socket.SHUT_RDWR)
            elif what in ("freeze", "thaw"):
                self.frozen = what == "freeze"
            elif what in ("local", "remote"):
                self.remote = what == "remote"
            elif what == "force":
                self.force = np.array(numbers)
            elif what == "load":
                self.payload = [*numbers, 0.0, 0.0, 0.0]
            elif what == "speed":
                self.speed_fraction = numbers[0]
            elif what == "model":
                self.model = f"UR{numbers[0]:g}"
            elif what == "version":
                self.version = f"{numbers[0]:g}"
            elif what == "stop-program":
                self.runtime = 1

    def report(self):
        with self.lock:
            return {
                "still_after": self.moved_at - self.marked,
                "distance": self.way,
                "time": self.time,
                "position": self.T[:3, 3].tolist(),
                "watchdog": self.watchdog,
                "payload": self.payload,
                "tcp": self.tcp,
                "set_points": self.set_points,
                "uploads": self.uploads,
                "running": self.runtime == 2,
                "low": self.low.tolist(),
                "high": self.high.tolist(),
                "late": self.late,
            }

    def tick(self):
        with self.lock:
            self.time += TICK
            self.process()
            if self.watchdog and self.runtime == 2 and self.time - self.last_data > 1 / self.watchdog:
                self.runtime = 1
            wanted = np.clip((self.q_target - self.q) / 0.04, -3.14, 3.14)
            if self.runtime != 2 or self.safety & ~0b11:
                wanted, self.q_target = np.zeros(6), self.q.copy()
            self.qd = self.qd + np.clip(wanted - self.qd, -40 * TICK, 40 * TICK)
            self.q = self.q + self.qd * TICK
            J, self.T = jacobian(self.q)
            self.twist = J @ self.qd
            if np.linalg.norm(self.twist[:3]) > MOVING:
                self.moved_at = self.time
            self.way = max(self.way, float(np.linalg.norm(self.T[:3, 3] - self.marked_at)))

    def process(self):
        """Do what the uploaded script does with its registers."""
        command = self.ints.get(0, 0)
        if self.runtime != 2:
            return
        if command == 24:  # servoL
            self.set_points += 1
            pose = self.numbers(6)
            self.low, self.high = np.minimum(self.low, pose[:3]), np.maximum(self.high, pose[:3])
            self.q_target, self.int_out[0] = inverse(pose, self.q), 1
        elif command == 0:
            self.executing, self.int_out[0] = False, 1
        elif not self.executing:
            self.executing = True
            if command in (15, 16, 33, 34):  # servoStop, stopJ, stopL
                self.q_target = self.q.copy()
            elif command == 35:
                self.watchdog = self.doubles.get(0, 0.0)
            elif command == 17:
                self.payload = self.numbers(4).tolist()
            elif command == 29:
                self.tcp = self.numbers(6).tolist()
            elif command == 255:
                self.runtime, self.q_target = 1, self.q.copy()
            if command != 255:
                self.int_out[0] = 2

    def numbers(self, count):
        return np.array([self.doubles.get(i, 0.0) for i in range(count)])

    def upload(self):
        with self.lock:
            self.ints, self.watchdog, self.last_data = {}, 0.0, self.time
            self.runtime, self.int_out[0], self.executing = 2, 1, False
            self.int_out[24] = 1
            self.uploads += 1

    def packet(self, names):
        pose = np.concatenate((self.T[:3, 3], rotation_vector(self.T[:3, :3])))
        values = {
            "timestamp": (self.time,), "actual_q": self.q, "actual_qd": self.qd, "target_q": self.q_target,
            "actual_TCP_pose": pose, "target_TCP_pose": pose, "actual_TCP_speed": self.twist,
            "actual_TCP_force": self.force, "robot_mode": (self.mode,), "safety_mode": (1,), "speed_scaling": (1.0,),
            "runtime_state": (self.runtime,), "robot_status_bits": (1 | (2 if self.runtime == 2 else 0),),
            "safety_status_bits": (self.safety,), "target_speed_fraction": (self.speed_fraction,),
            "safety_status": (1,), "payload": (self.payload[0] if self.payload else 0.0,),
        }  # fmt: skip
        parts = []
        for name in names:
            form = FORMATS[type_of(name)]
            if name in values:
                kind = float if form[-1] == "d" else int
                parts.append(struct.pack(f">{form}", *(kind(x) for x in values[name])))
            elif name.startswith("output_int_register_"):
                parts.append(struct.pack(">i", self.int_out[int(name.rsplit("_", 1)[1])]))
            else:
                parts.append(b"\0" * struct.calcsize(f">{form}"))
        return b"".join(parts)

    # Connections.

    def serve(self, address):
        for port, handler in (
            (DASHBOARD, self.dash),
            (SCRIPT, self.script),
            (SCRIPT_TOO, self.script),
            (RTDE, self.rtde),
        ):
            server = socket.socket()
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind((address, port))
            server.listen(8)
            threading.Thread(target=self.accept, args=(server, handler), daemon=True).start()

    def accept(self, server, handler):
        while True:
            connection, _ = server.accept()
            with self.lock:
                if self.is_cut:
                    connection.close()
                    continue
                self.connections.add(connection)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.run, args=(connection, handler), daemon=True).start()

    def run(self, connection, handler):
        try:
            handler(connection)
        except OSError:
            pass
        finally:
            with self.lock:
                self.connections.discard(connection)
                if self.owner is connection:
                    self.owner = None
                connection.close()

    def dash(self, connection):
        connection.sendall(b"Connected: Universal Robots Dashboard Server\n")
        for line in connection.makefile("rb"):
            what = line.decode().strip()
            safety = {1: "NORMAL", 4: "PROTECTIVE_STOP"}.get(self.safety, "ROBOT_EMERGENCY_STOP")
            replies = {
                "PolyscopeVersion": f"URSoftware {self.version}.0.0 (Jan 01 2024)",
                "is in remote control": str(self.remote).lower(),
                "robotmode": f"Robotmode: {'RUNNING' if self.mode == 7 else 'POWER_OFF'}",
                "safetystatus": f"Safetystatus: {safety}",
                "running": f"Program running: {str(self.runtime == 2).lower()}",
                "unlock protective stop": "Protective stop releasing",
                "close safety popup": "closing safety popup",
                "stop": "Stopped",
                "get serial number": "20205500001",
                "get robot model": self.model,
            }
            if what == "unlock protective stop" and self.safety == 4:
                self.safety = 1
            connection.sendall((replies.get(what, f"could not understand: {what}") + "\n").encode())

    def script(self, connection):
        text = b""
        while data := connection.recv(65536):
            text += data
            if text.rstrip().endswith(b"end") and b"def " in text:
                if self.remote and self.safety == 1:
                    self.upload()
                text = b""

    def rtde(self, connection):
        recipes, outputs, rate, started = {}, [], 125.0, threading.Event()

        def send(kind, payload):
            connection.sendall(struct.pack(">HB", len(payload) + 3, kind) + payload)

        def stream():
            try:
                while connection in self.connections:
                    if not self.frozen:
                        with self.lock:
                            payload = self.packet(outputs)
                        send(85, b"\x01" + payload)
                    time.sleep(1 / rate)
            except OSError:
                pass

        buffer = b""
        while data := connection.recv(65536):
            buffer += data
            while len(buffer) >= 3 and len(buffer) >= (size := struct.unpack(">H", buffer[:2])[0]):
                kind, payload, buffer = buffer[2], buffer[3:size], buffer[size:]
                if kind == 86:
                    send(86, b"\x01")
                elif kind == 118:
                    send(118, struct.pack(">4I", 5, 15, 0, 0))
                elif kind == 79:
                    rate, outputs = struct.unpack(">d", payload[:8])[0], names_in(payload[8:])
                    send(79, b"\x01" + ",".join(map(type_of, outputs)).encode())
                elif kind == 73:
                    names, free = names_in(payload), self.owner in (None, connection)
                    self.owner = connection if free else self.owner
                    number = len(recipes) + 1
                    recipes[number] = names
                    kinds = [type_of(name) if free else "IN_USE" for name in names]
                    send(73, bytes([number if free else 0]) + ",".join(kinds).encode())
                elif kind == 83:
                    send(83, b"\x01")
                    if not started.is_set():
                        started.set()
                        threading.Thread(target=stream, daemon=True).start()
                elif kind == 80:
                    send(80, b"\x01")
                elif kind == 85:
                    self.received(recipes.get(payload[0], []), payload[1:])

    def received(self, names, data):
        values = iter(struct.unpack(">" + "".join(FORMATS[type_of(name)] for name in names), data))
        with self.lock:
            self.last_data = self.time
            for name in names:
                value = next(values)
                if "int_register_" in name:
                    self.ints[int(name.rsplit("_", 1)[1])] = value
                elif "double_register_" in name:
                    self.doubles[int(name.rsplit("_", 1)[1])] = value


class UrPeer:
    """The process of a controller."""

    def __init__(self, address):
        self.address = address
        command = [sys.executable, str(Path(__file__)), address]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout.readline() == "ready\n"

    def inject(self, what):
        """Inject a fault, which is in effect on return; from then it counts how long and how far the arm moves."""
        self._process.stdin.write(f"{what}\n")
        self.report()

    def report(self):
        self._process.stdin.write("report\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self):
        self._process.kill()
        self._process.wait()


def main():
    with contextlib.suppress(AttributeError, PermissionError):  # a controller has a processor of its own
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    controller = Controller()
    controller.serve(sys.argv[1])

    def tick():
        deadline = time.monotonic()
        while True:
            controller.tick()
            deadline += TICK
            wait = deadline - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            else:
                controller.late = max(controller.late, -wait)
                deadline = time.monotonic()

    threading.Thread(target=tick, daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        what, *numbers = line.split()
        if what == "report":
            print(json.dumps(controller.report()), flush=True)
        else:
            controller.inject(what, *map(float, numbers))


if __name__ == "__main__":
    main()
