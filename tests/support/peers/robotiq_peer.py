"""A Robotiq gripper behind a pseudo-terminal: Modbus RTU, written independently of the driver."""

import os
import pty
import select
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


class RobotiqPeer:
    def __init__(self, link):
        self.master, self.slave = pty.openpty()
        tty.setraw(self.master)
        tty.setraw(self.slave)
        os.symlink(os.ttyname(self.slave), str(link))
        self.link = str(link)
        self.out = bytearray(6)
        self.position, self.active, self.object, self.fault = 0.0, 0.0, None, 0
        self.powered, self.lag, self.requests, self.activations = True, 0.0, 0, 0
        self.time = time.monotonic()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def end(self):
        self.ended.set()
        self.thread.join()
        os.close(self.slave)
        os.close(self.master)

    def step(self):
        now = time.monotonic()
        elapsed, self.time = now - self.time, now
        self.active = self.active + elapsed if self.out[0] & 1 else 0.0
        if self.active > 0.2 and self.out[0] & 8 and not self.fault:
            most = elapsed * (200 + 2 * self.out[4])
            goal = self.out[3] if self.object is None else min(self.out[3], self.object)
            self.position += max(-most, min(most, goal - self.position))

    def inputs(self):
        self.step()
        state = 3 if self.active > 0.2 else self.out[0] & 1
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
            self.step()
            before = self.out[0]
            self.out[: 2 * count] = frame[7:-2]
            self.activations += self.out[0] & 1 and not before & 1
            if not self.out[0] & 1:
                self.active, self.fault = 0.0, 0
            reply = frame[:6]
        else:
            reply = bytes([9, frame[1] | 0x80, 2])
        time.sleep(self.lag)
        os.write(self.master, reply + crc(reply))
