"""Security and faults, against the running console over real sockets, with a control loop beside it."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from dataclasses import replace

import aiohttp
import pytest
from fakes import SPEC, fake_workcell

from robot_rl.clock import FakeClock
from robot_rl.console.access import Address
from robot_rl.console.board import Board
from robot_rl.console.desk import read_log
from robot_rl.console.server import Console, ConsoleError
from robot_rl.data.schema import Source
from robot_rl.data.store import EpisodeStore
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.supervision import Supervision
from robot_rl.learn.rollout import Rollout, StoreRecorder
from robot_rl.teleop.mapping import default_map
from robot_rl.teleop.person import Person

HOLD_WITHIN = 0.3
"""What the console promises [s]."""
SLACK = 0.5
"""Of the measurements here, on a machine that does other things too [s]."""
LEAD = {"type": "input", "axes": [0.8, 0, 0, 0, 0, 0], "buttons": [False] * 4}
LONG = replace(SPEC, max_steps=5000)
TOKEN = "a token for tests, long enough"


class PacedClock(FakeClock):
    """Time passes for the robot as for the test, twenty times as fast."""

    def sleep_until(self, stamp):
        time.sleep(0.005)
        super().sleep_until(stamp)


class Rig:
    """A console beside a control loop that plays episodes with a policy that stands still."""

    def __init__(self, tmp_path, host="127.0.0.1", token=None):
        cell = fake_workcell(LONG)
        cell.io.clock.__class__ = PacedClock
        self.io, self.supervision = cell.io, Supervision(cell)
        self.board = Board("training", SPEC)
        self.board.phase("training", "learning", ())
        self.store = EpisodeStore.create(tmp_path / "store", {})
        self.log = tmp_path / "operator.jsonl"
        self.console = Console(
            Address(f"{host}:0"),
            self.supervision,
            self.board,
            lambda name: None,
            token=token,
            store=tmp_path / "store",
            log=self.log,
        )
        self.person = Person([(self.console.device, default_map("browser"))], SPEC, self.supervision)
        env = RobotEnv(self.supervision.workcell(self.person), interventions=True)
        self._rollout = Rollout(env, None, None, (0,), [StoreRecorder(self.store), self.board])
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._control)
        self.failure = None

    def _control(self):
        number = 0
        try:
            while not self._end.is_set():
                self.person.watch()
                if self.supervision.wait(seconds=0.01):
                    self._rollout.play(number, f"episode-{number}", deterministic=True)
                    number += 1
        except Exception as error:  # told by the test
            self.failure = error
            raise

    def __enter__(self):
        self.console.__enter__()
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._end.set()
        self.supervision.cut("the test is over")
        for hold in self.supervision.holds:
            self.supervision.release(hold.name)
        self._thread.join()
        self.console.__exit__()
        self.store.close()

    @property
    def port(self):
        return self.console._address.port

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def holds(self):
        return {hold.name: hold.reason for hold in self.supervision.holds}


@pytest.fixture
def rig(tmp_path):
    with Rig(tmp_path) as made:
        yield made
        assert made.failure is None
        assert made._thread.is_alive()


class Page:
    """A page, as a program."""

    def __init__(self, session, socket):
        self.session, self.socket, self.job = session, socket, None
        self.beats = None

    async def say(self, **message):
        await self.socket.send_str(json.dumps(message))

    async def hear(self, kind, where=lambda message: True):
        """The next message of a kind."""
        async with asyncio.timeout(10):
            async for message in self.socket:
                if message.type == aiohttp.WSMsgType.TEXT:
                    heard = json.loads(message.data)
                    if heard["type"] == kind and where(heard):
                        return heard
        raise ConnectionError(self.socket.close_code)

    async def gone(self):
        """The code with which the page was sent away."""
        async with asyncio.timeout(10):
            while not self.socket.closed:
                await self.socket.receive()
        return self.socket.close_code

    async def take(self, axes=(0, 0, 0, 0, 0, 0)):
        """Takes control, and says from now on how its hands are held."""
        await self.say(type="lease", take=True)
        self.axes = list(axes)
        self.beats = asyncio.create_task(self._beat())

    async def take_over(self, rig):
        """Takes control and leads until the person is in control of the arm."""
        await self.take(LEAD["axes"])
        async with asyncio.timeout(10):
            while rig.person.leading is None:
                await asyncio.sleep(0.02)

    async def _beat(self):
        with contextlib.suppress(ConnectionError):
            while True:
                await self.say(**{**LEAD, "axes": self.axes})
                await asyncio.sleep(0.03)

    async def give_back(self):
        await self.quiet()
        await self.say(type="lease", take=False)

    async def quiet(self):
        """Says nothing more of itself."""
        if self.beats is not None:
            self.beats.cancel()
            await asyncio.gather(self.beats, return_exceptions=True)
            self.beats = None


@contextlib.asynccontextmanager
async def page(rig, name="Anna", token="", **options):
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{rig.url}/ws", **options) as socket:
        made = Page(session, socket)
        await made.say(type="hello", name=name, token=token)
        made.job = (await made.hear("welcome"))["job"]
        try:
            yield made
        finally:
            await made.quiet()


async def held(rig, name):
    """How long it takes until the arm is held for that reason [s]."""
    start = time.monotonic()
    async with asyncio.timeout(10):
        while name not in rig.holds:
            await asyncio.sleep(0.002)
    return time.monotonic() - start


def run(test):
    asyncio.run(test())


# --------------------------------------------------------------------- coming in


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1]])
def test_nobody_without_the_token_sees_or_moves_anything(tmp_path, token):
    async def test():
        async with aiohttp.ClientSession() as session:
            async with session.ws_connect(f"{rig.url}/ws") as socket:
                await socket.send_str(json.dumps({"type": "hello", "token": token}))
                await socket.send_str(json.dumps({"type": "do", "what": "pause"}))
                message = await socket.receive()
                assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, 4401)
            headers = {"Authorization": f"Bearer {token}"}
            async with session.get(f"{rig.url}/episodes/episode-0", headers=headers) as answer:
                assert answer.status == 401
        assert rig.holds == {}
        async with page(rig, token=TOKEN) as inside:
            await inside.hear("state")

    with Rig(tmp_path, "0.0.0.0", TOKEN) as rig:
        run(test)


def test_silence_at_the_door_is_no_way_in(rig):
    async def test():
        async with aiohttp.ClientSession() as session, session.ws_connect(f"{rig.url}/ws") as socket:
            await socket.send_str(json.dumps(LEAD))
            assert (await socket.receive()).data == 4401

    run(test)


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Host": "evil.example"}])
def test_other_pages_are_refused(rig, headers):
    async def test():
        async with aiohttp.ClientSession(headers=headers) as session:
            with pytest.raises(aiohttp.WSServerHandshakeError) as error:
                await session.ws_connect(f"{rig.url}/ws")
            assert error.value.status == 403
            async with session.get(f"{rig.url}/") as answer:
                assert answer.status == 403

    run(test)


def test_the_page_may_load_nothing_from_elsewhere_and_be_framed_by_nobody(rig):
    async def test():
        async with aiohttp.ClientSession() as session:
            for path in ("/", "/static/main.js", "/static/style.css"):
                async with session.get(rig.url + path) as answer:
                    assert answer.status == 200
                    policy = answer.headers["Content-Security-Policy"]
                    assert "default-src 'self'" in policy
                    assert "frame-ancestors 'none'" in policy
            for path in (
                "/static/../server.py",
                "/static/..%2fserver.py",
                "/episodes/..%2f..%2fstore.json",
                "/nothing",
            ):
                async with session.get(rig.url + path) as answer:
                    assert answer.status == 404

    run(test)


def test_a_port_in_use_is_told_with_the_cure(rig):
    with (
        pytest.raises(ConsoleError, match=r"cannot listen on 127.0.0.1:\d+: .*choose another port with --console"),
        Console(Address(f"127.0.0.1:{rig.port}"), rig.supervision, rig.board, print),
    ):
        pass


# ----------------------------------------------------------------- being in control


def test_exactly_one_operator_leads_and_everybody_may_stop(rig):
    async def test():
        async with page(rig) as anna, page(rig, "Ben") as ben:
            await anna.take_over(rig)
            await ben.say(type="lease", take=True)
            assert "Anna is in control; ask them" in (await ben.hear("error"))["text"]
            assert (await ben.hear("state"))["owner"] == "Anna"
            await ben.say(type="do", what="success")
            assert "Anna is in control" in (await ben.hear("error"))["text"]
            await ben.say(**{**LEAD, "axes": [-1, 0, 0, 0, 0, 0]})
            assert rig.console.device.read().axes[0] > 0

            await ben.say(type="do", what="e-stop")
            await held(rig, "e-stop")
            await ben.say(type="do", what="release e-stop")
            await ben.hear("error")
            assert "e-stop" in rig.holds
            await anna.say(type="do", what="release e-stop")
            state = await anna.hear("state", lambda m: m["holds"] and m["holds"][0]["name"] != "e-stop")
            assert state["holds"][0]["name"] == "pause", "released, it still waits for Resume"
            commands = len(rig.io.commands)
            await asyncio.sleep(0.1)
            assert len(rig.io.commands) == commands
            await anna.say(type="do", what="resume")
            await anna.hear("state", lambda m: not m["holds"] and m["episode"]["source"])
            await anna.give_back()
            await ben.take()
            assert (await ben.hear("state", lambda m: m["mine"]))["owner"] == "Ben"

    run(test)


@pytest.mark.parametrize("how", ["silent", "closed", "cut", "hidden"])
def test_an_operator_who_is_lost_holds_the_arm_and_the_data_are_intact(rig, how):
    async def test():
        async with page(rig) as anna:
            await anna.take_over(rig)
            await anna.quiet()
            seen = time.monotonic()
            await anna.say(**LEAD)
            if how == "closed":
                await anna.socket.close()
            elif how == "cut":
                anna.socket._response.connection.transport.abort()
            elif how == "hidden":
                await anna.say(type="hidden")
            await held(rig, "operator")
            waited = time.monotonic() - seen
            assert waited <= HOLD_WITHIN + SLACK
            commands = len(rig.io.commands)
            await asyncio.sleep(0.2)
            assert len(rig.io.commands) == commands, "nothing moves until somebody says so"
        async with page(rig, "Ben") as ben:
            assert "Anna" in (await ben.hear("state"))["holds"][0]["reason"]
            await ben.say(type="do", what="resume")
            assert "press Take control first" in (await ben.hear("error"))["text"]
            await ben.take()
            await ben.say(type="do", what="resume")
            await ben.hear("state", lambda m: not m["holds"] and m["episode"]["source"] == "policy")
            await ben.give_back()
            await ben.hear("state", lambda m: m["owner"] is None)

    run(test)
    cut = [row for row in rig.store.summaries() if "cut" in row.metadata]
    assert len(cut) == 1
    episode = rig.store.read(cut[0].episode_id)
    assert "Anna" in episode.metadata["cut"] or "newest input" in episode.metadata["cut"]
    assert episode.truncated[-1]
    assert episode.source[-1] == Source.HOLD
    assert not episode.action[-1].any()
    assert Source.HUMAN in episode.source
    assert [row["kind"] for row in read_log(rig.log)] == ["took control", "lost", "took control", "do", "left"]


def test_giving_control_back_on_purpose_lets_the_policy_go_on(rig):
    async def test():
        async with page(rig) as anna:
            await anna.take_over(rig)
            await anna.give_back()
        async with page(rig, "Ben") as ben:
            await ben.hear("state", lambda m: m["episode"]["source"] == "policy")
        assert rig.holds == {}

    run(test)


def test_judgement_notes_and_labels_are_recorded_as_the_persons(rig):
    async def test():
        async with page(rig) as anna:
            await anna.take_over(rig)
            await anna.say(type="do", what="success")
            ended = await anna.hear("state", lambda m: any(row["judge"] == "operator" for row in m["ended"]))
            name = next(row["id"] for row in ended["ended"] if row["judge"] == "operator")
            await anna.say(type="note", text="the cable was in the way")
            await anna.hear("noted")
            await anna.say(type="label", episode=name, success=False)
            await anna.hear("labelled")
            async with anna.session.get(f"{rig.url}/episodes/{name}") as answer:
                assert (await answer.json())["steps"] >= 1
            await anna.give_back()
            await anna.hear("state", lambda m: m["owner"] is None)
            return name

    name = asyncio.run(test())
    recorded = rig.store.read(name)
    assert (recorded.reward[-1], recorded.reward_source, recorded.metadata["success"]) == (1.0, "operator", True)
    corrected = rig.store.read(name, rewards="operator-1")
    assert not corrected.reward.any()
    texts = [row["text"] for row in read_log(rig.log) if row["kind"] == "note"]
    assert texts == ["the cable was in the way"]


# --------------------------------------------------------------------- bad manners


@pytest.mark.parametrize("text", ["", "{", "[]", '{"type":"input"}', '{"type":"do"}', "\x00", '"' * 100])
def test_malformed_messages_are_answered_and_enough_of_them_end_it(rig, text):
    async def test():
        async with page(rig) as anna:
            await anna.socket.send_str(text)
            assert (await anna.hear("error"))["text"].startswith("not understood")
            for _ in range(12):
                if not anna.socket.closed:
                    await anna.socket.send_str(text)
            assert await anna.gone() == 4400
        async with page(rig) as again:
            await again.hear("state")

    run(test)


@pytest.mark.parametrize("binary", [True, False])
def test_an_oversized_message_ends_the_connection_and_holds(rig, binary):
    async def test():
        async with page(rig) as anna:
            await anna.take_over(rig)
            await (anna.socket.send_bytes(bytes(10**6)) if binary else anna.socket.send_str("x" * 10**6))
            await held(rig, "operator")
            assert await anna.gone() in (1009, 1006)

    run(test)


def test_a_thousand_messages_a_second_end_the_connection_and_hold(rig):
    async def test():
        async with page(rig) as anna:
            await anna.take_over(rig)
            with contextlib.suppress(ConnectionError):
                for _ in range(1000):
                    await anna.say(**LEAD)
            await held(rig, "operator")
            assert "too many messages" in rig.holds["operator"]
            assert await anna.gone() == 4429

    run(test)


def test_a_slow_reader_is_sent_away_and_nobody_waits_for_it(rig):
    """A page that takes nothing: its buffers are small here, so that they are full soon."""

    async def test():
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        raw.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(raw, ("127.0.0.1", rig.port))
        key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        request = (
            f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{rig.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{key}\r\n"
        )
        hello = json.dumps({"type": "hello"}).encode()
        frame = bytes([0x81, 0x80 | len(hello), 0, 0, 0, 0]) + hello  # masked with zeros
        await loop.sock_sendall(raw, request.encode() + frame)
        rig.board.remark("x" * 200_000)  # every state is large now
        async with asyncio.timeout(60):
            while len(rig.console._pages) < 1:
                await asyncio.sleep(0.01)
            before, start = len(rig.io.commands), time.monotonic()
            while rig.console._pages:
                await asyncio.sleep(0.05)
        assert len(rig.io.commands) - before > 10 * (time.monotonic() - start), "control went on meanwhile"
        raw.close()

    run(test)


def test_more_pages_than_allowed_are_told_so(rig):
    async def test():
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(12):
                await stack.enter_async_context(page(rig))
            async with aiohttp.ClientSession() as session, session.get(f"{rig.url}/ws") as answer:
                assert answer.status == 503
                assert "pages are open" in await answer.text()

    run(test)


def test_an_unknown_button_and_an_unknown_episode(rig):
    async def test():
        async with page(rig) as anna:
            await anna.take()
            await anna.say(type="do", what="dance")
            assert "unknown button 'dance'; valid: e-stop, failure" in (await anna.hear("error"))["text"]
            await anna.give_back()
            async with anna.session.get(f"{rig.url}/episodes/none") as answer:
                assert (answer.status, "no episode 'none'" in await answer.text()) == (404, True)

    run(test)
