"""Lying stores, checkpoints, data sets and bags: each is read right, repaired on request, or refused in one clear line.

    python benchmarks/lying_files.py --cases 1000

Each case is an honest directory with a few lies, whose checksums are mostly made right again. The commands run in a
process per case. A fault is a traceback, a signal, more than the limits on time and memory, code that ran, a control
character on the output, or a store that `data verify` accepts and `data ls` or `data info` does not.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import hashlib
import io
import json
import os
import pickle
import random
import re
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import mcap_ros2.writer
import msgpack
import numpy as np
import pyarrow.parquet as pq
import yaml

from robot_rl.cli.main import main as robot_rl
from robot_rl.config.load import dump_config, load_config
from robot_rl.data.formats.lerobot_export import export_lerobot
from robot_rl.data.formats.lerobot_layout import EXTRA
from robot_rl.data.schema import Episode
from robot_rl.data.store.codec import decode, encode
from robot_rl.data.store.journal import JournalWriter
from robot_rl.data.store.reward_overlays import OverlayWriter
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import RobotRLError
from robot_rl.learn.checkpoint import MAGIC, encode_checkpoint, load_checkpoint

SECONDS, MEGABYTES = 10.0, 500.0
"""Limits of a command, of its processor time, and of the memory of the process that runs all commands of a case."""
PATIENCE = 120
"""Limit on the wall clock [s]: a command that waits for ever uses no processor time, and this machine may be busy."""
RAW = re.compile(r"[^\n\x20-\x7e\xa0-\U0010ffff]|[\u202a-\u202e\u2066-\u2069\u200e\u200f]")
FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen")
NASTY = ["\x1b[2J\x1b]0;gone\x07", "a\rb", "\u202eabc", "\ud800", "../../x", "/etc/passwd", "x" * 100_000, "\x00", "\n"]
MAPPING = {
    "rate": 10,
    "observations": {"state/a": {"topic": "/a", "fields": ["x", "y"]}},
    "action": {"topic": "/c", "fields": ["x", "y"]},
}


class Runs:
    """Makes a file named `ran` where it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """Return what unpickling calls."""
        return os.system, ("touch ran",)


def nonsense(rng: random.Random) -> Any:
    """Return a value that hardly belongs where it is put."""
    deep: Any = 1
    for _ in range(rng.choice([50, 300, 900])):
        deep = rng.choice([[deep], {"a": deep}])
    numbers = [-5, 0, 1, 7, 10**9, 3 * 10**8, 10**12, 2**63, 10**30, 1e30, -0.5, float("nan"), float("inf")]
    others = [None, True, "many", "U500000000", "|O", [], {}, [1, 2], ["a"], {"a": 1}, deep, *NASTY]
    return rng.choice([rng.choice(numbers), rng.choice(others)])


