"""A checkpoint of LeRobot in an interpreter of its own.

A stand-in with the interface of LeRobot 0.4 is always there. With `ROBOT_RL_LEROBOT_PYTHON`, an interpreter that has
LeRobot, a tiny ACT policy is made and served by the real package.
"""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from base_policy_contract import OBSERVATIONS, BasePolicyContract, history, setup_of

from robot_rl.base_policy.contract import checked_chunk, make_base
from robot_rl.errors import BasePolicyError
from robot_rl.spec import ArraySpec

REAL = os.environ.get("ROBOT_RL_LEROBOT_PYTHON", "")
STAND_IN = """
import json, types, torch
from pathlib import Path

class Config:
    device = "cpu"
    n_action_steps, chunk_size, n_obs_steps = 4, 4, 1
    @classmethod
    def from_pretrained(cls, path):
        made, content = cls(), json.loads((Path(path) / "config.json").read_text())
        made.type = content["type"]
        made.input_features = {k: types.SimpleNamespace(shape=v["shape"]) for k, v in content["input_features"].items()}
        made.output_features = {"action": types.SimpleNamespace(**content["output_features"]["action"])}
        made.image_features = [k for k in made.input_features if "images" in k]
        return made

class Policy:
    @classmethod
    def from_pretrained(cls, path, config):
        made = cls(); made.config = config; return made
    def eval(self): pass
    def reset(self): pass
    def predict_action_chunk(self, batch):
        if self.config.type == "broken":
            raise RuntimeError("out of memory")
        size = self.config.output_features["action"].shape[0]
        start = batch["observation.state"][:, :1] + sum(batch[k].mean() for k in self.config.image_features)
        return (start[:, None] + 0.01 * torch.arange(4)[None, :, None]).expand(1, 4, size)

PreTrainedConfig = Config
def get_policy_class(kind): return Policy
def make_pre_post_processors(config, pretrained_path, preprocessor_overrides):
    tensors = lambda batch: {k: v[None] for k, v in batch.items() if k != "task"}
    return tensors, lambda action: action
"""
MAKE_ACT = """
import sys, torch
from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.policies.factory import get_policy_class, make_policy_config, make_pre_post_processors
torch.manual_seed(0)
features = {
    "observation.state": PolicyFeature(FeatureType.STATE, (3,)),
    "observation.images.front": PolicyFeature(FeatureType.VISUAL, (3, 32, 32)),
}
small = dict(dim_model=32, n_heads=2, dim_feedforward=32, n_encoder_layers=1, chunk_size=4, n_action_steps=4,
             use_vae=False, pretrained_backbone_weights=None)
outputs = {"action": PolicyFeature(FeatureType.ACTION, (3,))}
small |= dict(device="cpu", push_to_hub=False, input_features=features, output_features=outputs)
config = make_policy_config("act", **small)
shapes = {"observation.state": (3,), "observation.images.front": (3, 1, 1), "action": (3,)}
stats = {k: {"mean": torch.zeros(s), "std": torch.ones(s)} for k, s in shapes.items()}
before, after = make_pre_post_processors(config, dataset_stats=stats)
for part in (get_policy_class("act")(config), before, after):
    part.save_pretrained(sys.argv[1])
"""
FRONT = {"images/front": ArraySpec((32, 32, 3), "uint8")}
SEEN = {"observation.state": [3], "observation.images.front": [3, 32, 32]}


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stand_in")
    for module in ("lerobot/configs/policies.py", "lerobot/policies/factory.py"):
        (folder / module).parent.mkdir(parents=True)
        (folder / module).write_text(STAND_IN)
    return folder


@pytest.fixture(scope="module", autouse=True)
def _found(stand_in):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(stand_in))
        yield


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    def make(kind="act", inputs=SEEN, action=3):
        path = tmp_path_factory.mktemp("checkpoint") / "pretrained_model"
        path.mkdir()
        features = {key: {"type": "STATE", "shape": shape} for key, shape in inputs.items()}
        outputs = {"action": {"type": "ACTION", "shape": [action]}}
        content = {"type": kind, "input_features": features, "output_features": outputs, "chunk_size": 4}
        (path / "config.json").write_text(json.dumps(content))
        (path / "model.safetensors").write_bytes(b"weights")
        return path

    return make


