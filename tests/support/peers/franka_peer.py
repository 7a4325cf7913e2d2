"""A Franka control box for tests: franky-sim, which speaks libfranka's protocol, and what it lacks.

It lacks reflexes, the external activation device and their recovery, and measures no forces; they are added here, by
replacing parts of it that are private: `pip install franky-sim==1.0.4` exactly. It is a process of its own
(`python franka_peer.py [HEIGHT [HOLE]]`: of a table under the tool, and the width of a hole for a peg in the hand [m]);
lines on standard input inject faults, and `report` answers with one line of JSON. Physics takes most of a core.
"""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

REFLEX_ERROR = 20
"""Index among the errors of libfranka that is set while there is one."""


class FrankaPeer:
    """The process of a control box."""

    def __init__(self, patience=120.0, *scene):
        command = [sys.executable, str(Path(__file__)), *map(str, scene)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.address = self._line("ready", patience).split()[1]

    def inject(self, what):
        self._process.stdin.write(f"{what}\n")
        self.report()

    def report(self):
        """Return the time of the simulation [s], and of the arm: its mode, the position of its tcp, and the force that
        the table exerts on it now and exerted at most since `mark` [N], in the axes of the tool.
        """
        self._process.stdin.write("report\n")
        self._process.stdin.flush()
        return json.loads(self._line("{", 20.0))

    def _read(self):
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def _line(self, begin, patience):
        """Return the next line that begins so; the simulation prints others, too."""
        end = time.monotonic() + patience
        while (line := self._lines.get(timeout=max(end - time.monotonic(), 0.0))) and not line.startswith(begin):
            pass
        assert line, f"franky-sim has ended with {self._process.wait()}"
        return line

    def speed(self):
        """Return the simulated seconds per second, over half of one."""
        before, began = self.report()["time"], time.monotonic()
        time.sleep(0.5)
        return (self.report()["time"] - before) / (time.monotonic() - began)

    def close(self):
        self._process.kill()
        self._process.wait()


PEG, PEG_LENGTH, WALL = 0.016, 0.04, 0.02
"""Diameter of the peg, how far it reaches beyond the tcp, and the depth of the hole [m]."""
HOLE_AT = (0.45, 0.0)
"""Where the hole is [m]."""


class Table:
    """A box under the tool, with a hole on it if it has a width; what both exert on it, low-passed as libfranka's
    estimate is.
    """

    def __init__(self, worldbody, hand, height, hole=0.0):
        self.wrench, self.peak, self.names = np.zeros(6), 0.0, []
        self._box(worldbody, (0.5, 0.0, height / 2), (0.3, 0.3, height / 2))
        if not hole:
            return
        x, y, z, half, out = *HOLE_AT, height + WALL / 2, hole / 2, 0.02
        for side in (-1, 1):
            self._box(worldbody, (x + side * (half + out), y, z), (out, half + 2 * out, WALL / 2))
            self._box(worldbody, (x, y + side * (half + out), z), (half, out, WALL / 2))
        middle = 0.1034 + PEG_LENGTH / 2
        ET.SubElement(
            hand,
            "geom",
            name="peg",
            type="cylinder",
            size=f"{PEG / 2} {PEG_LENGTH / 2}",
            pos=f"0 0 {middle}",
            mass="0.02",
        )

    def _box(self, parent, position, half):
        self.names.append(f"table{len(self.names)}")
        size, pos = (" ".join(f"{value:.5f}" for value in values) for values in (half, position))
        ET.SubElement(parent, "geom", name=self.names[-1], type="box", size=size, pos=pos, solref="0.01 1")

    def step(self, model, data, pose):
        import mujoco

        boxes, wrench, found = [model.geom(name).id for name in self.names], np.zeros(6), np.zeros(6)
        for number in np.flatnonzero(np.isin(data.contact.geom, boxes).any(axis=1)):
            contact, T_base_tcp = data.contact[number], pose()
            mujoco.mj_contactForce(model, data, number, found)
            on_second = contact.frame.reshape(3, 3).T @ found[:3]
            force = on_second if contact.geom1 in boxes else -on_second
            lever, R = contact.pos - T_base_tcp[:3, 3], T_base_tcp[:3, :3]
            wrench += np.concatenate((R.T @ force, R.T @ np.cross(lever, force)))
        self.wrench = 0.9 * self.wrench + 0.1 * wrench
        self.peak = max(self.peak, float(np.linalg.norm(self.wrench[:3])))


def main():
    import franky_sim.franka_robot_protocol as protocol
    import franky_sim.franka_robot_server as robot_server
    from franky_sim import SimulationServer
    from franky_sim.franka_gripper_protocol import GripperCommand
    from franky_sim.mujoco_simulator import MujocoSimulator

    fault, overridden = {"mode": None}, {}
    hand_is_silent, unsaid = threading.Event(), []
    injected, threshold = np.zeros(6), np.full(6, np.inf)
    table = None
    plain = robot_server.FrankaRobotServer.robot_state.fget

    def state(self):
        """Return the state with the external wrench and the fault that were injected."""
        wrench = injected + (0.0 if table is None else table.wrench)
        felt = {"O_F_ext_hat_K": tuple(-wrench), "K_F_ext_hat_K": tuple(-wrench)} | overridden
        if fault["mode"] is not None:
            errors = tuple(number == REFLEX_ERROR for number in range(41))
            felt |= {"robot_mode": fault["mode"], "errors": errors, "current_errors": errors, "reflex_reason": errors}
        return plain(self).replace(**felt)

    def whole(read):
        """Return the state from outside the thread of the simulation, which may take a step while it is read."""
        while True:
            with contextlib.suppress(ValueError):
                return read()

    def recover(self, server):
        if fault["mode"] == protocol.RobotMode.kUserStopped:
            self.reply(protocol.AutomaticErrorRecoveryStatus.kEmergencyAborted)
            return
        fault["mode"] = None
        self.reply(protocol.AutomaticErrorRecoveryStatus.kSuccess)

    accepted = protocol.SetCollisionBehaviorCommand.handle

    def set_collision(self, server):
        threshold[:] = self.upper_force_thresholds_nominal
        accepted(self, server)

    answer = protocol.BaseCommand.send_response

    def respond(socket, command, *what, **how):
        if hand_is_silent.is_set() and isinstance(command, GripperCommand):
            unsaid.append(lambda: answer(socket, command, *what, **how))
        else:
            answer(socket, command, *what, **how)

    protocol.BaseCommand.send_response = staticmethod(respond)
    robot_server.FrankaRobotServer.robot_state = property(state)
    protocol.SetCollisionBehaviorCommand.handle = set_collision
    protocol.AutomaticErrorRecoveryCommand.handle = recover

    def abort(server, status, mode):
        fault["mode"] = mode
        motion = server.current_motion_id
        server.stop_motion()
        if motion:
            protocol.BaseCommand.send_response(server._tcp_socket, protocol.RobotCommand.kMove, motion, status)
            server.reset_current_motion_id()

    with MujocoSimulator() as simulator:
        arm = simulator.add_robot(position=(0, 0, 0))
        hand = next(body for body in simulator.worldbody.iter("body") if body.get("name", "").endswith("_hand"))
        table = Table(simulator.worldbody, hand, *map(float, sys.argv[1:])) if sys.argv[1:] else None
        server = SimulationServer(simulator)
        server.init()
        pending = []

        def pose():
            return np.array(plain(server.robot_servers[0]).O_T_EE).reshape(4, 4, order="F")

        def after(_):
            if table is not None:
                table.step(simulator.model, simulator.data, pose)
                if fault["mode"] is None and (np.abs(table.wrench) > threshold).any():
                    pending.append((protocol.MoveStatus.kReflexAborted, protocol.RobotMode.kReflex))
            while pending:
                abort(server.robot_servers[0], *pending.pop())

        simulator.register_post_step_callback(after)
        server.run_async(1.0)
        print("ready", arm.hostname, flush=True)
        for line in sys.stdin:
            what, *numbers = line.split()
            if what == "report":
                position = whole(lambda: plain(server.robot_servers[0])).O_T_EE[12:15]
                facts = {"time": float(simulator.data.time), "mode": str(fault["mode"]), "position": list(position)}
                if table is not None:
                    facts |= {"force": table.wrench[:3].tolist(), "peak": table.peak}
                print(json.dumps(facts), flush=True)
            elif what == "mark":
                table.peak = 0.0
            elif what == "reflex":
                pending.append((protocol.MoveStatus.kReflexAborted, protocol.RobotMode.kReflex))
            elif what == "estop":
                pending.append((protocol.MoveStatus.kEmergencyAborted, protocol.RobotMode.kUserStopped))
            elif what == "release":
                fault["mode"] = None
            elif what == "state":  # NAME VALUE, until "state NAME"
                overridden.pop(numbers[0], None)
                overridden |= {numbers[0]: float(numbers[1])} if numbers[1:] else {}
            elif what == "hand":  # silent or answers
                (hand_is_silent.set if numbers == ["silent"] else hand_is_silent.clear)()
                while not hand_is_silent.is_set() and unsaid:
                    unsaid.pop(0)()
            elif what == "force":
                injected[:] = list(map(float, numbers))


if __name__ == "__main__":
    main()
