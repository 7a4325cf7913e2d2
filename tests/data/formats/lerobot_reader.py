"""Reads a dataset with LeRobot's own loader into an .npz file; run by an interpreter that has lerobot."""

import sys

import numpy as np
from lerobot.datasets.lerobot_dataset import LeRobotDataset

dataset = LeRobotDataset("local/exported", root=sys.argv[1], video_backend="pyav")
items = [dataset[index] for index in range(len(dataset))]
keys = [key for key, value in items[0].items() if hasattr(value, "numpy")]
columns = {key: np.stack([item[key].numpy() for item in items]) for key in keys}
lengths = [episode["length"] for episode in dataset.meta.episodes]
np.savez(sys.argv[2], **columns, lengths=lengths, tasks=[item["task"] for item in items], fps=dataset.fps)
