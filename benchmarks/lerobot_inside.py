"""LeRobot's side of `lerobot_exchange.py`; an interpreter that has lerobot runs it. Imports nothing of robot_rl.

python lerobot_inside.py read DATASET OUT.npz
python lerobot_inside.py write TRUTH.npz DATASET CODEC
python lerobot_inside.py versions
"""

import json
import shutil
import sys
from importlib.metadata import version

import numpy as np
from lerobot.datasets.lerobot_dataset import LeRobotDataset

PACKAGES = ("lerobot", "torch", "torchvision", "av", "datasets", "pyarrow")


def read(root: str, out: str) -> None:
    """Write all frames of a dataset, as LeRobot's own loader gives them, into a file."""
    dataset = LeRobotDataset("local/dataset", root=root, video_backend="pyav")
    items = [dataset[index] for index in range(len(dataset))]
    keys = [key for key, value in items[0].items() if hasattr(value, "numpy")]
    columns = {key: np.stack([item[key].numpy() for item in items]) for key in keys}
    lengths = [episode["length"] for episode in dataset.meta.episodes]
    np.savez(out, **columns, lengths=lengths, tasks=[item["task"] for item in items], fps=dataset.fps)


def write(truth: str, root: str, codec: str) -> None:
    """Make a dataset of the arrays in a file, with LeRobot's own writer; `codec` is `png` or one of videos."""
    given = np.load(truth)
    cameras = [key for key in given.files if key.startswith("observation.images.")]
    vectors = [key for key in given.files if key.startswith("observation.") and key not in cameras]
    kind, axes = ("image" if codec == "png" else "video"), ["height", "width", "channels"]
    features = {key: {"dtype": kind, "shape": given[key].shape[1:], "names": axes} for key in cameras}
    for key in (*vectors, "action", "next.reward"):
        width = given[key].shape[1]
        features[key] = {"dtype": "float32", "shape": (width,), "names": [str(n) for n in range(width)]}
    shutil.rmtree(root, ignore_errors=True)
    video = {} if codec == "png" else {"vcodec": codec}
    dataset = LeRobotDataset.create(
        "local/written", fps=int(given["fps"]), features=features, root=root, use_videos=codec != "png", **video
    )
    start = 0
    for length in given["lengths"]:
        for row in range(start, start + length):
            dataset.add_frame({key: given[key][row] for key in features} | {"task": "insert the peg"})
        dataset.save_episode()
        start += length
    dataset.finalize()


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "versions":
        print(json.dumps({"python": sys.version.split()[0], **{name: version(name) for name in PACKAGES}}))
    else:
        {"read": read, "write": write}[command](*arguments)
