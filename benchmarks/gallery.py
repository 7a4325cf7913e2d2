"""The gallery and the one-minute film of the documentation, made of recorded runs.

    python benchmarks/gallery.py tasks RUN [RUN ...]   # docs/gallery.md: a film and a curve of each run's task
    python benchmarks/gallery.py minute RUN            # docs/images/gallery/minute.mp4, of a run from pixels

Nothing is played again: films are the run's own (`evaluation.mp4`, the recorded frames), figures are those of its
`summary.json`. Each file has a few hundred kilobytes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from robot_rl.data.formats.mp4 import Mp4Writer
from robot_rl.data.schema import IMAGE_PREFIX, Episode, Source
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError
from robot_rl.viz.episode_frame import SOURCE_COLOURS, to_picture

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURES = DOCS / "images" / "gallery"
SMALL = {"crf": "30", "preset": "veryslow"}
"""Options of the encoder: a few hundred kilobytes a minute."""
LONGEST = 20.0
"""Of a film of the gallery [s]."""
SIZE, RATE = (640, 480), 20
"""Width and height [px], and frames per second, of the minute."""
PAPER, INK = (250, 250, 248), (30, 30, 30)


def tasks(runs: list[Path]) -> None:
    """Write the page of the gallery, and a film and a curve for each run."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    lines = [
        "# Gallery",
        "",
        "`benchmarks/gallery.py` made this page of recorded runs: one run of one seed each, not chosen from several.",
        "[Benchmarks](benchmarks.md) has the figures over seeds.",
        "",
    ]
    if (PICTURES / "minute.mp4").is_file():
        lines += ["## In a minute", "", film("minute", 640), ""]
    for run in runs:
        summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
        task, (low, high) = summary["task"], summary["success_ci95"]
        name = f"{task}_pixels" if summary["config"]["observations"] == "pixels" else task
        shorten(run / "evaluation.mp4", PICTURES / f"{name}.mp4")
        curve = Image.open(run / "learning_curve.png").convert("RGB")
        curve.thumbnail((1000, 800))
        curve.quantize(64, dither=Image.Dither.NONE).save(PICTURES / f"{name}.png", optimize=True)
        lines += [
            f"## `{name}`",
            "",
            f"{summary['success_rate']:.2f} of {summary['episodes']} held-out resets without help "
            f"({low:.2f} to {high:.2f}), after {summary['env_steps']:,} steps, "
            f"{summary['robot_minutes']:.0f} minutes of robot time; seed {summary['seed']}.",
            "",
            film(name, 480),
            "",
            f"![Learning curve of {name}](images/gallery/{name}.png)",
            "",
        ]
    (DOCS / "gallery.md").write_text("\n".join(lines), encoding="utf-8")


def film(name: str, width: int) -> str:
    """Return the element that shows a film, `width` pixels wide."""
    return f'<video src="images/gallery/{name}.mp4" controls muted loop width="{width}"></video>'


def shorten(source: Path, target: Path) -> None:
    """Encode the beginning of a film anew, so that it is small."""
    with av.open(str(source)) as film:
        stream = film.streams.video[0]
        rate = float(stream.average_rate or RATE)
        with Mp4Writer(target, rate, SMALL) as writer:
            for number, frame in enumerate(film.decode(stream)):
                if number > LONGEST * rate:
                    break
                writer.add(frame.to_ndarray(format="rgb24"))


