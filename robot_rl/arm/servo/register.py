"""A register of a servo, and the two ways in which servos write negative numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Register:
    """Where a number lies in a servo's memory, least byte first.

    Attributes:
        name: For people.
        address: Of its first byte.
        size: Number of bytes.
        sign_bit: The bit that is set in a negative number whose other bits are its magnitude; None if there is none.
        signed: Whether it is in two's complement.
    """

    name: str
    address: int
    size: int
    sign_bit: int | None = None
    signed: bool = False

    def encode(self, value: int) -> bytes:
        """Return the bytes of a number.

        Raises:
            OverflowError: if it is too large.
        """
        if self.sign_bit is None:
            return value.to_bytes(self.size, "little", signed=self.signed)
        if abs(value) >= 1 << self.sign_bit:
            raise OverflowError(f"{value} does not fit into the {self.sign_bit} bits of {self.name}")
        return (abs(value) | (value < 0) << self.sign_bit).to_bytes(self.size, "little")

    def decode(self, memory: bytes, start: int | None = None) -> int:
        """Return the number in a piece of memory that begins at address `start`; None: it is the register alone."""
        offset = 0 if start is None else self.address - start
        value = int.from_bytes(memory[offset : offset + self.size], "little", signed=self.signed)
        if self.sign_bit is None:
            return value
        magnitude = value & ((1 << self.sign_bit) - 1)
        return -magnitude if value >> self.sign_bit & 1 else magnitude
