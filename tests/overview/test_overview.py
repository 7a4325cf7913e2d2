"""All robots on one page: real consoles, a real overview between them and a page, cables that are cut."""

import asyncio
import contextlib
import json
import re
import signal
import socket
from urllib.parse import quote

import aiohttp
import pytest
from aiohttp import web
from overviews import Served, two_robots
from pages import TOKEN, Rig, eventually, run
from running import start

from robot_rl.console.access.tls import fingerprint, own_certificate
from robot_rl.errors import ConfigError
from robot_rl.overview.robot_address import RobotAddress

STOP = {"type": "do", "what": "stop all"}


@contextlib.asynccontextmanager
async def page(served, token="", name="Berta"):
    """A page of the overview, as a program."""
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{served.url}/ws") as socket:
        await socket.send_json({"type": "hello", "name": name, "token": token})
        yield socket


async def shown(socket, wanted):
    """The robots by name, once a page shows them so."""
    async with asyncio.timeout(10):
        async for message in socket:
            if message.type == aiohttp.WSMsgType.TEXT:
                robots = {robot["name"]: robot for robot in json.loads(message.data)["robots"]}
                if wanted(robots):
                    return robots
    raise ConnectionError(socket.close_code)


def test_all_robots_are_shown_and_one_message_stops_them(tmp_path):
    with two_robots(tmp_path, filmed=True) as (served, first, second):

        async def test():
            async with page(served) as socket:
                robots = await shown(socket, lambda robots: all(robot["connected"] for robot in robots.values()))
                assert [robots[name]["job"]["task"] for name in ("arm1", "arm2")] == [first.board.job["task"]] * 2
                assert robots["arm1"]["page"] == f"{first.url}/"
                await socket.send_json(STOP)
                await shown(socket, lambda robots: all(robot["state"]["holds"] for robot in robots.values()))

        run(test)
        for rig in (first, second):
            assert rig.holds["e-stop"] == "emergency stop by Berta at the overview"
            assert '"Berta at the overview"' in rig.log.read_text(), "the record names the person"
        assert not any(robot.facts()["stop_wanted"] for robot in served.robots)
        assert eventually(lambda: served.robot("arm1").picture[1].startswith(b"\xff\xd8")), "a JPEG"


def test_a_robot_that_is_away_is_named_and_stopped_as_soon_as_it_answers(tmp_path):
    (tmp_path / "before").mkdir()
    with Rig(tmp_path / "before") as first:
        port = first.port
    with Served({"arm1": f"http://127.0.0.1:{port}"}) as served:
        robot = served.robot("arm1")
        assert eventually(lambda: "no connection" in robot.facts()["why"])

        async def stop():
            async with page(served) as socket:
                await socket.send_json(STOP)
                robots = await shown(socket, lambda robots: robots["arm1"]["stop_wanted"])
                assert not robots["arm1"]["connected"]

        run(stop)
        (tmp_path / "after").mkdir()
        with Rig(tmp_path / "after", port=port) as rig:
            assert eventually(lambda: "e-stop" in rig.holds)
            assert eventually(lambda: not robot.facts()["stop_wanted"]), "its console has reported the stop"
            rig.supervision.release("e-stop")
            assert not eventually(lambda: "e-stop" in rig.holds, patience=1.5), "who stands there may release it"


def state(*holds):
    """What a console sends of an arm that holds for these reasons."""
    return {
        "type": "state",
        "phase": {"name": "training", "text": ""},
        "episode": {"id": None, "step": 0, "source": None},
        "kept": {"count": 0, "wanted": 0},
        "holds": [{"name": name, "reason": name} for name in holds],
        **{"health": {}, "question": None, "call": "", "owner": None, "ended": [], "remarks": []},
    }


