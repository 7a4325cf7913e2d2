"""Scores by real CLIP and SigLIP checkpoints, tiny and random, loaded from a folder as a user's are."""

from importlib.util import find_spec

import numpy as np
import pytest
import torch
from PIL import Image
from scenes import stamped_store
from tiny_models import save_pair

from robot_rl.config.labelling import BudgetConfig, FramesConfig, LabelConfig, LocalConfig, ScoreConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import ConfigError
from robot_rl.reward.answer import ALONG, OFFSET
from robot_rl.reward.budget import Budget
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.labels.alpha_curve import reward_of_offsets
from robot_rl.reward.labels.annotate import Labelling
from robot_rl.reward.labels.units import Units
from robot_rl.reward.query import Clip, Query, QueryKind
from robot_rl.reward.vlm.clip_backend import ClipBackend
from robot_rl.reward.vlm.make_backend import make_backend

pytestmark = pytest.mark.skipif(
    find_spec("transformers") is None, reason="needs transformers: pip install 'robot_rl[vlm]'"
)


@pytest.fixture(scope="module", params=["clip", "siglip"])
def checkpoint(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param) / "tiny"
    return request.param, folder, save_pair(folder, request.param)


def backend(folder, *, precision="float32", batch_size=16, **score):
    local = LocalConfig(model=str(folder), precision=precision, batch_size=batch_size)
    return ClipBackend(local, ScoreConfig(**score), Budget(BudgetConfig()))


def frames(count=5):
    return np.random.default_rng(0).integers(0, 256, (count, 40, 40, 3), np.uint8)


def query(count=5, task="push the cube"):
    return Query(QueryKind.SCORE, task, (Clip("e", "f", "front", tuple(range(count)), frames(count)),))


def by_hand(folder, model, task):
    """The cosine of each frame with the task, straight from the model."""
    from transformers import AutoProcessor, AutoTokenizer

    words = AutoTokenizer.from_pretrained(folder)(
        [task], padding="max_length", max_length=12, truncation=True, return_tensors="pt"
    )
    processor = AutoProcessor.from_pretrained(folder)
    image_processor = getattr(processor, "image_processor", processor)
    pixels = image_processor(images=[Image.fromarray(f) for f in frames()], return_tensors="pt")["pixel_values"]
    with torch.no_grad():
        out = model(pixel_values=pixels, input_ids=words["input_ids"], attention_mask=words.get("attention_mask"))
    return (out.image_embeds @ out.text_embeds.T)[:, 0]


def test_a_score_is_the_cosine_with_the_task(checkpoint):
    _, folder, model = checkpoint
    answer = backend(folder).answer(query())
    assert answer.values == pytest.approx(by_hand(folder, model, "push the cube").tolist(), abs=1e-4)


def test_with_a_baseline_the_score_of_any_alpha_can_be_computed_from_the_answer(checkpoint):
    _, folder, _ = checkpoint
    answers = {alpha: backend(folder, baselines=("a table",), alpha=alpha).answer(query()) for alpha in (0.0, 0.7)}
    details = answers[0.0].details
    for alpha, answer in answers.items():
        found = reward_of_offsets(np.array(details[OFFSET]), np.array(details[ALONG]), alpha)
        assert found == pytest.approx(answer.values, abs=1e-5)


def test_frames_score_the_same_alone_and_together(checkpoint):
    _, folder, _ = checkpoint
    together, alone = backend(folder).answer(query()).values, backend(folder, batch_size=1).answer(query()).values
    assert together == pytest.approx(alone, abs=1e-5)
    assert np.ptp(together) > 1e-4


def test_bfloat16_is_near(checkpoint):
    _, folder, _ = checkpoint
    low = backend(folder, precision="bfloat16").answer(query()).values
    assert low == pytest.approx(backend(folder).answer(query()).values, abs=0.05)


def test_goal_pictures_baselines_and_alpha_count(checkpoint, tmp_path):
    _, folder, _ = checkpoint
    picture = tmp_path / "goal.png"
    Image.fromarray(frames()[2]).save(picture)
    values = backend(folder, goal_images=(str(picture),)).answer(query()).values
    assert values[2] == pytest.approx(1.0, abs=1e-5)
    assert values.index(max(values)) == 2
    plain = backend(folder, goals=("red cube",)).answer(query()).values
    turned = backend(folder, goals=("red cube",), baselines=("blue cube",), alpha=1.0).answer(query()).values
    assert plain != pytest.approx(turned, abs=1e-4)


def test_a_label_remembers_the_weights(checkpoint, tmp_path):
    kind, folder, _ = checkpoint
    one = backend(folder).identity
    assert one["revision"].startswith("sha256-")
    assert one["model"] == "tiny"
    save_pair(tmp_path / "tiny", "siglip" if kind == "clip" else "clip")
    assert backend(tmp_path / "tiny").identity["revision"] != one["revision"]


def test_episodes_are_scored_and_nothing_is_computed_twice(checkpoint, tmp_path):
    _, folder, _ = checkpoint
    path = stamped_store(tmp_path / "s", 3)
    settings = LabelConfig(
        backend="clip", kind="score", local=LocalConfig(model=str(folder)), frames=FramesConfig(count=4)
    )
    for asked in (3, 0):
        with EpisodeStore.open(path) as store, LabelStore(path, create=True) as labels:
            one = make_backend(settings, Budget(settings.budget))
            units = Units(store, settings, "push the cube")
            labels.begin("score", units.kind, one.identity, {})
            assert Labelling(labels, "score", one).run(units).queried == asked
            assert all(len(label.answer.values) == 4 for label in labels.labels("score"))


def test_what_cannot_be_loaded_is_told_with_its_cure(checkpoint, tmp_path, monkeypatch):
    _, folder, _ = checkpoint
    with pytest.raises(ConfigError, match=r"Set local\.model to its folder"):
        backend("")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    missing = LocalConfig(model="nobody/nothing", revision="abc123")
    with pytest.raises(ConfigError, match=r"hf download nobody/nothing --revision abc123"):
        ClipBackend(missing, ScoreConfig(), Budget(BudgetConfig()))
    with pytest.raises(ConfigError, match=r"needs score\.baselines"):
        backend(folder, alpha=0.5)
    with pytest.raises(ConfigError, match=r"score\.goal_images: cannot read"):
        backend(folder, goal_images=(str(tmp_path / "no.png"),))
    with pytest.raises(ConfigError, match="are the same as the goal"):
        backend(folder, goals=("red cube",), baselines=("red cube",)).answer(query())
    with pytest.raises(ConfigError, match="backend=clip is for kind=score"):
        make_backend(LabelConfig(backend="clip", local=missing), Budget(BudgetConfig()))
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=16, **sizes)).save_pretrained(tmp_path / "bert")
    with pytest.raises(ConfigError, match="no image and text embeddings"):
        backend(tmp_path / "bert")
