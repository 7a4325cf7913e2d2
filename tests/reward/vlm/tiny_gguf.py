"""A language model that sees, made of a few numbers chosen by hand, in files that llama.cpp loads.

It answers by whether the pictures that it was shown are red or blue, so that what a server should say is known. A
picture becomes four tokens that hold (red - blue); the one layer of the language model adds to the last token the mean
over all of them, where those of text count 0; the words of success are liked by that much, those of failure disliked.
"""

from pathlib import Path

import numpy as np
from gguf import GGUFWriter, TokenType

WIDTH, HIDDEN, PATCH, SIDE = 32, 32, 16, 32
"""Of the residual stream and the (idle) feed-forward layer, and of a patch and an image [px]."""
TOKENS = (SIDE // PATCH) ** 2
"""Of a picture."""
CONSTANT, REDNESS = 0, 1
"""What the first two elements of the residual stream hold: 1 for each token of text, and what was seen."""
CHAT_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"

SPECIAL = ["<unk>", "<s>", "</s>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
WORDS = ["True", "False", "success", "failure", "first", "second", "95"]
PLEASED = {"True": 1.0, "success": 1.0, "first": 1.0, "False": -1.0, "failure": -1.0, "second": -1.0}
SLOPE = 4.0
"""What a token that is pleased adds to its logit for one unit of what was seen, or takes from it."""
LIKED = {'"': 20.0, **dict.fromkeys(WORDS, 8.0), "}": 6.0, "95": 5.0}
"""Logits of other tokens. In a grammar for JSON they end each text at once, and make each number a 95."""


def log_odds(red: int, blue: int, tokens: int) -> float:
    """Of True against False, after so many red and blue pictures in a prompt of so many tokens; by hand."""
    seen = WIDTH**0.5 * TOKENS * (red - blue) / tokens  # RMS norm makes each token's only element +-sqrt(WIDTH)
    return 2 * SLOPE * seen * (WIDTH / (1 + seen**2)) ** 0.5


def write_language_model(path: Path) -> Path:
    """The language model."""
    writer = GGUFWriter(str(path), "llama")
    writer.add_name("tiny")
    writer.add_context_length(8192)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_rope_dimension_count(WIDTH)
    writer.add_layer_norm_rms_eps(1e-6)
    tokens = [*SPECIAL, *BYTES, *WORDS]
    kinds = [TokenType.UNKNOWN, *[TokenType.CONTROL] * 2, *[TokenType.BYTE] * 256, *[TokenType.NORMAL] * len(WORDS)]
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(CHAT_TEMPLATE)

    embedding, output = np.zeros((2, len(tokens), WIDTH), np.float32)
    embedding[:, CONSTANT] = 1.0
    for token, row in zip(tokens, output, strict=True):
        letter = chr(int(token[3:5], 16)) if token in BYTES else token
        row[CONSTANT] = LIKED.get(letter, 0.0 if token in BYTES else -20.0)
        row[REDNESS] = SLOPE * PLEASED.get(token, 0.0)
    value, back = np.zeros((2, WIDTH, WIDTH), np.float32)
    value[0, REDNESS], back[REDNESS, 0] = 1.0, 1.0
    ones, idle = np.ones(WIDTH, np.float32), np.zeros((HIDDEN, WIDTH), np.float32)
    tensors = {
        "token_embd": embedding,
        "output_norm": ones,
        "output": output,
        "blk.0.attn_norm": ones,
        "blk.0.attn_q": np.zeros_like(value),
        "blk.0.attn_k": np.zeros_like(value),
        "blk.0.attn_v": value,
        "blk.0.attn_output": back,
        "blk.0.ffn_norm": ones,
        "blk.0.ffn_gate": idle,
        "blk.0.ffn_up": idle,
        "blk.0.ffn_down": idle.T.copy(),
    }
    return _finish(writer, path, {f"{name}.weight": tensor for name, tensor in tensors.items()})


def write_projector(path: Path) -> Path:
    """What makes tokens of an image, as LLaVA 1.5 does it; its one transformer layer is, as there, not used."""
    writer = GGUFWriter(str(path), "clip")
    writer.add_clip_has_vision_encoder(True)
    writer.add_string("clip.projector_type", "mlp")
    writer.add_bool("clip.use_gelu", True)
    writer.add_vision_image_size(SIDE)
    writer.add_vision_patch_size(PATCH)
    writer.add_vision_embedding_length(WIDTH)
    writer.add_vision_feed_forward_length(HIDDEN)
    writer.add_vision_projection_dim(WIDTH)
    writer.add_vision_block_count(1)
    writer.add_vision_head_count(1)
    writer.add_vision_attention_layernorm_eps(1e-6)
    writer.add_vision_image_mean([0.5, 0.5, 0.5])
    writer.add_vision_image_std([0.5, 0.5, 0.5])
    patch = np.zeros((WIDTH, 3, PATCH, PATCH), np.float32)
    patch[0, 0], patch[0, 2] = 1 / PATCH**2, -1 / PATCH**2
    split, joined = np.zeros((2, WIDTH, WIDTH), np.float32)
    split[:2, 0] = 1.0, -1.0  # gelu(x) - gelu(-x) = x
    joined[REDNESS, :2] = 1.0, -1.0
    square, ones, zeros = np.zeros((WIDTH, WIDTH), np.float32), np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)
    tensors = {
        "v.patch_embd.weight": patch,
        "v.position_embd.weight": np.zeros((TOKENS, WIDTH), np.float32),
        "mm.0.weight": split,
        "mm.0.bias": zeros,
        "mm.2.weight": joined,
        "mm.2.bias": zeros,
    }
    for part in ("attn_q", "attn_k", "attn_v", "attn_out", "ffn_up", "ffn_down"):
        tensors |= {f"v.blk.0.{part}.weight": square, f"v.blk.0.{part}.bias": zeros}
    for part in ("ln1", "ln2"):
        tensors |= {f"v.blk.0.{part}.weight": ones, f"v.blk.0.{part}.bias": zeros}
    return _finish(writer, path, tensors)


def _finish(writer: GGUFWriter, path: Path, tensors: dict[str, np.ndarray]) -> Path:
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
