"""Packets and registers of both families: against the makers' examples, and against peers written independently."""

import random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from servo_peer import DynamixelProtocol, FeetechProtocol

from robot_rl.arm.servo.dynamixel import Dynamixel
from robot_rl.arm.servo.family import PING, SYNC_READ, WRITE
from robot_rl.arm.servo.feetech import Feetech
from robot_rl.arm.servo.register import Register

PAIRS = [(Feetech(), FeetechProtocol()), (Dynamixel(), DynamixelProtocol())]
AWKWARD = [b"", b"\xff\xff", b"\xff\xff\xfd", b"\xff\xff\xfd\xff\xff\xfd\x00", b"\xff\xff\xfd\xfd", bytes(range(60))]


def test_requests_are_those_of_the_makers_examples():
    # Robotis e-Manual, protocol 2.0, "Ping": id 1, and "Write": id 1, address 116, value 512
    assert Dynamixel().request(1, PING).hex(" ") == "ff ff fd 00 01 03 00 01 19 4e"
    write = Dynamixel().request(1, WRITE, bytes((116, 0)) + (512).to_bytes(4, "little"))
    assert write.hex(" ") == "ff ff fd 00 01 09 00 03 74 00 00 02 00 00 ca 89"
    # Feetech, communication protocol manual, 1.3.1 "Ping": id 1
    assert Feetech().request(1, PING).hex(" ") == "ff ff 01 02 01 fb"


@pytest.mark.parametrize(("family", "peer"), PAIRS)
@pytest.mark.parametrize("data", AWKWARD)
def test_requests_and_answers_survive_any_content(family, peer, data):
    assert peer.split(bytearray(family.request(7, SYNC_READ, data))) == (7, SYNC_READ, data)
    buffer = bytearray(peer.status(SimpleNamespace(ident=9, error=0), data))
    packet = family.take(buffer)
    assert (packet.ident, packet.error, packet.data) == (9, 0, data)
    assert not buffer


@pytest.mark.parametrize(("family", "peer"), PAIRS)
def test_answers_are_found_in_noise_and_in_pieces(family, peer):
    rng = random.Random(0)
    for _ in range(50):
        datas = [rng.choice(AWKWARD) for _ in range(4)]
        stream = b""
        for i, data in enumerate(datas):
            noise = bytes(rng.randrange(0xF0) for _ in range(rng.randrange(6)))  # no head in it
            stream += noise + peer.status(SimpleNamespace(ident=i, error=0), data)
        buffer, found = bytearray(), []
        while stream:
            size = rng.randrange(1, 9)
            buffer += stream[:size]
            stream = stream[size:]
            while (packet := family.take(buffer)) is not None:
                found.append(packet)
        assert [(one.ident, one.data) for one in found] == list(enumerate(datas))


@pytest.mark.parametrize(("family", "peer"), PAIRS)
def test_an_answer_with_a_wrong_bit_is_dropped_and_the_next_one_is_found(family, peer):
    good = peer.status(SimpleNamespace(ident=3, error=0), bytes(20))
    for at in range(len(good)):
        broken = bytearray(good)
        broken[at] ^= 0x04
        buffer = broken + good * 3  # a wrong length may swallow some
        found = []
        while (packet := family.take(buffer)) is not None:
            found.append(packet)
        assert found
        assert all(one.ident == 3 and one.data == bytes(20) for one in found)


@pytest.mark.parametrize(
    ("register", "value", "coded"),
    [
        (Register("r", 5, 2, sign_bit=15), -300, b"\x2c\x81"),
        (Register("r", 5, 2, sign_bit=11), -1, b"\x01\x08"),
        (Register("r", 5, 4, signed=True), -2, b"\xfe\xff\xff\xff"),
        (Register("r", 5, 1), 255, b"\xff"),
    ],
)
def test_registers_by_hand(register, value, coded):
    assert register.encode(value) == coded
    assert register.decode(coded) == value
    assert register.decode(b"abc" + coded + b"xyz", start=2) == value
    with pytest.raises(OverflowError):
        register.encode(1 << 40)


@given(st.integers(-(2**11) + 1, 2**11 - 1))
def test_registers_return_what_was_written(value):
    for register in (Register("r", 0, 2, sign_bit=11), Register("r", 0, 2, signed=True)):
        assert register.decode(register.encode(value)) == value


def test_the_state_is_in_stated_units():
    peer, memory = FeetechProtocol(), bytearray(128)
    peer.set_present(memory, 1234, -500, -0.25)
    memory[62], memory[63] = 74, 31
    state = Feetech().state(bytes(memory[56:66]), 56, 777)
    assert state == (1234, -500.0, -0.25, 7.4, 31.0)
    peer, memory = DynamixelProtocol(), bytearray(256)
    peer.set_present(memory, -77, 4096, 0.5)
    memory[144:147] = b"\x78\x00\x1e"
    for start, size in Dynamixel().state_blocks:
        state = Dynamixel().state(bytes(memory[start : start + size]), start, 1060)
        assert state.position == -77
        assert state.velocity == pytest.approx(4096, abs=10)
        assert state[2:] == (0.5, 12.0, 30.0)
