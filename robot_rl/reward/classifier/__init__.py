"""Success classifiers: frames, training, certificates, and judging in a run."""
