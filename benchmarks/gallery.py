"""The pictures of the documentation that show learning, made of recorded runs.

    python benchmarks/gallery.py tasks RUN [RUN ...]   # docs/gallery.md: a film and a curve of each run's task
    python benchmarks/gallery.py minute RUN DEMOS      # docs/images/gallery/minute.mp4; DEMOS has frames
    python benchmarks/gallery.py person RUN [RUN ...] [--without RUN ...]   # docs/images/person.png

Nothing is played again: films are the run's own (`evaluation.mp4`, the recorded frames), figures are those of its
`summary.json`. Each file has a few hundred kilobytes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image, ImageDraw, ImageFont

from robot_rl.data.formats.mp4 import Mp4Writer
from robot_rl.data.schema import IMAGE_PREFIX, Episode, Source
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError
from robot_rl.run.directory.metrics import read_metrics
from robot_rl.viz.episode_frame import SOURCE_COLOURS, to_picture
from robot_rl.viz.learning_curve import BLUE, ORANGE

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURES = DOCS / "images" / "gallery"
SMALL = {"crf": "30", "preset": "veryslow"}
"""Options of the encoder: a few hundred kilobytes a minute."""
LEARNED = 0.5
"""Success below which, by its interval, a task counts as not learned."""
LONGEST = 20.0
"""Of a film of the gallery [s]."""
SIZE, RATE = (640, 480), 10
"""Width and height [px], and frames per second, of the minute."""
WHO = {
    Source.POLICY: "the policy acts",
    Source.HUMAN: "a person leads",
    Source.SCRIPT: "the operator leads",
    Source.HOLD: "the arm is held",
}
PAPER, INK = (250, 250, 248), (30, 30, 30)


def tasks(runs: list[Path]) -> None:
    """Write the page of the gallery, and a film and a curve for each run."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    lines = [
        "# Gallery",
        "",
        "`benchmarks/gallery.py` made this page from recorded runs: one for each task and way to observe, not chosen",
        "from several.",
        "A film shows the policy at the end of its run, without help.",
        "[Benchmarks](benchmarks.md) has the figures over seeds.",
        "",
    ]
    if (PICTURES / "minute.mp4").is_file():
        lines += ["## In a minute", "", film("minute", 640), ""]
    for run in runs:
        summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
        task, (low, high) = summary["task"], summary["success_ci95"]
        pixels = summary["config"]["observations"] == "pixels"
        name, title = (f"{task}_pixels", f"`{task}` from pixels") if pixels else (task, f"`{task}`")
        shorten(run / "evaluation.mp4", PICTURES / f"{name}.mp4")
        curve = Image.open(run / "learning_curve.png").convert("RGB")
        curve.thumbnail((1000, 800))
        curve.quantize(64, dither=Image.Dither.NONE).save(PICTURES / f"{name}.png", optimize=True)
        first = read_metrics(run / "metrics.jsonl", "curve")[0]
        base = ""
        if first["env_step"] == 0:  # the base, before anything is learned
            base = f" The base alone: {first['success_rate']:.2f} of {first['episodes']}."
        unsolved = (
            " **This run did not learn the task**: [benchmarks](benchmarks.md) say why." if high < LEARNED else ""
        )
        lines += [
            f"## {title}",
            "",
            f"    {command(run)}",
            "",
            f"{summary['success_rate']:.2f} of {summary['episodes']} held-out resets without help "
            f"({low:.2f} to {high:.2f}), after {summary['env_steps']:,} steps, "
            f"{summary['robot_minutes']:.0f} minutes of robot time; seed {summary['seed']}.{base}{unsolved}",
            "",
            film(name, 480),
            "",
            f"![Learning curve of {title}](images/gallery/{name}.png)",
            "",
        ]
    (DOCS / "gallery.md").write_text("\n".join(lines), encoding="utf-8")


def command(run: Path) -> str:
    """Return the command that began a run, without the place of the run."""
    argv = json.loads((run / "provenance.json").read_text(encoding="utf-8"))["starts"][0]["argv"]
    if "--out" in argv:
        place = argv.index("--out")
        del argv[place : place + 2]
    return shlex.join(["robot-rl", *argv[1:]])


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


def minute(run: Path, demos: Path) -> None:
    """Write the film: demonstrations, help, learning, result.

    Args:
        run: The run. Its steps under an operator's lead are shown if it recorded frames (`--obs pixels`).
        demos: Store of demonstrations with frames (`robot-rl demo TASK --camera front --out DIR`).

    Raises:
        DataError: if there are no frames in the store.
    """
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    with EpisodeStore.open(demos) as store:
        shown = [episode for episode in store.episodes() if episode.facts.demonstration][:2]
    with EpisodeStore.open(run / "episodes") as store:
        online = [row.episode_id for row in store.summaries() if not row.facts.demonstration]
        led = [name for name in online if np.isin(store.sources(name), (Source.SCRIPT, Source.HUMAN)).any()]
        helped = [store.read(name) for name in led[:2]]
    rate, steps = summary["success_rate"], summary["env_steps"]
    parts = [
        (card("robot_rl", [f"An arm learns {summary['task']}:", "demonstrations, help, its own attempts"]), 4.0),
        (played(shown, "1  An operator demonstrates"), 16.0),
        (still(run / "learning_curve.png", f"2  It learns for {steps:,} steps; the operator helps less and less"), 8.0),
        (filmed(run / "evaluation.mp4", f"3  After {summary['robot_minutes']:.0f} minutes of robot time"), 24.0),
        (
            card(
                f"{rate:.0%} of {summary['episodes']} resets that it never trained on", ["without help", "make train"]
            ),
            5.0,
        ),
    ]
    if helped and any(key.startswith(IMAGE_PREFIX) for key in helped[0].observations):
        parts.insert(2, (played(helped, "   The policy tries; the operator helps where it is stuck"), 12.0))
    PICTURES.mkdir(parents=True, exist_ok=True)
    with Mp4Writer(PICTURES / "minute.mp4", RATE, SMALL) as writer:
        for frames, longest in parts:
            for frame in itertools.islice(frames, round(longest * RATE)):
                writer.add(frame)


