"""Security and bad manners, against the running console over real sockets, with a control loop beside it."""

import asyncio
import contextlib
import json
import socket
import time

import aiohttp
import pytest
from pages import LEAD, TOKEN, Rig, held, page, run

from robot_rl.console.access.address import Address, ConsoleError
from robot_rl.console.server import Console

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


@pytest.mark.parametrize(("token", "status"), [("wrong", 401), (TOKEN, 200)])
def test_prometheus_needs_the_token_where_pages_do(tmp_path, token, status):
    async def test():
        headers = {"Authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession() as session, session.get(f"{rig.url}/metrics", headers=headers) as answer:
            assert answer.status == status
            if status == 200:
                assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
                assert "robot_rl_env_steps_wanted" in await answer.text()

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


@pytest.mark.slow
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
            while rig.console.page_count < 1:
                await asyncio.sleep(0.01)
            before, start = len(rig.io.commands), time.monotonic()
            while rig.console.page_count:
                await asyncio.sleep(0.05)
        assert len(rig.io.commands) - before > 10 * (time.monotonic() - start), "control went on meanwhile"
        raw.close()

    run(test)


def test_silent_sockets_take_no_place_and_the_operator_can_stop(rig):
    async def test():
        async with aiohttp.ClientSession() as session, contextlib.AsyncExitStack() as stack:
            silent = [await stack.enter_async_context(session.ws_connect(f"{rig.url}/ws")) for _ in range(40)]
            async with page(rig) as anna:
                await anna.say(type="do", what="e-stop")
                await held(rig, "e-stop")
            async with asyncio.timeout(10):
                assert (await silent[0].receive()).data == 4409, "the oldest at the door makes room"

    run(test)


def test_who_comes_last_makes_room_but_never_who_is_in_control(rig):
    """However many pages are open, one more comes in and may stop; who is in control stays."""

    async def test():
        async with contextlib.AsyncExitStack() as stack:
            pages = [await stack.enter_async_context(page(rig, f"page {number}")) for number in range(11)]
            anna = await stack.enter_async_context(page(rig))
            await anna.take()
            ben = await stack.enter_async_context(page(rig, "Ben"))
            assert await pages[10].gone() == 4409, "the newest that is not in control"
            await ben.say(type="do", what="pause")
            await held(rig, "pause")
            await stack.enter_async_context(page(rig, "Cleo"))
            assert await ben.gone() == 4409
            assert (await pages[0].hear("state", lambda m: m["owner"]))["owner"] == "Anna"
            assert rig.console.page_count == 12

    run(test)


async def connected(rig):
    """A socket that speaks WebSocket as far as it must, and then never answers a ping."""
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    upgrade = f"Upgrade: websocket\r\nConnection: Upgrade\r\n{key}\r\n"
    writer.write(f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{rig.port}\r\n{upgrade}".encode())
    message = json.dumps({"type": "hello"}).encode()
    writer.write(bytes([0x81, 0x80 | len(message), 0, 0, 0, 0]) + message)  # masked with zeros
    return reader, writer


def test_a_page_that_answers_no_ping_is_dropped(tmp_path):
    async def test():
        reader, writer = await connected(rig)
        async with asyncio.timeout(10):
            while rig.console.page_count < 1:
                await asyncio.sleep(0.01)
            while await reader.read(65536):
                pass
            while rig.console.page_count:
                await asyncio.sleep(0.01)
        writer.close()

    with Rig(tmp_path, silence=0.5) as rig:
        run(test)


@pytest.mark.parametrize(
    "headers", ["Host: a:b", "Host: [", "Host: a b", "Host:", "Host: 127.0.0.1:{port}\r\nOrigin: http://["]
)
@pytest.mark.parametrize("path", ["/", "/ws", "/static/main.js"])
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_malformed_headers_are_refused_without_a_traceback(tmp_path, caplog, host, path, headers):
    async def test():
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        writer.write(f"GET {path} HTTP/1.1\r\n{headers.format(port=rig.port)}\r\n\r\n".encode())
        status = (await reader.readline()).split()[1]
        writer.close()
        assert status == b"400"

    with Rig(tmp_path, host, TOKEN) as rig:
        run(test)
    assert "Traceback" not in caplog.text


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
