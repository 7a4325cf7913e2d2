"""A running console with a control loop beside it, and pages that are programs."""

import asyncio
import contextlib
import json
import threading
import time
from dataclasses import replace

import aiohttp
import numpy as np
from fakes import ARMS_SPEC, SPEC, FakeRobot, fake_arms, fake_workcell

from robot_rl.clock import NS_PER_S, FakeClock
from robot_rl.console.access.address import Address
from robot_rl.console.job_state import JobState
from robot_rl.console.scene import Geometry
from robot_rl.console.server import Console
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.supervision import Supervision
from robot_rl.learn.actor import Rollout, StoreRecorder
from robot_rl.teleop.mapping import default_map
from robot_rl.teleop.several_arms import make_person

HOLD_WITHIN = 0.3
"""What the console promises [s]."""
SLACK = 0.5
"""Of the measurements here, on a machine that does other things too [s]."""
LEAD = {"type": "input", "axes": [0.8, 0, 0, 0, 0, 0], "buttons": [False] * 4}
LONG = replace(SPEC, max_steps=5000)
HALF_TURN = (0.0, 0.0, 0.0, 1.0)
FACING = replace(
    ARMS_SPEC,
    max_steps=5000,
    arms={
        "left": replace(ARMS_SPEC.arms["left"], action_axes=("x", "y", "z")),
        "right": replace(ARMS_SPEC.arms["right"], action_axes=("x", "y", "z"), base_quaternion=HALF_TURN),
    },
)
"""Two arms whose bases look at each other."""
TOKEN = "a token for tests, long enough"


class PacedClock(FakeClock):
    """Time passes for the robot as for the test, twenty times as fast."""

    def sleep_until(self, stamp):
        time.sleep(0.005)
        super().sleep_until(stamp)


class FilmedRobot(FakeRobot):
    """The point, with two cameras that see noise."""

    def read(self):
        frames = np.random.default_rng(self.clock.now()).integers(0, 256, (2, 48, 64, 3), np.uint8)
        return replace(super().read(), images=dict(zip(("front", "wrist"), frames, strict=True)))


class ForcelessRobot(FakeRobot):
    """The point of an arm that measures no force."""

    def read(self):
        return replace(super().read(), wrench=None)


class Rig:
    """A console beside a control loop that plays episodes with a policy that stands still."""

    def __init__(
        self,
        tmp_path,
        host="127.0.0.1",
        token=None,
        *,
        job="training",
        filmed=False,
        forceless=False,
        mounts=None,
        links=None,
        port=0,
        clock=PacedClock,
        facing=False,
        recorded=True,
        **options,
    ):
        if facing:
            cell, self.robots = fake_arms(FACING, clock(start=NS_PER_S))
        else:
            cell = replace(fake_workcell(LONG), measures_wrench=not forceless)
            cell.io.clock.__class__ = clock
        spec = cell.task.spec
        if filmed:
            cell.io.__class__ = FilmedRobot
        if forceless:
            cell.io.__class__ = ForcelessRobot
        self.io, self.supervision = cell.io, Supervision(cell)
        self.board = JobState(job, spec)
        self.board.phase("training", "learning", ())
        self.store = EpisodeStore.create(tmp_path / "store", {})
        self.log = tmp_path / "operator.jsonl"
        self.console = Console(
            Address(f"{host}:{port}"),
            self.supervision,
            self.board,
            lambda name: None,
            token=token,
            store=tmp_path / "store",
            log=self.log if recorded else None,
            geometry=Geometry(mounts or {}, links),
            **options,
        )
        first, other = ([(device, default_map("browser"))] for device in self.console.devices)
        self.person = make_person({}, first, other, spec, self.supervision, lambda role: None, self.board.choose)
        if facing:
            self.board.choose(self.person.chosen)
        env = RobotEnv(self.supervision.workcell(self.person), interventions=True)
        self._rollout = Rollout(env, None, None, (0,), [StoreRecorder(self.store), self.board])
        self._end = threading.Event()
        self.thread = threading.Thread(target=self._control)
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
        self.thread.start()
        return self

    def __exit__(self, *exception):
        self._end.set()
        while self.thread.is_alive():  # what is said before an episode begins does not count for it
            self.supervision.cut("the test is over")
            for hold in self.supervision.holds:
                self.supervision.release(hold.name)
            self.thread.join(0.05)
        self.console.__exit__()
        self.store.close()

    @property
    def port(self):
        return self.console.port

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def holds(self):
        return {hold.name: hold.reason for hold in self.supervision.holds}


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
        """Takes control and leads until a step of the person is recorded; `leading` is said before it is done."""
        await self.take(LEAD["axes"])
        async with asyncio.timeout(10):
            while rig.board.state()["episode"]["source"] != "human":
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


def eventually(condition, patience=10.0):
    """Whether that comes true within some seconds."""
    end = time.monotonic() + patience
    while not (true := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return true


async def held(rig, name):
    """How long it takes until the arm is held for that reason [s]."""
    start = time.monotonic()
    async with asyncio.timeout(10):
        while name not in rig.holds:
            await asyncio.sleep(0.002)
    return time.monotonic() - start


def run(test):
    asyncio.run(test())
