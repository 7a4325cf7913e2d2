"""A running overview of consoles."""

import asyncio
import contextlib
import threading

from pages import Rig

from robot_rl.overview.robot_address import OverviewAddress, RobotAddress
from robot_rl.overview.server import Overview
from robot_rl.overview.watched_robot import WatchedRobot


class Served:
    """An overview in a thread of its own."""

    def __init__(self, robots, token=None, port=0):
        self.said = []
        self.robots = [WatchedRobot(RobotAddress.parse(name, url), self.said.append) for name, url in robots.items()]
        self.overview = Overview(OverviewAddress(f"127.0.0.1:{port}"), self.robots, token=token, log=self.said.append)
        self._ready, self._task, self._loop = threading.Event(), None, None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    async def _serve(self):
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        with contextlib.suppress(asyncio.CancelledError):
            await self.overview.serve(self._ready.set)

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *exception):
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(10)
        assert not self._thread.is_alive()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.overview.address.port}"

    def robot(self, name):
        return next(robot for robot in self.robots if robot.address.name == name)


@contextlib.contextmanager
def two_robots(folder, **options):
    """Two consoles, each before an arm of its own, and an overview of both."""
    for name in ("arm1", "arm2"):
        (folder / name).mkdir()
    with (
        Rig(folder / "arm1", **options) as first,
        Rig(folder / "arm2", **options) as second,
        Served({"arm1": first.url, "arm2": second.url}) as served,
    ):
        yield served, first, second
