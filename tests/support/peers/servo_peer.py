"""Servos behind a pseudo-terminal: Feetech's and Dynamixel's protocols, written independently of the drivers.

A peer can lag, lose and corrupt answers, lose power, trip overload, and be unplugged and plugged in again. It runs in a
thread (`ServoPeer.start`), or in a process of its own with the physics of an SO-101 (`so101_peer.py`).
"""

import math
import os
import pty
import random
import select
import struct
import threading
import time
import tty

TURN = 4096


class FeetechProtocol:
    TORQUE, GOAL = 40, 42

    def memory(self, ident):
        m = bytearray(128)
        m[0:2], m[3:5], m[5], m[7], m[8] = b"\x03\x0a", struct.pack("<H", 777), ident, 250, 1
        m[9:11], m[11:13] = struct.pack("<H", 1024 - 0), struct.pack("<H", 3072)
        m[16:18], m[18], m[21], m[22], m[55], m[62], m[63] = struct.pack("<H", 1000), 12, 32, 32, 1, 74, 31
        return m

    def calibrate(self, m, offset, low, high):
        m[31:33] = struct.pack("<H", abs(offset) | (0x800 if offset < 0 else 0))
        m[9:11], m[11:13] = struct.pack("<H", low), struct.pack("<H", high)

    def set_present(self, m, position, velocity, load):
        sign = lambda value, bit: abs(value) | (1 << bit if value < 0 else 0)  # noqa: E731
        m[56:62] = struct.pack("<HHH", sign(position, 15), sign(velocity, 15), sign(round(1000 * load), 10))

    def goal(self, m):
        value = struct.unpack("<H", m[42:44])[0]
        return -(value & 0x7FFF) if value & 0x8000 else value

    def set_goal(self, m, value):
        m[42:44] = struct.pack("<H", value)

    def stiffness(self, m):
        return m[21] / 16.0

    def trip(self, servo):
        servo.error |= 0x20
        servo.weak = 0.2

    def supply(self, servo, volts):
        servo.memory[62] = round(10 * volts)
        servo.error = servo.error & ~1 | (volts < 4.0 or volts > 14.0)

    def torque_switched(self, servo, on):
        if not on:
            servo.error, servo.weak = servo.error & 1, 1.0

    def show_error(self, servo):
        servo.memory[65] = servo.error

    @staticmethod
    def check(body):
        return 255 - sum(body) % 256

    def status(self, servo, params=b""):
        body = bytes([servo.ident, len(params) + 2, servo.error]) + params
        return b"\xff\xff" + body + bytes([self.check(body)])

    def split(self, buffer):
        """Take one request out: (id, instruction, params), or None."""
        while len(buffer) >= 6:
            if buffer[:2] != b"\xff\xff":
                del buffer[0]
                continue
            n = buffer[3] + 4
            if len(buffer) < n:
                return None
            packet = bytes(buffer[:n])
            del buffer[:n]
            if self.check(packet[2:-1]) == packet[-1]:
                return packet[2], packet[4], packet[5:-1]
        return None

    def number(self, params):
        return params[0], params[1:]


