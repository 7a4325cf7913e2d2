"""A real Qwen3-VL checkpoint, tiny and random, loaded from a folder as a user's is."""

import math
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from tiny_models import save_pair, save_qwen

from robot_rl.config.labelling import BudgetConfig, LabelConfig, LocalConfig
from robot_rl.errors import BudgetSpentError, ConfigError
from robot_rl.reward.answer import Status
from robot_rl.reward.budget import Budget
from robot_rl.reward.query import Clip, Query, QueryKind
from robot_rl.reward.vlm.chat_model import Turn
from robot_rl.reward.vlm.make_backend import make_backend
from robot_rl.reward.vlm.qwen_local import ANSWER, LocalChat

pytestmark = pytest.mark.skipif(
    find_spec("transformers") is None, reason="needs transformers: pip install 'robot_rl[vlm]'"
)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("qwen") / "tiny"
    return folder, save_qwen(folder)


def picture(seed, height=32, width=48):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def local(folder, *, limits=None, **settings):
    return LocalChat(LocalConfig(model=str(folder), **settings), Budget(limits or BudgetConfig()))


def test_the_probability_of_a_word_is_that_of_the_models_next_token(checkpoint):
    """By the model's own logits for tokens and images put together here by hand."""
    from transformers import AutoImageProcessor, AutoTokenizer

    folder, model = checkpoint
    words, images = AutoTokenizer.from_pretrained(folder), AutoImageProcessor.from_pretrained(folder)
    seen = images(images=[picture(0), picture(1)], return_tensors="pt")
    one, other = (seen["image_grid_thw"].prod(-1) // 4).tolist()
    marked = "red <|vision_start|>{}<|vision_end|> blue <|vision_start|>{}<|vision_end|> cube" + ANSWER
    tokens = words(
        marked.format("<|image_pad|>" * one, "<|image_pad|>" * other), add_special_tokens=False, return_tensors="pt"
    )["input_ids"]
    pad = model.config.image_token_id
    with torch.no_grad():
        logits = model(
            input_ids=tokens,
            attention_mask=torch.ones_like(tokens),
            pixel_values=seen["pixel_values"],
            image_grid_thw=seen["image_grid_thw"],
            mm_token_type_ids=(tokens == pad).int(),
        ).logits[0, -1]
    wanted = logits.log_softmax(-1)
    turn = Turn(("red ", picture(0), " blue ", picture(1), " cube"), choices=("True", "False"))
    done = local(folder).complete(turn)
    told = dict(done.first_token)
    for word in ("True", "False"):
        assert told[word] == pytest.approx(wanted[words.convert_tokens_to_ids(word)].item(), abs=1e-4)
    assert done.prompt_tokens == tokens.shape[1]


def test_an_episode_gets_a_probability(checkpoint):
    folder, _ = checkpoint
    settings = LabelConfig(backend="qwen", answer="logprobs", local=LocalConfig(model=str(folder)))
    backend = make_backend(settings, Budget(settings.budget))
    frames = np.stack([picture(seed) for seed in range(3)])
    answer = backend.answer(Query(QueryKind.SUCCESS, "push the cube", (Clip("e", "f", "front", (0, 1, 2), frames),)))
    assert answer.status is Status.OK
    logs = dict(answer.details["first_token"])
    p, q = math.exp(logs["True"]), math.exp(logs["False"])
    assert answer.values == pytest.approx((p / (p + q),), abs=1e-6)
    assert backend.identity["revision"].startswith("sha256-")


def test_what_a_random_model_writes_is_no_answer(checkpoint):
    folder, _ = checkpoint
    settings = LabelConfig(backend="qwen", local=LocalConfig(model=str(folder), max_reply_tokens=8))
    backend = make_backend(settings, Budget(settings.budget))
    answer = backend.answer(Query(QueryKind.SUCCESS, "push", (Clip("e", "f", "front", (0,), picture(0)[None]),)))
    assert (answer.status, answer.values) == (Status.UNPARSABLE, ())
    assert 1 <= answer.reply_tokens <= 8


def test_its_tokens_count(checkpoint):
    folder, _ = checkpoint
    model = local(folder, limits=BudgetConfig(tokens=30))
    turn = Turn((picture(0), "red"), choices=("True", "False"))
    used = model.complete(turn).prompt_tokens
    assert 5 < used < 30
    with pytest.raises(BudgetSpentError, match="tokens"):
        for _ in range(30 // used):
            model.complete(turn)


def test_models_of_other_kinds_are_told(checkpoint, tmp_path):
    folder, _ = checkpoint
    save_pair(tmp_path / "clip", "clip")
    with pytest.raises(ConfigError, match="cannot be loaded as this kind of model"):
        local(tmp_path / "clip")
    with pytest.raises(ConfigError, match="'Maybe' is no token of it"):
        local(folder).complete(Turn(("red",), choices=("Maybe",)))