def minute(run: Path) -> None:
    """Write the film: demonstrations, help, learning, result.

    Raises:
        DataError: if the run recorded no frames.
    """
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    with EpisodeStore.open(run / "episodes") as store:
        ids = [row.episode_id for row in store.summaries()]
        shown = {row.episode_id: row.facts.demonstration for row in store.summaries()}
        demonstrations = [name for name in ids if shown[name]]
        online = [name for name in ids if not shown[name]]
        helped = next(
            (name for name in online if Source.SCRIPT in store.sources(name) or Source.HUMAN in store.sources(name)),
            online[0],
        )
        episodes = {name: store.read(name) for name in (*demonstrations[:2], online[0], helped, *online[-3:])}
    PICTURES.mkdir(parents=True, exist_ok=True)
    task, steps = summary["task"], summary["env_steps"]
    parts = [
        (card("robot_rl", [f"An arm learns {task}", "from demonstrations, help and its own attempts"]), 4),
        (played([episodes[name] for name in demonstrations[:2]], "1  An operator demonstrates"), 12),
        (played([episodes[helped]], "2  The policy tries; the operator helps where it is stuck"), 12),
        (played([episodes[name] for name in online[-3:]], f"3  After {steps:,} steps"), 12),
        (still(run / "learning_curve.png", "4  Success without help, on resets that it never trained on"), 8),
        (
            card(
                f"{summary['success_rate']:.0%} of {summary['episodes']} held-out resets",
                [
                    f"{summary['robot_minutes']:.0f} minutes of robot time, one run, seed {summary['seed']}",
                    "make train",
                ],
            ),
            5,
        ),
    ]
    with Mp4Writer(PICTURES / "minute.mp4", RATE, SMALL) as writer:
        for frames, longest in parts:
            for number, frame in enumerate(frames):
                if number >= longest * RATE:
                    break
                writer.add(frame)


def played(episodes: list[Episode], caption: str) -> Iterator[np.ndarray]:
    """Yield the frames of episodes at twice the speed, with who acts in colour."""
    for episode in episodes:
        cameras = sorted(key for key in episode.observations if key.startswith(IMAGE_PREFIX))
        if not cameras:
            raise DataError(f"{episode.episode_id} has no frames; film a run with --obs pixels")
        for step in range(len(episode)):
            source = Source(int(episode.source[step]))
            image, draw = sheet(caption)
            width = (SIZE[0] - 20 * (len(cameras) + 1)) // len(cameras)
            for place, camera in enumerate(cameras):
                frame = to_picture(episode.observations[camera][step]).resize((width, width), Image.Resampling.BICUBIC)
                image.paste(frame, (20 + place * (width + 20), 80))
            who = (
                "the policy acts"
                if source == Source.POLICY
                else "the arm is held"
                if source == Source.HOLD
                else "the operator acts"
            )
            draw.rectangle((20, SIZE[1] - 50, 40, SIZE[1] - 30), fill=SOURCE_COLOURS[source])
            draw.text((50, SIZE[1] - 52), who, fill=INK, font=font(20))
            yield np.asarray(image)
        for _ in range(RATE // 2):
            yield np.asarray(image)


def still(path: Path, caption: str) -> Iterator[np.ndarray]:
    """Yield a picture below its caption."""
    image, _ = sheet(caption)
    picture = Image.open(path).convert("RGB")
    picture.thumbnail((SIZE[0] - 20, SIZE[1] - 80))
    image.paste(picture, ((SIZE[0] - picture.width) // 2, 70))
    while True:
        yield np.asarray(image)


def card(title: str, lines: list[str]) -> Iterator[np.ndarray]:
    """Yield lines of text."""
    image, draw = sheet("")
    draw.text((SIZE[0] / 2, 170), title, fill=INK, font=font(36), anchor="mm")
    for number, line in enumerate(lines):
        draw.text((SIZE[0] / 2, 240 + 34 * number), line, fill=INK, font=font(20), anchor="mm")
    while True:
        yield np.asarray(image)


def sheet(caption: str) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    """Make an empty picture with a caption."""
    image = Image.new("RGB", SIZE, PAPER)
    draw = ImageDraw.Draw(image)
    draw.text((20, 24), caption, fill=INK, font=font(22))
    return image, draw


def font(size: int) -> Any:
    """Pillow's own font in a size [px]."""
    return ImageFont.load_default(size)


def main() -> None:
    """Read the arguments and make what they name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("tasks", "minute"))
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run directory with a summary.json")
    arguments = parser.parse_args()
    if missing := [str(run) for run in arguments.runs if not (run / "summary.json").is_file()]:
        parser.error(f"no finished run: {', '.join(missing)}; `robot-rl train --resume` finishes one")
    if arguments.what == "tasks":
        tasks(arguments.runs)
    elif len(arguments.runs) != 1:
        parser.error("minute takes one run")
    else:
        minute(arguments.runs[0])


if __name__ == "__main__":
    main()