class DynamixelProtocol:
    TORQUE, GOAL = 64, 116

    def memory(self, ident):
        m = bytearray(256)
        m[0:2], m[6], m[7], m[8], m[9], m[11] = struct.pack("<H", 1060 if ident <= 2 else 1200), 52, ident, 3, 250, 3
        m[144:146], m[146] = struct.pack("<H", 120), 30
        return m

    def calibrate(self, m, offset, low, high):
        m[20:24], m[48:52], m[52:56] = struct.pack("<i", offset), struct.pack("<i", high), struct.pack("<i", low)

    def set_present(self, m, position, velocity, load):
        m[126:128] = struct.pack("<h", round(1000 * load))
        m[128:136] = struct.pack("<ii", round(velocity / (0.229 / 60 * TURN)), position)

    def goal(self, m):
        return struct.unpack("<i", m[116:120])[0]

    def set_goal(self, m, value):
        m[116:120] = struct.pack("<i", value)

    def stiffness(self, m):
        return 1.0

    def trip(self, servo):
        servo.error = 0x80
        servo.memory[70] = 0x20
        servo.memory[64] = 0

    def supply(self, servo, volts):
        servo.memory[144:146] = struct.pack("<H", round(10 * volts))
        if volts < 9.5 or volts > 16.0:
            servo.error, servo.memory[70], servo.memory[64] = 0x80, servo.memory[70] | 1, 0

    def torque_switched(self, servo, on):
        if on and servo.memory[70]:
            servo.memory[64] = 0  # refuses until it is restarted

    def show_error(self, servo): ...

    @staticmethod
    def crc(data):
        crc = 0
        for byte in data:
            crc ^= byte << 8
            for _ in range(8):
                crc = ((crc << 1) ^ 0x8005 if crc & 0x8000 else crc << 1) & 0xFFFF
        return struct.pack("<H", crc)

    def status(self, servo, params=b"", error=0):
        body = bytes([0x55, servo.error | error]) + params
        stuffed = bytearray()
        for i, byte in enumerate(body):
            stuffed.append(byte)
            if body[max(i - 2, 0) : i + 1] == b"\xff\xff\xfd":
                stuffed.append(0xFD)
        packet = b"\xff\xff\xfd\x00" + bytes([servo.ident]) + struct.pack("<H", len(stuffed) + 2) + bytes(stuffed)
        return packet + self.crc(packet)

    def split(self, buffer):
        while len(buffer) >= 10:
            if buffer[:4] != b"\xff\xff\xfd\x00":
                del buffer[0]
                continue
            n = struct.unpack("<H", buffer[5:7])[0] + 7
            if len(buffer) < n:
                return None
            packet = bytes(buffer[:n])
            del buffer[:n]
            if self.crc(packet[:-2]) == packet[-2:]:
                return packet[4], packet[7], packet[8:-2].replace(b"\xff\xff\xfd\xfd", b"\xff\xff\xfd")
        return None

    def number(self, params):
        return struct.unpack("<H", params[:2])[0], params[2:]


PROTOCOLS = {"feetech": FeetechProtocol, "dynamixel": DynamixelProtocol}


class Servo:
    def __init__(self, protocol, ident):
        self.ident, self.memory, self.error, self.weak = ident, protocol.memory(ident), 0, 1.0


class LagBody:
    """Every servo goes to its goal with a time constant; no load."""

    def __init__(self, position, tau=0.05):
        self.position, self.velocity, self.load, self.tau = list(position), [0.0] * len(position), [0.0] * 9, tau

    def step(self, dt, goals, stiffness):
        for i, (goal, k) in enumerate(zip(goals, stiffness, strict=True)):
            before = self.position[i]
            if k:
                self.position[i] += (goal - before) * (1 - math.exp(-dt / self.tau))
            self.velocity[i] = (self.position[i] - before) / dt if dt else 0.0


