from dataclasses import replace

import numpy as np
import pytest
import torch

from robot_rl.config.components import EncoderConfig, TrainConfig
from robot_rl.errors import ConfigError, SpecError, UnknownNameError
from robot_rl.learn.networks.encoders import make_encoder
from robot_rl.learn.perception import FrozenFeatures, RawFrames, make_perception
from robot_rl.spec import ArraySpec

CAMERAS = ("front", "wrist")
SPECS = {
    "state/tcp": ArraySpec((3,), scale=2.0),
    **{f"images/{name}": ArraySpec((64, 64, 3), "uint8", low=0, high=255) for name in CAMERAS},
}
SMALL = EncoderConfig(cameras=CAMERAS, image_size=64, precision="float32")


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


def observation(seed=0, size=64):
    rng = np.random.default_rng(seed)
    smooth = rng.uniform(0, 255, (2, 8, 8, 3)).repeat(size // 8, 1).repeat(size // 8, 2).astype(np.uint8)
    return {"state/tcp": np.full(3, 4.0), "images/front": smooth[0], "images/wrist": smooth[1]}


def perception(**settings):
    config = TrainConfig(
        observations="pixels", encoder=EncoderConfig(**{"cameras": CAMERAS, "image_size": 64, **settings})
    )
    return make_perception(SPECS, config)


def test_state_alone_needs_no_frames():
    percept = make_perception(SPECS, TrainConfig())({"state/tcp": np.full(3, 4.0)})
    np.testing.assert_array_equal(percept.state, np.full(3, 2.0, np.float32))
    assert percept.images is None


def test_an_observation_is_encoded_once_and_again_to_the_same():
    see, seen = perception(), observation()
    percept = see(seen)
    assert see.view(seen) is see.view(seen)  # not encoded twice
    np.testing.assert_array_equal(see.view(seen).images, percept.images[0])
    np.testing.assert_array_equal(see.view(seen).state, percept.state)
    see(observation(1))
    again = see(observation())
    assert again is not percept
    np.testing.assert_array_equal(again.images, percept.images)
    rows = {key: np.stack([value, value]) for key, value in seen.items()}
    for row in see.of_rows(rows):  # as they are recorded
        np.testing.assert_array_equal(row.images, percept.images)
        np.testing.assert_array_equal(row.state, percept.state)


def encoded(encoder, frames):
    return encoder.encode(frames, encoder.view(frames))


def test_features_are_those_of_the_encoder_at_its_crops():
    frames = np.stack([observation()[f"images/{name}"] for name in CAMERAS])
    features = FrozenFeatures(SMALL)
    plain = FrozenFeatures(replace(SMALL, projection=0, crops=1))
    assert features.spec.shape == (4, 2, 64, 2, 2)
    assert plain.spec.shape == (1, 2, 320, 2, 2)
    got, expected = encoded(features, frames), encoded(plain, frames)[0].astype(np.float32)
    with torch.no_grad():
        direct = make_encoder("bundled")(torch.from_numpy(frames).permute(0, 3, 1, 2).float()).numpy()
    np.testing.assert_allclose(expected, direct, atol=0.02)
    # A random projection keeps distances: here between the two cameras' features, cell by cell.
    distance, projected = (np.linalg.norm(f[0] - f[1], axis=0) for f in (expected, got[0].astype(np.float32)))
    np.testing.assert_allclose(projected, distance, rtol=0.5)
    others = got[1:].astype(np.float32)
    assert all(not np.allclose(crop, got[0], atol=0.1) for crop in others)  # the others are shifted


def test_bfloat16_is_near_float32():
    frames = np.stack([observation()[f"images/{name}"] for name in CAMERAS])
    exact, fast = (FrozenFeatures(replace(SMALL, precision=p)) for p in ("float32", "bfloat16"))
    a, b = encoded(exact, frames).astype(np.float32), encoded(fast, frames).astype(np.float32)
    assert np.linalg.norm(a - b) < 0.05 * np.linalg.norm(a)
    assert exact.spec.maker != fast.spec.maker


def test_encoders_that_are_trained_get_the_frames_themselves():
    see, seen = perception(name="conv"), observation()
    assert see.spec.images == RawFrames(EncoderConfig(name="conv", cameras=CAMERAS, image_size=64)).spec
    np.testing.assert_array_equal(see(seen).images, [seen["images/front"], seen["images/wrist"]])


@pytest.mark.parametrize(
    ("settings", "other"),
    [({}, {"shift": 2}), ({}, {"crops": 2}), ({}, {"name": "random"}), ({}, {"cameras": ("wrist", "front")})],
)
def test_what_would_change_the_numbers_changes_the_makers_mark(settings, other):
    assert perception(**settings).spec.images.maker != perception(**other).spec.images.maker


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (np.zeros((32, 32, 3), np.uint8), r"uint8 of shape \(32, 32, 3\), expected uint8 of shape \(64, 64, 3\)"),
        (np.zeros((64, 64, 3), np.float32), r"float32 of shape .*expected uint8"),
        (np.zeros((3, 64, 64), np.uint8), r"uint8 of shape \(3, 64, 64\), expected .*: height, width, RGB"),
    ],
)
def test_frames_of_another_size_dtype_or_order_are_refused(frame, message):
    with pytest.raises(SpecError, match=rf"observation\[images/wrist\]: {message}"):
        perception(name="conv")({**observation(), "images/wrist": frame})


def test_missing_frames_and_unknown_cameras_are_named():
    seen = observation()
    del seen["images/front"]
    with pytest.raises(SpecError, match=r"missing images/front; there are \['images/wrist', 'state/tcp'\]"):
        perception(name="conv")(seen)
    with pytest.raises(UnknownNameError, match="unknown camera 'top'; valid: front, wrist"):
        perception(cameras=("top",))


@pytest.mark.parametrize("name", ["resnet", "timm:", "hf"])
def test_unknown_encoders_are_refused(name):
    with pytest.raises(ConfigError, match=rf"unknown encoder '{name}'; valid: bundled, random, timm:<model>"):
        make_encoder(name)


def test_a_library_that_is_missing_is_named():
    for name, package in (("timm:resnet18", "timm"), ("hf:facebook/dinov2-small", "transformers")):
        try:
            __import__(package)
        except ImportError:
            with pytest.raises(ConfigError, match=rf"encoder {name}: {package} is missing.*pip install {package}"):
                make_encoder(name)


@pytest.mark.parametrize("kind", ["vit", "resnet"])
def test_a_model_of_the_hub_from_a_folder(kind, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    if kind == "vit":
        sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "patch_size": 16}
        model = transformers.Dinov2Model(transformers.Dinov2Config(image_size=224, **sizes))
    else:
        sizes = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"}
        model = transformers.ResNetModel(transformers.ResNetConfig(**sizes))
    model.save_pretrained(tmp_path)
    with torch.no_grad():
        features = make_encoder(f"hf:{tmp_path}")(torch.zeros(2, 3, 64, 64))
    assert features.shape[:2] == (2, 16)
    assert features.dim() == 4
    with pytest.raises(ConfigError, match=r"not on this machine .*run: hf download"):
        make_encoder(f"hf:{tmp_path}/nothing")
