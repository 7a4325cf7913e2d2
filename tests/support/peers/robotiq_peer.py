"""A Robotiq gripper behind a pseudo-terminal (Modbus RTU) and behind the socket of its URCap, written independently."""

import os
import pty
import select
import socket
import struct
import threading
import time
import tty


def crc(data):
    value = 0xFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ 0xA001 if value & 1 else value >> 1
    return struct.pack("<H", value)


REGISTERS = {"POS": 3, "SPE": 4, "FOR": 5}


class Gripper:
    """What moves: `out` has its variables as the registers do, `step` brings the fingers up to now."""

    def __init__(self):
        self.out = bytearray(6)
        self.position, self.active, self.object, self.fault = 0.0, 0.0, None, 0
        self.powered, self.lag, self.requests, self.activations = True, 0.0, 0, 0
        self.time = time.monotonic()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def step(self):
        now = time.monotonic()
        elapsed, self.time = now - self.time, now
        self.active = self.active + elapsed if self.out[0] & 1 else 0.0
        if self.active > 0.2 and self.out[0] & 8 and not self.fault:
            most = elapsed * (200 + 2 * self.out[4])
            goal = self.out[3] if self.object is None else min(self.out[3], self.object)
            self.position += max(-most, min(most, goal - self.position))

    def status(self):
        self.step()
        return 3 if self.active > 0.2 else self.out[0] & 1

    def write(self, values):
        self.step()
        before = self.out[0]
        self.out[: len(values)] = values
        self.activations += self.out[0] & 1 and not before & 1
        if not self.out[0] & 1:
            self.active, self.fault = 0.0, 0


class RobotiqPeer(Gripper):
    def __init__(self, link):
        self.master, self.slave = pty.openpty()
        tty.setraw(self.master)
        tty.setraw(self.slave)
        os.symlink(os.ttyname(self.slave), str(link))
        self.link = str(link)
        super().__init__()

    def end(self):
        self.ended.set()
        self.thread.join()
        os.close(self.slave)
        os.close(self.master)

    def inputs(self):
        state = self.status()
        return bytes([self.out[0] & 9 | state << 4, 0, self.fault, self.out[3], round(self.position), 0])

    def run(self):
        buffer = bytearray()
        while not self.ended.is_set():
            if not select.select([self.master], [], [], 0.02)[0]:
                continue
            buffer += os.read(self.master, 512)
            while len(buffer) >= 8:
                size = 9 + buffer[6] if buffer[1] == 16 else 8
                if len(buffer) < size:
                    break
                frame = bytes(buffer[:size])
                del buffer[:size]
                if crc(frame[:-2]) == frame[-2:] and frame[0] == 9 and self.powered:
                    self.requests += 1
                    self.answer(frame)

    def answer(self, frame):
        address, count = struct.unpack(">HH", frame[2:6])
        if frame[1] in (3, 4) and address == 0x07D0:
            data = self.inputs()[: 2 * count]
            reply = bytes([9, frame[1], len(data)]) + data
        elif frame[1] == 16 and address == 0x03E8:
            self.write(frame[7:-2])
            reply = frame[:6]
        else:
            reply = bytes([9, frame[1] | 0x80, 2])
        time.sleep(self.lag)
        os.write(self.master, reply + crc(reply))


class UrcapPeer(Gripper):
    """The server of Robotiq's URCap: one connection after the other, a text for each line, without an end of it."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.settimeout(0.02)
        self.port = self.server.getsockname()[1]
        super().__init__()

    def end(self):
        self.ended.set()
        self.thread.join()
        self.server.close()

    def run(self):
        while not self.ended.is_set():
            try:
                connection, _ = self.server.accept()
            except TimeoutError:
                continue
            with connection:
                connection.settimeout(0.02)
                self.serve(connection)

    def serve(self, connection):
        buffer = b""
        while not self.ended.is_set():
            try:
                data = connection.recv(256)
            except TimeoutError:
                continue
            except OSError:
                return
            if not data:
                return
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                if self.powered:
                    self.requests += 1
                    answer = self.answer(line.decode().split())
                    time.sleep(self.lag)
                    connection.sendall(answer.encode())

    def answer(self, words):
        if words[0] == "GET":
            value = {"STA": self.status(), "FLT": self.fault, "POS": round(self.position), "ACT": self.out[0] & 1}
            return f"{words[1]} {value[words[1]]}"
        values = bytearray(self.out)
        for name, text in zip(words[1::2], words[2::2], strict=True):
            if name in ("ACT", "GTO"):
                bit = 1 if name == "ACT" else 8
                values[0] = values[0] & ~bit | bit * int(text)
            else:
                values[REGISTERS[name]] = int(text)
        self.write(values)
        return "ack"
