"""Success classifiers of frames: training, report, certificate, and rewards in a run."""
