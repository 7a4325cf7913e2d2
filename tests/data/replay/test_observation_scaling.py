import numpy as np
import pytest

from robot_rl.data.replay.observation_scaling import ObservationPacker
from robot_rl.errors import SpecError
from robot_rl.spec import ArraySpec

SPECS = {
    "state/wrench": ArraySpec((2,), scale=10.0),
    "images/wrist": ArraySpec((4, 4, 3), "uint8"),
    "state/pose": ArraySpec((3,), "float64", scale=(1.0, 2.0, 4.0)),
    "state/gripper": ArraySpec((), scale=0.5),
}
ROW = {
    "state/pose": np.array([1.0, 2.0, 4.0]),
    "state/wrench": np.array([10.0, 20.0], np.float32),
    "state/gripper": np.array(3.0),
    "images/wrist": np.zeros((4, 4, 3), np.uint8),
}


def test_keys_are_sorted_images_left_out_values_scaled():
    packer = ObservationPacker(SPECS)
    assert packer.size == 6
    row = packer.pack(ROW)
    assert row.dtype == np.float32
    assert row.tolist() == [6.0, 1.0, 1.0, 1.0, 1.0, 2.0]  # gripper, pose, wrench


def test_rows_are_packed_like_single_observations():
    packer = ObservationPacker(SPECS)
    rows = {key: np.stack([value, value * 2, value * 3]) for key, value in ROW.items()}
    expected = [packer.pack({key: value[i] for key, value in rows.items()}) for i in range(3)]
    assert np.array_equal(packer.pack_rows(rows), np.stack(expected))


def test_where_only_frames_are_observed_there_are_as_many_empty_rows():
    packer = ObservationPacker({"images/wrist": SPECS["images/wrist"]})
    assert packer.pack_rows({"images/wrist": np.zeros((5, 4, 4, 3), np.uint8)}).shape == (5, 0)
    assert packer.pack_rows({}).shape == (0, 0)


def test_each_call_returns_its_own_memory():
    packer = ObservationPacker(SPECS)
    first = packer.pack(ROW)
    packer.pack({key: value * 7 for key, value in ROW.items()})
    assert first.tolist() == [6.0, 1.0, 1.0, 1.0, 1.0, 2.0]


def test_what_does_not_fit_is_named():
    packer = ObservationPacker(SPECS)
    with pytest.raises(SpecError, match=r"missing state/pose; expected .*got \['state/gripper'\]"):
        packer.pack({"state/gripper": np.array(1.0)})
    with pytest.raises(SpecError, match=r"state/wrench.*shape \(3,\), expected \(2,\)"):
        packer.pack({**ROW, "state/wrench": np.zeros(3)})
    with pytest.raises(SpecError, match=r"state/wrench.*expected \(1, 2\)"):
        packer.pack_rows({key: value[None] for key, value in ROW.items()} | {"state/wrench": np.zeros((2, 2))})
