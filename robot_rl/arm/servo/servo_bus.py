"""Servos on one line: requests, retries, and who does not answer."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from robot_rl.arm.serial_line import SerialLine
from robot_rl.arm.servo.family import BROADCAST, REBOOT, SYNC_READ, SYNC_WRITE, WRITE, Packet, ServoFamily, ServoState
from robot_rl.arm.servo.register import Register
from robot_rl.errors import RobotLostError

TRIES = 3
"""How often a request is made before a servo counts as silent."""


class ServoSilentError(RobotLostError):
    """Servos do not answer, or refuse an instruction."""


@dataclass(frozen=True)
class BusState:
    """What all servos measure, in the order of the bus.

    Attributes:
        servos: The state of each.
        faults: Sentences about servos that have stopped, or are about to, by their names.
    """

    servos: tuple[ServoState, ...]
    faults: Mapping[str, str]


class ServoBus:
    """The servos of one line. Not safe for several threads.

    Args:
        line: The line.
        family: Their maker's protocol.
        idents: Their ids by their names, in the order in which values are given and returned.
        timeout: Time for the answers to one request [s].
    """

    def __init__(self, line: SerialLine, family: ServoFamily, idents: Mapping[str, int], timeout: float) -> None:
        self._line, self.family = line, family
        self.timeout = timeout
        """Time for the answers to one request [s]."""
        self.names, self._idents = tuple(idents), tuple(idents.values())
        self._names = {ident: name for name, ident in idents.items()}
        self._models = (0,) * len(self._idents)
        self._repeat = 0  # which of the blocks is read: another one after each that failed
        self.failures: Counter[str] = Counter()
        """How often something went wrong on the way, e.g. `no answer`; a retry may have cured it."""

    def find(self) -> None:
        """Look whether all servos are there, and of which models.

        Raises:
            ServoSilentError: naming those that are not.
            LineLostError: if the port is gone.
        """
        self._models = tuple(self.get(self.family.registers.model))

    def get(self, register: Register) -> list[int]:
        """Return a register of every servo.

        Raises:
            ServoSilentError: naming the servos that do not answer.
            LineLostError: if the port is gone.
        """
        return [register.decode(packet.data) for _, packet in self._read([(register.address, register.size)])]

    def set(self, register: Register, values: Sequence[int | None]) -> None:
        """Write a register of every servo, and wait for the confirmation of each; None leaves one as it is.

        Raises:
            ServoSilentError: if one does not confirm it, or refuses it.
            LineLostError: if the port is gone.
        """
        for ident, value in zip(self._idents, values, strict=True):
            if value is not None:
                parameters = self.family.number(register.address) + register.encode(value)
                self._confirmed(ident, WRITE, parameters, f"{register.name} = {value}")

    def reboot(self, names: Sequence[str]) -> None:
        """Restart servos, of a family that has to be restarted after a fault.

        Raises:
            LineLostError: if the port is gone.
        """
        for name, ident in zip(self.names, self._idents, strict=True):
            if name in names:
                self._line.send(self.family.request(ident, REBOOT))
                time.sleep(0.01)  # it does not always answer

    def state(self) -> BusState:
        """Return what all servos measure.

        Raises:
            ServoSilentError: naming the servos that do not answer.
            LineLostError: if the port is gone.
        """
        answers = self._read(self.family.state_blocks)
        states = tuple(
            self.family.state(packet.data, start, model)
            for (start, packet), model in zip(answers, self._models, strict=True)
        )
        return BusState(states, self._faults([packet for _, packet in answers]))

    def send_goals(self, goals: Sequence[int]) -> None:
        """Set the goal of every servo [counts]; no servo confirms it.

        Raises:
            LineLostError: if the port is gone.
        """
        register = self.family.registers.goal
        number = self.family.number
        rows = [bytes((ident,)) + register.encode(goal) for ident, goal in zip(self._idents, goals, strict=True)]
        parameters = number(register.address) + number(register.size) + b"".join(rows)
        self._line.send(self.family.request(BROADCAST, SYNC_WRITE, parameters))

    def close(self) -> None:
        """Close the line; doing it twice is fine."""
        self._line.close()

    def _faults(self, answers: Sequence[Packet]) -> dict[str, str]:
        if not any(self.family.has_fault(packet.error) for packet in answers):
            return {}
        if self.family.error_register is not None:
            values = self.get(self.family.error_register)
        else:
            values = [packet.error for packet in answers]
        return {
            name: f"servo {ident} ({name}): {'; '.join(texts)}"
            for name, ident, value in zip(self.names, self._idents, values, strict=True)
            if value and (texts := self.family.faults(value))
        }

    def _read(self, blocks: Sequence[tuple[int, int]]) -> list[tuple[int, Packet]]:
        """Read the same memory of all servos; return of each, in their order, its address and the answer."""
        found = dict[int, tuple[int, Packet]]()
        for _ in range(TRIES):
            address, size = blocks[self._repeat % len(blocks)]
            silent = [ident for ident in self._idents if ident not in found]
            parameters = self.family.number(address) + self.family.number(size) + bytes(silent)
            answers = self._exchange(BROADCAST, SYNC_READ, parameters, silent, size)
            found |= {ident: (address, packet) for ident, packet in answers.items()}
            if len(found) == len(self._idents):
                return [found[ident] for ident in self._idents]
            self._failed("no answer")
        raise ServoSilentError(self._describe_silent([ident for ident in self._idents if ident not in found]))

    def _confirmed(self, ident: int, instruction: int, parameters: bytes, what: str) -> None:
        for _ in range(TRIES):
            answers = self._exchange(ident, instruction, parameters, (ident,), 0)
            if ident in answers:
                if why := self.family.refusal(answers[ident].error):
                    raise ServoSilentError(f"servo {ident} ({self._names[ident]}) refuses {what}: {why}")
                return
            self._failed("no confirmation")
        raise ServoSilentError(self._describe_silent([ident]))

    def _exchange(
        self, ident: int, instruction: int, parameters: bytes, expected: Sequence[int], size: int
    ) -> dict[int, Packet]:
        """Make a request; return the answers with so many bytes of data, at the latest after the timeout."""
        self._line.send(self.family.request(ident, instruction, parameters))
        deadline = time.monotonic() + self.timeout
        buffer, answers = bytearray(), dict[int, Packet]()
        while len(answers) < len(expected):
            data = self._line.receive(deadline)
            if not data:
                break
            buffer += data
            while (packet := self.family.take(buffer)) is not None:
                if packet.ident in expected and len(packet.data) == size:
                    answers[packet.ident] = packet
                else:  # late, or of a servo that is not ours
                    self.failures["an answer to an earlier request"] += 1
        return answers

    def _failed(self, what: str) -> None:
        self.failures[what] += 1
        self._repeat += 1

    def _describe_silent(self, silent: Sequence[int]) -> str:
        if len(silent) == len(self._idents) > 1:
            return (
                f"no servo answers on {self._line.port}; is the power supply of the arm on, and are its servos "
                f"{self.family.name}?"
            )
        named = ", ".join(f"{ident} ({self._names[ident]})" for ident in silent)
        return f"servo {named} on {self._line.port} does not answer; check its cable, and its id"