def person(helped: list[Path], alone: list[Path]) -> None:
    """Draw success, and the operator's time that it took, over robot time: each run thin, their mean thick.

    Args:
        helped: Runs of one task in which an operator takes over.
        alone: Runs with the same seeds in which nobody does (`intervention.enabled=false`), if any.
    """
    task = json.loads((helped[0] / "summary.json").read_text(encoding="utf-8"))["task"]
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    seeds = "one run" if len(helped) == 1 else f"{len(helped)} seeds (thin) and their mean (thick)"
    figure.suptitle(f"{task}, {seeds}", fontweight="bold")
    success, price = figure.subplots(1, 2)
    for runs, label, colour, dash in (
        (helped, "the operator takes over where it is stuck", ORANGE, "-"),
        (alone, "demonstrations only", BLUE, "--"),
    ):
        if not runs:
            continue
        lines: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        for run in runs:
            summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
            minutes = summary["robot_minutes"] / summary["env_steps"]
            curve = [(minutes * r["env_step"], r["success_rate"]) for r in read_metrics(run / "metrics.jsonl", "curve")]
            episodes = read_metrics(run / "metrics.jsonl", "episode")
            led = [(minutes * r["env_step"], r["person"]["seconds"] / 60.0) for r in episodes]
            lines[0].append(np.array(curve))
            lines[1].append(np.array(led))
        for axes, runs_of_it in zip((success, price), lines, strict=True):
            grid = np.linspace(max(line[0, 0] for line in runs_of_it), min(line[-1, 0] for line in runs_of_it), 100)
            for line in runs_of_it:
                axes.plot(*line.T, dash, color=colour, linewidth=0.8, alpha=0.4)
            mean = np.mean([np.interp(grid, *line.T) for line in runs_of_it], axis=0)
            axes.plot(grid, mean, dash, color=colour, linewidth=2.4, label=label)
    success.set_ylabel("success without help")
    success.set_ylim(-0.03, 1.03)
    price.set_ylabel("operator's time so far [min]")
    price.set_ylim(bottom=0)
    for axes in (success, price):
        axes.set_xlabel("robot time [min]")
        axes.set_xlim(left=0)
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    success.legend(fontsize=8.5, loc="lower right")
    FigureCanvasAgg(figure).print_figure(str(DOCS / "images" / "person.png"), format="png", dpi=110)


def filmed(path: Path, caption: str) -> Iterator[np.ndarray]:
    """Yield the pictures of a film below a caption, in real time."""
    with av.open(str(path)) as film:
        stream = film.streams.video[0]
        repeat = max(1, round(RATE / float(stream.average_rate or RATE)))
        for frame in film.decode(stream):
            image, _ = sheet(caption)
            picture = Image.fromarray(frame.to_ndarray(format="rgb24"))
            scale = min((SIZE[0] - 40) / picture.width, (SIZE[1] - 100) / picture.height)
            picture = picture.resize((int(scale * picture.width), int(scale * picture.height)))
            image.paste(picture, ((SIZE[0] - picture.width) // 2, 80))
            yield from itertools.repeat(np.asarray(image), repeat)


def played(episodes: list[Episode], caption: str) -> Iterator[np.ndarray]:
    """Yield the frames of episodes in real time at ten steps a second, with who acts in colour."""
    for episode in episodes:
        cameras = sorted(key for key in episode.observations if key.startswith(IMAGE_PREFIX))
        if not cameras:
            raise DataError(f"{episode.episode_id} has no frames; record them with --camera NAME")
        for step in range(len(episode)):
            source = Source(int(episode.source[step]))
            image, draw = sheet(caption)
            width = min(340, (SIZE[0] - 20 * (len(cameras) + 1)) // len(cameras))
            for place, camera in enumerate(cameras):
                frame = to_picture(episode.observations[camera][step]).resize((width, width), Image.Resampling.BICUBIC)
                image.paste(frame, (20 + place * (width + 20), 80))
            draw.rectangle((20, SIZE[1] - 50, 40, SIZE[1] - 30), fill=SOURCE_COLOURS[source])
            draw.text((50, SIZE[1] - 52), WHO[source], fill=INK, font=font(20))
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
    kinds = parser.add_subparsers(dest="what", required=True)
    every = kinds.add_parser("tasks", help="a film and a curve for each run")
    every.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run directory with a summary.json")
    one = kinds.add_parser("minute", help="the film")
    one.add_argument("runs", nargs=1, type=Path, metavar="RUN", help="run directory with a summary.json")
    one.add_argument("demos", type=Path, metavar="DEMOS", help="store of demonstrations with frames")
    price = kinds.add_parser("person", help="success and the person's time, with and without take-overs")
    price.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run directory with a summary.json")
    price.add_argument("--without", nargs="+", type=Path, default=[], metavar="RUN", help="without take-overs")
    arguments = parser.parse_args()
    runs = [*arguments.runs, *getattr(arguments, "without", [])]
    if missing := [str(run) for run in runs if not (run / "summary.json").is_file()]:
        parser.error(f"no finished run: {', '.join(missing)}; `robot-rl train --resume` finishes one")
    if arguments.what == "tasks":
        tasks(arguments.runs)
    elif arguments.what == "person":
        person(arguments.runs, arguments.without)
    else:
        minute(arguments.runs[0], arguments.demos)


if __name__ == "__main__":
    main()