class ServoPeer:
    """The bus.

    Args:
        family: `feetech` or `dynamixel`.
        link: Path at which the serial port appears.
        body: What the servos move; positions in counts.
        idents: Their ids.
    """

    def __init__(self, family, link, body=None, idents=(1, 2, 3, 4, 5, 6)):
        self.protocol, self.link = PROTOCOLS[family](), str(link)
        self.servos = {ident: Servo(self.protocol, ident) for ident in idents}
        self.body = body or LagBody([2048.0] * len(idents))
        self.lag = self.drop = self.corrupt = 0.0
        self.lag_share = 1.0  # of the answers
        self.powered, self.requests, self.mute = True, 0, set()
        self.goals_seen, self.written = [], []
        self.random = random.Random(0)
        self.master = self.slave = -1
        self.time = time.monotonic()
        self.ended = threading.Event()
        self.lock = threading.RLock()  # of body and servos: MuJoCo crashes where a step meets a reset
        for ident, servo in self.servos.items():
            self.protocol.calibrate(servo.memory, 10 * ident, 600 - ident, 3500 + ident)
        self.plug()
        self.publish()
        for servo, position in zip(self.servos.values(), self.body.position, strict=True):
            self.protocol.set_goal(servo.memory, round(position))

    # What happens to it.

    def plug(self):
        self.master, self.slave = pty.openpty()
        tty.setraw(self.master)
        tty.setraw(self.slave)
        os.symlink(os.ttyname(self.slave), self.link)

    def unplug(self):
        os.unlink(self.link)
        master, slave, self.master, self.slave = self.master, self.slave, -1, -1
        os.close(slave)
        os.close(master)

    def power(self, on):
        with self.lock:
            self.powered = on
            if not on:
                for servo in self.servos.values():
                    servo.memory[self.protocol.TORQUE], servo.error, servo.weak = 0, 0, 1.0

    def reset(self):
        """Everything as at the start: powered, no faults, no torque, the goals where it is."""
        with self.lock:
            self.lag = self.drop = self.corrupt = 0.0
            self.mute = set()
            self.power(False)
            self.power(True)
            self.body.reset()
            for servo, position in zip(self.servos.values(), self.body.position, strict=True):
                self.protocol.set_goal(servo.memory, round(position))

    def trip(self, ident):
        with self.lock:
            self.protocol.trip(self.servos[ident])

    def supply(self, volts):
        """Give all servos another voltage."""
        with self.lock:
            for servo in self.servos.values():
                self.protocol.supply(servo, volts)

    # What it does.

    def start(self):
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        return self

    def end(self):
        self.ended.set()
        self.thread.join()
        if self.master >= 0:
            self.unplug()

    def run(self):
        buffer = bytearray()
        while not self.ended.is_set():
            if self.master < 0:
                time.sleep(0.01)
                self.physics()
                continue
            try:
                if select.select([self.master], [], [], 0.02)[0]:
                    buffer += os.read(self.master, 4096)
            except (OSError, ValueError):
                time.sleep(0.005)
                continue
            self.physics()
            while (request := self.protocol.split(buffer)) is not None:
                with self.lock:
                    out = self.answer(*request) if self.powered else []
                self.send(out)

    def physics(self):
        with self.lock:
            self.step()

    def step(self):
        now = time.monotonic()
        protocol, servos = self.protocol, list(self.servos.values())
        goals = [protocol.goal(servo.memory) for servo in servos]
        stiffness = [
            servo.memory[protocol.TORQUE] * servo.weak * protocol.stiffness(servo.memory) * self.powered
            for servo in servos
        ]
        self.body.step(now - self.time, goals, stiffness)
        self.time = now
        self.publish()

    def publish(self):
        for i, servo in enumerate(self.servos.values()):
            self.protocol.set_present(
                servo.memory, round(self.body.position[i]), round(self.body.velocity[i]), self.body.load[i]
            )

    def answer(self, ident, instruction, params):
        self.requests += 1
        protocol, out = self.protocol, []
        for servo in self.servos.values():
            protocol.show_error(servo)
        mine = [s for s in self.servos.values() if ident in (0xFE, s.ident) and s.ident not in self.mute]
        if instruction == 1:
            out = [protocol.status(servo) for servo in mine]
        elif instruction == 2:
            (address, rest) = protocol.number(params)
            size, _ = protocol.number(rest)
            out = [protocol.status(servo, bytes(servo.memory[address : address + size])) for servo in mine]
        elif instruction == 3:
            address, data = protocol.number(params)
            for servo in mine:
                self.write(servo, address, data)
                out.append(protocol.status(servo))
        elif instruction == 8:
            for servo in mine:
                servo.error, servo.memory[70], servo.memory[protocol.TORQUE] = 0, 0, 0
        elif instruction == 0x82:
            address, rest = protocol.number(params)
            size, wanted = protocol.number(rest)
            out = [
                protocol.status(self.servos[one], bytes(self.servos[one].memory[address : address + size]))
                for one in wanted
                if one in self.servos and one not in self.mute
            ]
        elif instruction == 0x83:
            address, rest = protocol.number(params)
            size, rows = protocol.number(rest)
            for k in range(0, len(rows), size + 1):
                if rows[k] in self.servos:
                    self.write(self.servos[rows[k]], address, rows[k + 1 : k + 1 + size])
            if address == protocol.GOAL:
                self.goals_seen.append([protocol.goal(servo.memory) for servo in self.servos.values()])
        return out

    def write(self, servo, address, data):
        servo.memory[address : address + len(data)] = data
        self.written.append((servo.ident, address, bytes(data)))
        if address == self.protocol.TORQUE:
            self.protocol.torque_switched(servo, bool(data[0]))

    def send(self, packets):
        if self.lag and self.random.random() < self.lag_share:  # underway, as in an adapter: the bus goes on
            threading.Timer(self.lag, self.deliver, (packets,)).start()
        else:
            self.deliver(packets)

    def deliver(self, packets):
        for packet in packets:
            if self.random.random() < self.drop:
                continue
            if self.random.random() < self.corrupt:
                at = self.random.randrange(len(packet))
                packet = packet[:at] + bytes([packet[at] ^ 0x10]) + packet[at + 1 :]
            time.sleep(1e-5 * len(packet))  # 1 Mbit/s
            try:
                os.write(self.master, packet)
            except OSError:
                return