@contextlib.asynccontextmanager
async def console(answer):
    """A web server in the place of a console, whose connections are answered by that; gives its address."""

    async def serve(request):
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await answer(socket)
        return socket

    app = web.Application()
    app.router.add_get("/ws", serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.mark.parametrize("released", [False, True], ids=["crashed", "released"])
def test_a_robot_that_was_stopped_from_here_and_crashed_is_stopped_again(released):
    stops = []

    async def answer(socket):
        """Reports a stop that is requested, then ends, as a process that crashes."""
        while "e-stop" not in (await socket.receive()).data:
            await socket.send_json(state())
            if stops:
                await asyncio.sleep(0.05)
        stops.append(1)
        await socket.send_json(state("e-stop"))
        if released:
            await socket.send_json(state())

    async def test():
        async with console(answer) as url:
            with Served({"arm1": url}) as served:
                async with page(served) as socket:
                    await shown(socket, lambda robots: robots["arm1"]["connected"])
                    await socket.send_json(STOP)
                    await shown(socket, lambda robots: len(stops) == (1 if released else 2))
                    await asyncio.sleep(2.5 if released else 0)
        assert len(stops) == (1 if released else 2)

    run(test)


@pytest.mark.parametrize(
    "sent",
    [b"", "[]", "no JSON", {"type": "state"}, {"type": "welcome", "job": None}, {"type": "state", "ended": [{}]}],
    ids=str,
)
def test_what_is_no_console_is_named_and_harms_nobody(tmp_path, sent):
    async def answer(socket):
        text = json.dumps(sent) if isinstance(sent, dict) else sent
        await (socket.send_bytes(text) if isinstance(text, bytes) else socket.send_str(text))
        async for _ in socket:
            pass

    async def test():
        named = "" if sent == b"" else "what answers there is no console of this version"
        async with console(answer) as url:
            with Rig(tmp_path) as rig, Served({"odd": url, "arm1": rig.url}) as served:
                async with page(served) as socket:
                    robots = await shown(
                        socket, lambda robots: robots["arm1"]["connected"] and named in robots["odd"]["why"]
                    )
                    assert not robots["odd"]["connected"]

    run(test)


def test_more_robots_than_a_library_connects_to_by_itself(tmp_path):
    with Rig(tmp_path) as rig:
        rig.supervision.hold("e-stop", "so that there is less to do")
        listener = socket.create_server(("127.0.0.1", 0), backlog=200)  # takes connections, and never answers
        silent = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with listener, Served({**{f"silent{n}": silent for n in range(110)}, "arm1": rig.url}) as served:
            assert eventually(lambda: served.robot("arm1").connected)
            assert eventually(lambda: served.robot("silent109").facts()["why"] == "it does not answer")


def test_nobody_is_stopped_who_was_given_up(tmp_path):
    (tmp_path / "before").mkdir()
    with Rig(tmp_path / "before") as first:
        port = first.port
    with Served({"arm1": f"http://127.0.0.1:{port}"}) as served:

        async def stop_and_give_up():
            async with page(served) as socket:
                await socket.send_json(STOP)
                await shown(socket, lambda robots: robots["arm1"]["stop_wanted"])
                await socket.send_json({"type": "do", "what": "give up"})
                await shown(socket, lambda robots: not robots["arm1"]["stop_wanted"])

        run(stop_and_give_up)
        (tmp_path / "after").mkdir()
        with Rig(tmp_path / "after", port=port) as rig:
            assert eventually(lambda: served.robot("arm1").connected)
            assert not eventually(lambda: "e-stop" in rig.holds, patience=1.0)


def test_a_wrong_token_and_a_console_that_ends_are_named(tmp_path):
    with contextlib.ExitStack() as until_it_ends:
        rig = until_it_ends.enter_context(Rig(tmp_path, token=TOKEN))
        robots = {"right": f"{rig.url}/#token={quote(TOKEN)}", "wrong": f"{rig.url}/#token=guess"}
        with Served(robots) as served:
            right, wrong = map(served.robot, ("right", "wrong"))
            assert eventually(lambda: right.connected)
            assert eventually(lambda: wrong.facts()["why"] == "the token is wrong")
            until_it_ends.close()
            assert eventually(lambda: not right.connected)
            assert right.facts()["state"] is not None, "what was known last stays in sight"


def test_the_certificate_of_a_console_is_known_by_its_fingerprint(tmp_path):
    kept = own_certificate(["127.0.0.1"], tmp_path / "kept")
    with Rig(tmp_path, certificate=(kept, kept)) as rig:
        url = f"https://127.0.0.1:{rig.port}/"
        robots = {"known": f"{url}#sha256={fingerprint(kept)}", "other": f"{url}#sha256={'00' * 32}", "unknown": url}
        with Served(robots) as served:
            assert eventually(lambda: served.robot("known").connected)
            assert eventually(lambda: "another fingerprint" in served.robot("other").facts()["why"])
            assert eventually(lambda: "signed by nobody" in served.robot("unknown").facts()["why"])


def test_a_page_needs_the_token_and_understood_messages(tmp_path):
    with Served({"arm1": "http://127.0.0.1:9"}, token=TOKEN) as served:

        async def test():
            async with page(served, token="guess") as socket:
                await socket.receive()
                assert socket.close_code == 4401
            async with page(served, token=TOKEN) as socket:
                await socket.send_json({"type": "lease", "take": True})
                async with asyncio.timeout(10):
                    while (message := await socket.receive_json())["type"] != "error":
                        pass
                assert message["text"] == "not understood; valid: do stop all, do give up"
            async with aiohttp.ClientSession() as session:
                other = {"Origin": "http://elsewhere.example"}
                async with session.get(served.url, headers=other) as answer:
                    assert answer.status == 403

        run(test)


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("ftp://arm1", "no address of a console"),
        ("arm1:8480", "no address of a console"),
        ("http://arm1:port/", "no address"),
        ("http://arm1/#tokn=1", "tokn means nothing in an address; valid: token, sha256"),
        ("https://arm1/#sha256=12", "64 hex digits"),
        (f"http://arm1/#sha256={'00' * 32}", "has no certificate"),
    ],
)
def test_bad_addresses_are_refused_by_name(url, complaint):
    with pytest.raises(ConfigError, match="arm1: ") as raised:
        RobotAddress.parse("arm1", url)
    assert complaint in str(raised.value)


def test_ctrl_c_again_while_it_shuts_down_ends_it_without_a_traceback():
    """A page that does not close holds the first one up for a second."""
    overview = start("fleet", "console", "arm1=http://127.0.0.1:9/", "--listen", "127.0.0.1:0")
    try:
        lines = []
        while not (found := re.search(r"http://127\.0\.0\.1:\d+", lines[-1] if lines else "")):
            lines.append(overview.stderr.readline())
            assert lines[-1], lines

        async def test():
            async with aiohttp.ClientSession() as session, session.ws_connect(f"{found[0]}/ws") as socket:
                await socket.send_json({"type": "hello", "name": "Berta", "token": ""})
                await socket.receive()
                for _ in range(3):
                    overview.send_signal(signal.SIGINT)
                    await asyncio.sleep(0.2)  # in which nothing is read, so the page does not close

        run(test)
        said = overview.communicate(timeout=20)[1]
        assert "Traceback" not in said, said
    finally:
        overview.kill()
