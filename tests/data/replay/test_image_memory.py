import numpy as np
import pytest
import torch

from robot_rl.config.components import ReplayConfig
from robot_rl.data.replay.buffer import ReplayBuffer
from robot_rl.data.replay.demo_mixing import DemoMixer
from robot_rl.data.replay.device_memory import device_memory
from robot_rl.data.replay.image_memory import image_memory
from robot_rl.data.replay.percept import ImageSpec, Percept
from robot_rl.data.replay.transition import Transition
from robot_rl.data.schema import Source
from robot_rl.errors import DataError

CROPS, CAMERAS, SIZE, SHIFT = 4, 2, 12, 3
FEATURES = ImageSpec("features", (CROPS, CAMERAS, 5, 2, 2), "float16", maker="a", size=SIZE)
FRAMES = ImageSpec("frames", (CAMERAS, SIZE, SIZE, 3), "uint8", maker="b", size=SIZE, shift=SHIFT)


def features(step):
    """Every element says which step, crop and camera it belongs to: 100 * step + 10 * crop + camera."""
    crop, camera = np.arange(CROPS)[:, None], np.arange(CAMERAS)
    tag = (100 * step + 10 * crop + camera).astype(np.float16)
    return np.broadcast_to(tag[..., None, None, None], FEATURES.shape).copy()


def frames(step, seed=0):
    return np.random.default_rng([seed, step]).integers(0, 256, FRAMES.shape, np.uint8)


def percept(step):
    return Percept(np.full(3, step, np.float32), features(step))