def places(tree: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield all places in nested values."""
    branches = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in branches:
        yield (*before, key)
        yield from places(value, (*before, key))


def lie(rng: random.Random, tree: Any) -> Any:
    """Replace, or remove, one value in a tree."""
    path = rng.choice(list(places(tree)) or [()])
    if not path:
        return nonsense(rng)
    branch = tree
    for key in path[:-1]:
        branch = branch[key]
    if isinstance(branch, dict) and rng.random() < 0.2:
        del branch[path[-1]]
    else:
        branch[path[-1]] = nonsense(rng)
    return tree


def lie_in_json(rng: random.Random, path: Path) -> None:
    """Lie in a JSON file."""
    path.write_text(json.dumps(lie(rng, json.loads(path.read_bytes()))))


def damage(rng: random.Random, path: Path) -> None:
    """Flip a byte, cut the file short, append to it, or empty it."""
    content = bytearray(path.read_bytes())
    at = rng.randrange(len(content))
    content[at] ^= 1 << rng.randrange(8)
    path.write_bytes(rng.choice([bytes(content), bytes(content[:at]), bytes(content) + b"more", b"", b"[" * 100_000]))


def replace_by_another_kind(rng: random.Random, path: Path) -> None:
    """Put a FIFO, a device, a link or a directory in the place of a file."""
    path.unlink()
    make = [os.mkfifo, os.mkdir, *(lambda p, to=to: os.symlink(to, p) for to in ("/dev/zero", "nowhere", path.name))]
    rng.choice(make)(path)


def lie_in_zip(rng: random.Random, path: Path) -> None:
    """Lie in a member of an archive, whose checksums are right."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(files))
    if name.endswith(".json"):
        files[name] = json.dumps(lie(rng, json.loads(files[name]))).encode()
    elif name.endswith(".npy"):
        made = io.BytesIO()
        lies = [
            np.array([Runs()], object),
            np.zeros(10**6),
            np.zeros((2, 2), np.float32),
            np.full(6, np.nan, np.float32),
        ]
        np.save(made, rng.choice(lies), allow_pickle=True)
        bomb = files[name].replace(b"(6,), }", b"(10**12,), }").replace(b"(6,),", b"(900000000000,),")
        files[name] = rng.choice([made.getvalue(), bomb])
    else:
        data = bytearray(files[name])
        data[rng.randrange(min(16, len(data)))] = rng.randrange(256)
        files[name] = rng.choice([bytes(data), b"", pickle.dumps(Runs())])
    if rng.random() < 0.1:
        del files[name]
    if rng.random() < 0.1:
        array = {"zarr_format": 2, "shape": [6], "chunks": [6], "dtype": "|O", "fill_value": None, "order": "C"}
        array |= {"compressor": None, "filters": [{"id": "pickle", "protocol": 5}]}
        files |= {"x/.zarray": json.dumps(array).encode(), "x/0": pickle.dumps(Runs())}
    with zipfile.ZipFile(path, "w", rng.choice([zipfile.ZIP_STORED] * 9 + [zipfile.ZIP_DEFLATED])) as archive:
        for key, data in files.items():
            archive.writestr(key, data)


def lie_in_episode(rng: random.Random, path: Path) -> None:
    """Write an episode whose values cannot be true."""
    whole = decode(path.read_bytes())
    name = rng.choice(["reward", "action", "source", "stamp_obs", "terminated", "stamp_action"])
    column = getattr(whole, name).copy()
    column[rng.randrange(len(column) - 1)] = rng.choice([0, 1, -1, 9, 100])
    changes: dict[str, Any] = {name: column}
    if rng.random() < 0.5:
        changes = {"reward": np.full(len(whole), rng.choice([1e30, -1e30]), np.float32)}
    if rng.random() < 0.5:
        changes = {"metadata": {rng.choice(NASTY): rng.choice(NASTY), "task": nonsense(rng), "success": nonsense(rng)}}
    with contextlib.suppress(Exception):  # `Episode` refuses most of it itself
        path.write_bytes(encode(dataclasses.replace(whole, **changes)))


def lying_store(rng: random.Random, path: Path) -> list[list[str]]:
    """Lie in a store; return the commands."""
    file = rng.choice([file for file in path.rglob("*") if file.is_file() and file.suffix != ".lock"])
    if file.suffix == ".journal":
        lie_in_journal(rng, file)
    elif file.suffix == ".json":
        rng.choice([lie_in_json, lie_in_json, damage, replace_by_another_kind])(rng, file)
    else:
        ways = (
            [lie_in_zip] * 4 + [damage, replace_by_another_kind] + [lie_in_episode] * (file.parent.name == "episodes")
        )
        rng.choice(ways)(rng, file)
    verify = ["data", "verify", "--jobs", "1", str(path)]
    shown = [["data", "ls", str(path)], ["data", "info", str(path)], ["data", "ls", "--json", str(path)]]
    return [verify, *shown, ["inspect", str(path)], [*verify, "--repair"], verify, *shown]


def lie_in_journal(rng: random.Random, path: Path) -> None:
    """Lie in the head of a journal, whose checksum is right."""
    content, frame = path.read_bytes(), struct.Struct("<BII")
    start = 1 + content.index(b"\n")
    kind, length, _ = frame.unpack(content[start : start + frame.size])
    body = start + frame.size
    head = json.dumps(lie(rng, json.loads(content[body : body + length]))).encode()
    sealed = frame.pack(kind, len(head), zlib.crc32(head, zlib.crc32(bytes([kind])))) + head
    path.write_bytes(content[:start] + sealed + content[body + length :])


def lying_run(rng: random.Random, path: Path) -> list[list[str]]:
    """Lie in a checkpoint or in a file beside it; return the commands."""
    if rng.random() < 0.3:
        file = path / rng.choice(["checkpoint.pt", "provenance.json", "config.yaml", "summary.json"])
        way = rng.choice([damage, replace_by_another_kind, lie_in_json])
        (damage if way is lie_in_json and file.suffix != ".json" else way)(rng, file)
    else:
        file, sizes = path / "checkpoint.pt", struct.Struct("<QQ")
        content = file.read_bytes()
        start = len(MAGIC) + sizes.size
        rest, length = sizes.unpack(content[len(MAGIC) : start])
        index = msgpack.unpackb(content[start : start + length], strict_map_key=False)
        tree = lie(rng, index)
        entry = rng.choice([["float32", [10**12], 0, 4], ["load", [1], 0, 4], ["|O", [1], 0, 8], ["<f4", [1], -4, 4]])
        if rng.random() < 0.5 and isinstance(tree, dict):
            tree["payload"] = {"learner": msgpack.ExtType(rng.randrange(7), msgpack.packb(entry))}
        packed = b"\x91" * 5000
        with contextlib.suppress(ValueError, OverflowError, TypeError):  # msgpack itself refuses some lies
            packed = msgpack.packb(tree)
        body = MAGIC + sizes.pack(rest - length + len(packed), len(packed)) + packed + content[start + length : -32]
        file.write_bytes(body + hashlib.sha256(body).digest())
    return [["inspect", str(path)], ["inspect", "--json", str(path)], ["load", str(path / "checkpoint.pt")]]


def lying_data_set(rng: random.Random, path: Path) -> list[list[str]]:
    """Lie in a LeRobot data set; return the commands."""
    if rng.random() < 0.5:
        (path / EXTRA).unlink()
    files = [file for file in path.rglob("*") if file.is_file()]
    file = rng.choice([*files, *[path / "meta/info.json"] * len(files)])
    if file.suffix == ".json" and rng.random() < 0.8:
        lie_in_json(rng, file)
    elif file.suffix == ".parquet" and rng.random() < 0.7:
        table = pq.read_table(file)
        column = rng.randrange(table.num_columns)
        values = table.column(column).to_pylist()
        values[rng.randrange(len(values))] = nonsense(rng)
        with contextlib.suppress(Exception):  # of another type: pyarrow writes none
            pq.write_table(table.set_column(column, table.field(column), [values]), file)
    else:
        rng.choice([damage, replace_by_another_kind])(rng, file)
    return imported(path)


def imported(source: Path, *options: str) -> list[list[str]]:
    """Return the commands that import, and check what came of it."""
    out = str(source.with_name("imported"))
    return [["data", "import", str(source), "--out", out, *options], ["data", "verify", "--jobs", "1", out]]


def lying_bag(rng: random.Random, path: Path) -> list[list[str]]:
    """Lie in a bag or in its mapping; return the commands."""
    mapping = json.loads(json.dumps(MAPPING))
    if rng.random() < 0.4:
        mapping = lie(rng, mapping)
    else:
        point, stamps = "float64 x\nfloat64 y\n", list(range(0, 20 * 10**8, 10**8))
        with open(path / "bag.mcap", "wb") as stream:
            writer = mcap_ros2.writer.Writer(stream)
            if rng.random() < 0.4:
                point = rng.choice(["float64[] x\n", "string x\nstring y\n", "float64[1000000] x\nfloat64 y\n"])
            schema = writer.register_msgdef(rng.choice(["pkg/msg/P", "\x1b[2J/msg/P"]), point)
            if rng.random() < 0.3:
                rng.shuffle(stamps)
            for stamp in stamps:
                value = rng.choice([0.5] * 300 + [float("nan"), 1e300])
                message = {"x": value, "y": 0.0}
                with contextlib.suppress(Exception):
                    for topic in ("/a", rng.choice(["/c"] * 20 + ["/\x1b[2J"])):
                        writer.write_message(topic, schema, message, stamp, stamp)
            writer.finish()
        if rng.random() < 0.3:
            rng.choice([damage, replace_by_another_kind])(rng, path / "bag.mcap")
    with contextlib.suppress(yaml.YAMLError, UnicodeEncodeError, RecursionError):
        (path / "mapping.yaml").write_text(yaml.safe_dump(mapping))
    if rng.random() < 0.1:
        (path / "mapping.yaml").write_text(
            rng.choice(["[" * 100_000, "{a: &a [1], b: [*a, *a]}", "a: !!python/x 1", ""])
        )
    return imported(path, "--mapping", str(path / "mapping.yaml"))


KINDS: dict[str, Callable[[random.Random, Path], list[list[str]]]] = {
    "store": lying_store,
    "checkpoint": lying_run,
    "data set": lying_data_set,
    "bag": lying_bag,
}


def honest(number: int) -> Episode:
    """Return an episode that is in order."""
    last, stamps, action = np.arange(6) == 5, 10**9 + 10**8 * np.arange(7), np.full((6, 2), 0.5, np.float32)
    frames = np.random.default_rng(number).integers(0, 256, (7, 4, 6, 3), np.uint8)
    return Episode(
        episode_id=f"episode-{number}",
        observations={"state/a": np.full((7, 2), number, np.float32), "images/wrist": frames},
        action=action,
        action_policy=action,
        source=np.zeros(6, np.int8),
        reward=last.astype(np.float32),
        terminated=last,
        truncated=last & False,
        stamp_obs=stamps,
        stamp_action=stamps[:-1] + 1,
        metadata={"task": "reach", "success": True, "seed": number},
    )


def make_honest(folder: Path) -> None:
    """Make one honest directory of each kind."""
    with EpisodeStore.create(folder / "store", {"task": "reach"}) as store:
        for number in range(3):
            store.append(honest(number))
        with OverlayWriter(store.path, "judge", {"model": "x"}) as writer:
            writer.write(honest(0), store.fingerprint("episode-0"), np.ones(6, np.float32))
        export_lerobot(store, folder / "data set", fps=10.0)
    whole = honest(3)
    journal = JournalWriter(folder / "store/partial/episode-3.journal", whole.episode_id, {})
    for row in range(4):
        journal.write(whole.step(row))
    journal.close()
    shutil.copytree(folder / "store", (run := folder / "checkpoint") / "episodes")
    dump_config(load_config(None, ["task=reach"]), run / "config.yaml")
    facts = {"format": 1, "schema_version": 1, "task": "reach", "seed": 0, "starts": list[str]()}
    (run / "provenance.json").write_text(json.dumps(facts))
    keys = ("success_rate", "success_ci95", "episodes", "cycle_time_s", "wall_s")
    (run / "summary.json").write_text(json.dumps({"env_steps": 5, **dict.fromkeys(keys, 1.0)}))
    state = {"learner": {"w": np.ones(3, np.float32), "n": (1, 2)}, "env_steps": 5, "stored": 3}
    (run / "checkpoint.pt").write_bytes(b"".join(encode_checkpoint(state, metadata={"task": "reach"})))
    (folder / "bag").mkdir()
    with open(folder / "bag/bag.mcap", "wb") as stream:
        bag = mcap_ros2.writer.Writer(stream)
        schema = bag.register_msgdef("pkg/msg/P", "float64 x\nfloat64 y\n")
        for stamp in range(0, 20 * 10**8, 10**8):
            for topic in ("/a", "/c"):
                bag.write_message(topic, schema, {"x": 0.5, "y": 0.0}, stamp, stamp)
        bag.finish()


class Result(NamedTuple):
    """Results of a case: codes, most processor time of a command [s], peak memory [MB], and what must not be."""

    codes: list[int]
    seconds: float
    megabytes: float
    faults: list[str]


def processor_time() -> float:
    """Return the processor time of this process and of its children [s]."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def in_child(commands: list[list[str]], folder: Path) -> None:
    """Run the commands, and write code and seconds of each into files of the folder."""
    os.chdir(folder)
    ran: list[str] = []
    sys.addaudithook(lambda event, _: ran.append(event) if event.startswith(FORBIDDEN) else None)
    for number, command in enumerate(commands):
        if command[:2] == ["data", "verify"] and not Path(command[-1]).exists() and "--repair" not in command:
            continue  # what was not imported
        text = open(folder / f"{number}.txt", "w", encoding="utf-8")  # noqa: SIM115  (the process ends)
        sys.stdout = sys.stderr = text
        begun = processor_time()
        signal.alarm(PATIENCE)
        code = 0
        if command[0] != "load":
            code = robot_rl(command)
        else:
            try:
                load_checkpoint(Path(command[1]))
            except RobotRLError:
                code = 1
        text.flush()
        (folder / f"{number}.rc").write_text(json.dumps([command, code, processor_time() - begun]))
    if ran:
        (folder / "ran").touch()


def run_case(commands: list[list[str]], folder: Path) -> Result:
    """Run the commands of a case in a process of its own."""
    child = os.fork()
    if not child:
        try:
            in_child(commands, folder)
        finally:
            if sys.exc_info()[0] is not None:
                (folder / "trace").write_text(traceback.format_exc(), errors="backslashreplace")
            os._exit(0)
    _, status, usage = os.wait4(child, 0)
    done = [json.loads(file.read_text()) for file in sorted(folder.glob("*.rc"))]
    trace = folder / "trace"
    faults = [f"a traceback: ...{trace.read_text()[-700:]!r}"] if trace.exists() else []
    faults += [f"ended by signal {os.WTERMSIG(status)}"] if os.WIFSIGNALED(status) else []
    faults += ["code ran"] if list(folder.rglob("ran")) else []
    for number, (command, code, seconds) in enumerate(done):
        text = (folder / f"{number}.txt").read_text(encoding="utf-8", errors="surrogateescape")
        faults += [f"{command[:2]} took {seconds:.1f} s of processor time"] if seconds > SECONDS else []
        faults += [f"{command[:2]} printed {raw!r}" for raw in RAW.findall(text)[:1]]
        refusals = [line for line in text.splitlines() if line.startswith("robot-rl:")]
        checked = command[:2] == ["data", "verify"] or command[0] == "load"
        faults += (
            [f"{command[:2]} ended with {code} and {text[-200:]!r}"] if code and not checked and not refusals else []
        )
        faults += [f"{command[:2]}: {len(text)} characters"] if code and len(text) > 20_000 else []
        accepted = any(other[:2] == ["data", "verify"] and not c for other, c, _ in done[:number][-4:])
        if code and accepted and command[:2] in (["data", "ls"], ["data", "info"]):
            faults.append(f"{command[:2]} refuses what verify accepts: {text[-200:]!r}")
    faults += [f"{usage.ru_maxrss / 1e3:.0f} MB"] if usage.ru_maxrss / 1e3 > MEGABYTES else []
    return Result([code for _, code, _ in done], max([s for *_, s in done], default=0.0), usage.ru_maxrss / 1e3, faults)


def run(first: int, cases: int, seed: int) -> tuple[list[tuple[str, int, Result]], float]:
    """Run this many cases in turn over the kinds; return kind, number and result of each, and the seconds."""
    begun, results = time.monotonic(), []
    with tempfile.TemporaryDirectory() as scratch:
        make_honest(Path(scratch) / "honest")
        for number in range(first, first + cases):
            kind = list(KINDS)[number % len(KINDS)]
            folder = Path(scratch) / f"{number}"
            folder.mkdir()
            shutil.copytree(Path(scratch) / "honest" / kind, folder / "lying")
            commands = KINDS[kind](random.Random(f"{seed} {number}"), folder / "lying")
            results.append((kind, number, run_case(commands, folder)))
            shutil.rmtree(folder)
    return results, time.monotonic() - begun


def main() -> int:
    """Print a table of the kinds, and each fault; return 1 if there was one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first case; each has its own random numbers"
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    results, seconds = run(arguments.first, arguments.cases, arguments.seed)
    for kind in dict.fromkeys(name for name, *_ in results):
        of = [result for name, _, result in results if name == kind]
        ends = collections.Counter("read" if not any(r.codes) else "refused" if r.codes[-1] else "repaired" for r in of)
        worst = f"{max(r.seconds for r in of):.2f} s, {max(r.megabytes for r in of):.0f} MB at most"
        print(f"{kind:<11} {len(of):>5} cases: {dict(ends)}, {worst}, {sum(bool(r.faults) for r in of)} faults")
    for kind, number, result in results:
        for fault in result.faults:
            print(f"case {number} ({kind}): {fault}")
    print(f"{seconds:.0f} s")
    return int(any(result.faults for *_, result in results))


if __name__ == "__main__":
    sys.exit(main())
