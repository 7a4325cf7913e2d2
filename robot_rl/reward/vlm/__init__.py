"""Vision-language models as labellers: prompts, backends, and answers as numbers."""
