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