def setup_with_camera(path, python=sys.executable, **settings):
    made = setup_of("lerobot", str(path), python=str(python), **settings)
    return replace(made, observations={**OBSERVATIONS, **FRONT})


def seen(length=1):
    picture = {"images/front": np.full((32, 32, 3), 51, np.uint8)}
    return [one._replace(observation={**one.observation, **picture}) for one in history(length)]


@pytest.fixture(scope="module")
def plain_setup(checkpoint):
    path = checkpoint(inputs={"observation.state": [3]})
    return setup_of("lerobot", str(path), python=sys.executable)


@pytest.fixture(scope="module")
def plain(plain_setup):
    made = make_base(plain_setup)
    yield made
    made.close()


class TestStandIn(BasePolicyContract):
    """Its contract, without pictures."""

    @pytest.fixture
    def setup(self, plain_setup):
        return plain_setup

    @pytest.fixture
    def base(self, plain):
        return plain


def test_it_gets_vectors_side_by_side_and_pictures_in_unit_range(checkpoint):
    path = checkpoint()
    base = make_base(setup_with_camera(path))
    base.begin(0, None)
    chunk = checked_chunk(base.plan(seen()), base)
    first = seen()[0].observation["state/way"][0]
    np.testing.assert_allclose(chunk.actions[:, 0], first + 0.2 + 0.01 * np.arange(4), atol=1e-5)
    assert base.spec.ahead
    base.close()
    (path / "model.safetensors").write_bytes(b"others")
    changed = make_base(setup_with_camera(path))
    assert changed.identity != base.identity, "it is another one when its weights have changed"
    changed.close()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"inputs": {**SEEN, "observation.state": [9]}}, r"observes observation\.state \(9,\) and gets \(3,\)"),
        ({"inputs": {**SEEN, "observation.images.wrist": [3, 8, 8]}}, r"observation\.images\.wrist .* and gets none"),
        ({"inputs": {"observation.state": []}}, r"observes observation\.state \(\) and gets \(3,\)"),
        ({"action": None}, r"config\.json is no configuration of a policy of LeRobot 0\.4: TypeError"),
        ({"action": 7}, "its actions have 7 numbers with a gripper, those of line 3"),
    ],
)
def test_a_checkpoint_for_something_else_is_refused_with_both_sides(checkpoint, changes, said):
    with pytest.raises(BasePolicyError, match=said):
        make_base(setup_with_camera(checkpoint(**changes)))


def test_a_policy_that_fails_is_named_and_what_it_observes_can_be_named(checkpoint):
    path = checkpoint(kind="broken", inputs={"observation.state": [2], "observation.environment_state": [1]})
    names = ("observation.state=state/way", "observation.environment_state=state/width")
    base = make_base(setup_with_camera(path, names=names))
    assert set(base.spec.observations) == {"state/way", "state/width"}
    with pytest.raises(BasePolicyError, match="failed: RuntimeError: out of memory"):
        base.plan(seen())
    base.close()


def test_an_interpreter_without_lerobot_and_a_missing_checkpoint_are_named(checkpoint, monkeypatch, tmp_path):
    path = checkpoint()
    monkeypatch.delenv("PYTHONPATH")
    with pytest.raises(BasePolicyError, match=r"LeRobot is not installed in .*base\.python names its interpreter"):
        make_base(setup_with_camera(path))
    with pytest.raises(BasePolicyError, match=r"nopython cannot be started.*base\.python is the path"):
        make_base(setup_with_camera(path, python="/nopython"))
    with pytest.raises(BasePolicyError, match=r"there is no .*config\.json; the path is the directory"):
        make_base(setup_with_camera(tmp_path))


@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason="no interpreter with LeRobot: set ROBOT_RL_LEROBOT_PYTHON")
def test_a_real_checkpoint_of_act_plans(tmp_path):
    path = tmp_path / "pretrained_model"
    subprocess.run([REAL, "-c", MAKE_ACT, path], check=True, timeout=120)
    base = make_base(setup_with_camera(path, Path(REAL)))
    plans = []
    for _ in range(2):
        base.begin(3, None)
        plans.append(base.plan(seen()).actions)
    np.testing.assert_array_equal(plans[0], plans[1])
    assert plans[0].shape == (4, 3)
    base.close()
