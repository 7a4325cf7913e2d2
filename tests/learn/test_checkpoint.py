import contextlib
import dataclasses
import itertools
import multiprocessing
import random
import resource
import time
from collections import OrderedDict

import numpy as np
import pytest
import torch

from robot_rl.errors import CheckpointError, RunDirectoryError
from robot_rl.learn.checkpoint import describe_checkpoint, load_checkpoint, previous_path, save_checkpoint
from robot_rl.system.model_files import TRAINING


def assert_same(one, other):
    """Equal in type and bit for bit."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif isinstance(one, torch.Tensor):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.reshape(-1).view(torch.uint8).tolist() == other.reshape(-1).view(torch.uint8).tolist()
    elif isinstance(one, np.ndarray | np.generic):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()
    else:
        assert one == other or one != one


PAYLOAD = {
    "plain": {"none": None, "yes": True, "int": -3, "float": 0.1, "inf": float("inf"), "nan": float("nan")},
    "text": "äß\n",
    "bytes": b"\x00\xff",
    "list": [1, [2.0, "x"], (3, (torch.ones(2), None)), []],
    "int keys": {0: "zero", -1: {"deep": {}}},
    "big": [2**63 - 1, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 2**200],
    "tensors": {
        "f32": torch.randn(3, 4),
        "bf16": torch.randn(5).bfloat16(),
        "f64 transposed": torch.randn(3, 4, dtype=torch.float64).T,
        "scalar": torch.tensor(1.5),
        "bool": torch.tensor([True, False]),
        "i64": torch.arange(4),
        "empty": torch.zeros(0, 3),
    },
    "arrays": {
        "f32": np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32),
        "u64": np.array([2**64 - 1], np.uint64),
        "bool": np.array([[True], [False]]),
        "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "slice": np.arange(10)[::2],
        "0-d": np.array(7.0),
        "empty": np.zeros((0, 2), np.int8),
        "text": np.array(["a", "bcd"]),
        "nan": np.array([np.nan, -0.0]),
    },
    "numpy scalars": [np.float32(0.1), np.int64(5), np.bool_(True), np.float64(0.3)],
}


def test_everything_comes_back_bit_for_bit(tmp_path):
    save_checkpoint(tmp_path / "a.pt", PAYLOAD, kind="test", metadata={"task": "reach", "step": 7})
    assert_same(PAYLOAD, load_checkpoint(tmp_path / "a.pt"))
    assert describe_checkpoint(tmp_path / "a.pt") == {
        "version": 2,
        "kind": "test",
        "metadata": {"task": "reach", "step": 7},
    }
    assert [path.name for path in tmp_path.iterdir()] == ["a.pt"]


@pytest.mark.parametrize("generator", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_random_generators_go_on_where_they_were(tmp_path, generator):
    rng = np.random.Generator(generator(3))
    rng.normal(size=7)
    rng.integers(5, dtype=np.uint32)  # leaves half a word in the generator
    save_checkpoint(tmp_path / "a.pt", {"numpy": rng.bit_generator.state, "torch": torch.get_rng_state()})
    expected = rng.integers(2**63, size=20), torch.rand(5)
    loaded = load_checkpoint(tmp_path / "a.pt")
    restored = np.random.Generator(generator())
    restored.bit_generator.state = loaded["numpy"]
    torch.set_rng_state(loaded["torch"])
    assert np.array_equal(restored.integers(2**63, size=20), expected[0])
    assert torch.equal(torch.rand(5), expected[1])


def test_a_module_and_its_optimizer_go_on_where_they_were(tmp_path):
    def made():
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4))
        return module, torch.optim.Adam(module.parameters(), lr=0.01)

    def train(module, optimizer):
        optimizer.zero_grad()
        module(torch.arange(6.0).reshape(2, 3)).pow(2).sum().backward()
        optimizer.step()

    module, optimizer = made()
    train(module, optimizer)
    state = {"module": module.state_dict(), "optimizer": optimizer.state_dict()}
    assert isinstance(state["module"], OrderedDict)
    save_checkpoint(tmp_path / "a.pt", state)
    train(module, optimizer)
    restored, restored_optimizer = made()
    loaded = load_checkpoint(tmp_path / "a.pt")
    restored.load_state_dict(loaded["module"])
    restored_optimizer.load_state_dict(loaded["optimizer"])
    train(restored, restored_optimizer)
    for a, b in zip(module.parameters(), restored.parameters(), strict=True):
        assert torch.equal(a, b)


def test_loaded_arrays_are_writable_and_saving_keeps_no_reference(tmp_path):
    save_checkpoint(tmp_path / "a.pt", {"x": np.zeros(3), "y": torch.zeros(3)})
    loaded = load_checkpoint(tmp_path / "a.pt")
    loaded["x"][0] = loaded["y"][0] = 1
    assert load_checkpoint(tmp_path / "a.pt")["x"].sum() == 0


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({"a": {"b": [1, {2}]}}, r"payload\['a'\]\['b'\]\[1\] is a set"),
        ({"a": np.array([object()])}, r"payload\['a'\] is a ndarray"),
        ({"a": print}, "is a builtin_function_or_method"),
        ({"a": {(1, 2): 3}}, r"payload\['a'\] has the key \(1, 2\)"),
    ],
)
def test_what_cannot_be_saved_is_refused_and_named(tmp_path, payload, message):
    save_checkpoint(tmp_path / "a.pt", {"x": 1})
    with pytest.raises(CheckpointError, match=message):
        save_checkpoint(tmp_path / "a.pt", payload)
    assert load_checkpoint(tmp_path / "a.pt") == {"x": 1}


def test_the_previous_checkpoint_is_kept_and_offered(tmp_path):
    path = tmp_path / "checkpoint.pt"
    with pytest.raises(CheckpointError, match="no checkpoint there; there is no earlier one"):
        load_checkpoint(path)
    for step in range(3):
        save_checkpoint(path, {"step": step})
    assert load_checkpoint(path) == {"step": 2}
    assert load_checkpoint(previous_path(path)) == {"step": 1}
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(CheckpointError, match=rf"cut short: .*rename {path}\.previous to {path}"):
        load_checkpoint(path)
    previous_path(path).rename(path)  # the cure
    assert load_checkpoint(path) == {"step": 1}


def test_a_file_cut_short_anywhere_is_noticed(tmp_path):
    path = tmp_path / "a.pt"
    save_checkpoint(path, PAYLOAD)
    intact = path.read_bytes()
    for size in [*range(40), 100, len(intact) // 2, len(intact) - 33, len(intact) - 32, len(intact) - 1]:
        path.write_bytes(intact[:size])
        with pytest.raises(CheckpointError, match="cut short"):
            load_checkpoint(path)
    for data in (b"PK\x03\x04 something else", intact + b"x", intact[:-1] + bytes([intact[-1] ^ 1])):
        path.write_bytes(data)
        with pytest.raises(CheckpointError, match=r"not a checkpoint|altered"):
            load_checkpoint(path)


def test_a_flipped_bit_anywhere_is_noticed(tmp_path):
    path = tmp_path / "a.pt"
    save_checkpoint(path, {"x": np.arange(50.0), "y": [1, 2, "three"]})
    intact = path.read_bytes()
    for position in range(len(intact)):
        damaged = bytearray(intact)
        damaged[position] ^= 1 << (position % 8)
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"cut short|altered|not a checkpoint"):
            load_checkpoint(path)


def test_another_kind_or_version_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.pt"
    save_checkpoint(path, {"x": 1}, kind="policy")
    assert load_checkpoint(path, kind="policy") == {"x": 1}
    with pytest.raises(CheckpointError, match="kind 'policy', not 'training'"):
        load_checkpoint(path, kind="training")
    monkeypatch.setattr("robot_rl.learn.checkpoint.TRAINING", dataclasses.replace(TRAINING, version=3))
    with pytest.raises(CheckpointError, match="version 2, this program reads 3"):
        load_checkpoint(path)


def test_a_full_disk_leaves_the_old_checkpoint(tmp_path):
    path = tmp_path / "a.pt"
    save_checkpoint(path, {"x": 1})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(RunDirectoryError, match=str(path)):
            save_checkpoint(path, {"x": np.zeros(10_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert load_checkpoint(path) == {"x": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.pt"]
    with pytest.raises(RunDirectoryError, match="No such file or directory"):
        save_checkpoint(tmp_path / "missing" / "a.pt", {"x": 1})


def keep_saving(path, done):
    for step in itertools.count():
        save_checkpoint(path, {"step": step, "x": np.full(300_000, step)})
        done.send(step)


@pytest.mark.slow
def test_kill_at_any_moment_leaves_a_whole_checkpoint(tmp_path):
    path, rng = tmp_path / "a.pt", random.Random(0)
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([save_checkpoint.__module__])
    for _ in range(4):
        receiver, sender = processes.Pipe(duplex=False)
        process = processes.Process(target=keep_saving, args=(path, sender), daemon=True)
        process.start()
        sender.close()
        acknowledged = [receiver.recv()]
        time.sleep(rng.uniform(0, 0.1))
        process.kill()
        process.join()
        with contextlib.suppress(EOFError, OSError):
            while receiver.poll():
                acknowledged.append(receiver.recv())
        loaded = load_checkpoint(path)
        assert loaded["step"] >= acknowledged[-1]
        assert (loaded["x"] == loaded["step"]).all()
        if previous_path(path).exists():
            load_checkpoint(previous_path(path))
