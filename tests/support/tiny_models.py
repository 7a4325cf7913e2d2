"""Real checkpoints with random weights, small enough to be made in a test; production code loads them from a folder."""

import torch


def tokenizer(words=("red", "blue", "cube", "the", "a", "True", "False", "push")):
    """A word-level tokenizer made here, as a hub's tokenizers cannot be had offline."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["<pad>", "<unk>", "<s>", "</s>"]
    vocabulary = {word: number for number, word in enumerate([*special, *words])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    core.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", vocabulary["<s>"]), ("</s>", vocabulary["</s>"])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )


def save_qwen(folder):
    """A Qwen3-VL checkpoint with tokenizer and image processor."""
    import transformers as t

    torch.manual_seed(0)
    words = tokenizer()
    marks = ["<|vision_start|>", "<|image_pad|>", "<|video_pad|>", "<|vision_end|>", "<|im_start|>", "<|im_end|>"]
    words.add_special_tokens({"additional_special_tokens": marks})
    text = {
        "vocab_size": len(words), "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "max_position_embeddings": 512,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 2, 2]},
    }  # fmt: skip
    vision = {
        "depth": 2, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2, "patch_size": 8, "out_hidden_size": 32,
        "spatial_merge_size": 2, "temporal_patch_size": 2, "num_position_embeddings": 64,
        "deepstack_visual_indexes": [0],
    }  # fmt: skip
    ids = dict(zip(marks, words.convert_tokens_to_ids(marks), strict=True))
    config = t.Qwen3VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
    )
    model = t.Qwen3VLForConditionalGeneration(config)
    model.save_pretrained(folder)
    sizes = {"shortest_edge": 16 * 16, "longest_edge": 64 * 64}
    t.Qwen2VLImageProcessorPil(size=sizes, patch_size=8, temporal_patch_size=2, merge_size=2).save_pretrained(folder)
    words.save_pretrained(folder)
    return model.eval()


def save_pair(folder, kind):
    """A CLIP or SigLIP checkpoint with tokenizer and image processor."""
    import transformers as t

    torch.manual_seed(0)
    words = tokenizer()
    text = {
        "vocab_size": len(words), "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 2, "max_position_embeddings": 12,
        "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3,
    }  # fmt: skip
    vision = {
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 32,
        "patch_size": 8,
    }  # fmt: skip
    if kind == "clip":
        config = t.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
        model, processor = t.CLIPModel(config), t.CLIPImageProcessor(size={"shortest_edge": 32}, crop_size=32)
    else:
        config = t.SiglipConfig(text_config={**text, "projection_size": 32}, vision_config=vision)
        model, processor = t.SiglipModel(config), t.SiglipImageProcessor(size={"height": 32, "width": 32})
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    words.save_pretrained(folder)
    return model.eval()