def test_features_are_seen_one_crop_of_each_camera_at_a_time():
    memory = image_memory(10, FEATURES)
    for slot in range(10):
        memory.write(slot, features(slot))
    slots = np.repeat(np.arange(10), 400)
    seen = memory.sample(slots, np.random.default_rng(0))
    assert seen.shape == (4000, *FEATURES.view_shape)
    assert seen.dtype == np.float16
    assert (seen == seen[:, :, :1, :1, :1]).all()
    tags = seen[:, :, 0, 0, 0].astype(int)
    assert (tags // 100 == slots[:, None]).all()
    assert (tags % 10 == np.arange(CAMERAS)).all()
    crops = tags // 10 % 10
    pairs, counts = np.unique(crops, axis=0, return_counts=True)
    assert len(pairs) == CROPS**CAMERAS  # each camera by itself
    assert abs(counts - 250).max() < 5 * np.sqrt(250)
    np.testing.assert_array_equal(memory.read(np.array([7, 2])), [features(7), features(2)])


def test_frames_are_seen_shifted_each_camera_by_itself_with_repeated_edges():
    memory = image_memory(6, FRAMES)
    for slot in range(6):
        memory.write(slot, frames(slot))
    slots = np.repeat([4, 1], 500)
    seen = memory.sample(slots, np.random.default_rng(0))
    assert seen.shape == (1000, *FRAMES.view_shape)
    rows = np.clip(np.arange(SIZE) + np.arange(-SHIFT, SHIFT + 1)[:, None], 0, SIZE - 1)
    shifts = set()
    for slot, view in zip(slots, seen, strict=True):
        pair = []
        for camera in range(CAMERAS):
            windows = frames(slot)[camera][rows][:, :, rows].transpose(0, 2, 1, 3, 4)  # (down, right, height, width, 3)
            places = np.argwhere((windows == view[camera]).all((2, 3, 4)))
            assert len(places) == 1
            pair.append(tuple(places[0]))
        shifts.add(tuple(pair))
    assert len(shifts) > 400  # of 7^4
    assert {down for pair in shifts for down, _ in pair} == set(range(2 * SHIFT + 1))
    np.testing.assert_array_equal(memory.read(np.array([3])), [frames(3)])


def test_a_sample_sees_its_own_step_and_the_step_that_its_window_leads_to():
    buffer = ReplayBuffer(12, 3, 1, FEATURES)
    for start in (0, 6, 12):  # the ring wraps and evicts
        buffer.begin(percept(start))
        for t in range(4):
            buffer.append(Transition(np.zeros(1), 0.0, False, t == 3, Source.POLICY), percept(start + t + 1))
    sample = buffer.sample(300, np.random.default_rng(1), n_step=2, discount=0.9, history=(0, 1))
    for seen, states in ((sample.images, sample.observation), (sample.next_images, sample.next_observation)):
        np.testing.assert_array_equal(seen[:, 0, 0, 0, 0].astype(int) // 100, states[:, 0].astype(int))


def test_a_restored_replay_has_the_same_images():
    buffer, restored = ReplayBuffer(12, 3, 1, FEATURES), ReplayBuffer(20, 3, 1, FEATURES)
    buffer.begin(percept(3))
    for t in range(5):
        buffer.append(Transition(np.zeros(1), 0.0, False, False, Source.HUMAN), percept(4 + t))
    restored.load_state_dict(buffer.state_dict())
    samples = [b.sample(64, np.random.default_rng(0), n_step=3, discount=0.9, history=(0,)) for b in (buffer, restored)]
    for a, b in zip(*samples, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(buffer.images_of(np.arange(5)), [features(3 + t) for t in range(5)])


def test_images_of_another_make_or_shape_are_refused():
    buffer = ReplayBuffer(12, 3, 1, FEATURES)
    buffer.begin(percept(0))
    buffer.append(Transition(np.zeros(1), 0.0, True, False, Source.POLICY), percept(1))
    other = ImageSpec("features", FEATURES.shape, "float16", maker="another encoder", size=SIZE)
    with pytest.raises(DataError, match="images by a, this replay takes those by another encoder"):
        ReplayBuffer(12, 3, 1, other).load_state_dict(buffer.state_dict())
    with pytest.raises(DataError, match="images by a, this replay takes those by nobody"):
        ReplayBuffer(12, 3, 1).load_state_dict(buffer.state_dict())
    for bad, given in (
        (None, "none"),
        (features(0)[:3], r"float16 of shape \(3, 2, 5, 2, 2\)"),
        (features(0).astype(np.float32), "float32 of shape"),
    ):
        with pytest.raises(DataError, match=rf"got {given}.*, expected features, float16 of shape \(4, 2, 5, 2, 2\)"):
            buffer.begin(Percept(np.zeros(3), bad))
    with pytest.raises(DataError, match="got images, but keeps none"):
        ReplayBuffer(12, 3, 1).begin(percept(0))


def test_what_it_takes_to_remember():
    """Of features a tenth, of frames half of what SERL-like replay takes: two observations of raw frames."""
    naive = 2 * 2 * 128 * 128 * 3
    cached = ImageSpec("features", (4, 2, 64, 4, 4), "float16", maker="", size=128)
    raw = ImageSpec("frames", (2, 128, 128, 3), "uint8", maker="", size=128)
    assert cached.nbytes <= 0.1 * naive
    assert raw.nbytes <= 0.5 * naive


@pytest.mark.parametrize("spec", [FEATURES, FRAMES], ids=["features", "frames"])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_device_remembers_and_shows_the_same(spec, device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    plain, there = image_memory(9, spec), device_memory(9, spec, device)
    for slot in range(9):
        images = (features if spec is FEATURES else frames)(slot)
        plain.write(slot, images)
        there.write(slot, images)
    slots = np.array([3, 0, 8, 8, 5] * 20)
    expected = plain.sample(slots, np.random.default_rng(2))
    seen = there.sample(slots, np.random.default_rng(2))
    np.testing.assert_array_equal(seen.cpu().numpy(), expected)
    np.testing.assert_array_equal(there.read(slots), plain.read(slots))
    assert there.nbytes >= 9 * spec.nbytes


def test_images_on_a_device_are_mixed_like_any():
    samples = []
    for device in ("cpu", "device"):
        buffers = [ReplayBuffer(40, 3, 1, FEATURES) for _ in range(2)]
        for buffer in buffers:
            if device != "cpu":  # the device's memory on the CPU, as there may be no other device
                buffer._images, buffer.device = device_memory(40, FEATURES, "cpu"), "cpu:0"
            buffer.begin(percept(0))
            for t in range(9):
                buffer.append(Transition(np.zeros(1), 0.0, False, t == 8, Source.POLICY), percept(t + 1))
        config = ReplayConfig(batch_size=8, history=(0,))
        samples.append(DemoMixer(*buffers, config, 2, 0.9).sample(3, np.random.default_rng(0)))
    assert isinstance(samples[1].images, torch.Tensor)
    for expected, got in zip(*samples, strict=True):
        if expected is not None:
            np.testing.assert_array_equal(np.asarray(got), expected)


@pytest.mark.parametrize("spec", [FEATURES, FRAMES], ids=["features", "frames"])
def test_a_ring_that_forgets_nothing_grows_and_is_the_same_as_one_with_room(spec):
    small, large = (ReplayBuffer(rows, 3, 2, spec, forgets=False) for rows in (2, 500))
    for number in range(4):
        for ring in (small, large):
            for step in range(20):
                seen = Percept(np.full(3, step, np.float32), features(step) if spec is FEATURES else frames(step))
                if step == 0:
                    ring.begin(seen, f"episode-{number}")
                else:
                    source = Source.HUMAN if step % 3 else Source.HOLD
                    ring.append(Transition(np.full(2, step, np.float32), 1.0, step == 19, False, source), seen)
    assert len(small) == len(large) == 76
    assert small.operator_count == large.operator_count
    samples = [
        ring.sample(64, np.random.default_rng(0), n_step=3, discount=0.9, history=(0, 1)) for ring in (small, large)
    ]
    for mine, theirs in zip(*samples, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    again = ReplayBuffer(2, 3, 2, spec, forgets=False)
    again.load_state_dict(large.state_dict())
    np.testing.assert_array_equal(again.images_of(np.arange(76)), large.images_of(np.arange(76)))
