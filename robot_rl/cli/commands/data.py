"""`robot-rl data ls | info | verify | view | export | import | merge | split | prune`. Wiring only.

Each command returns its answer, for a program and for a person, and the exit code; `main.py` prints it. A
store may be named by its own directory or by that of the run it belongs to.
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_rl.cli.commands.signing import (
    add_signing_commands,
    add_verify_flags,
    check_verify_flags,
    signed_state,
    state_lines,
)
from robot_rl.cli.parts.command import MakeParser, Reply, flat_lines, in_bytes, positive
from robot_rl.errors import DataError

if TYPE_CHECKING:  # torch takes seconds to import
    from robot_rl.data.schema import Episode
    from robot_rl.run.lineage.chain import ChainLink


def add_data_commands(commands: Any, add: MakeParser) -> None:
    """Add the sub-commands of `robot-rl data`."""
    ls = add(commands, "ls", _ls, "list the episodes of a store", example="robot-rl data ls runs/one")
    _store(ls)

    info = add(commands, "info", _info, "show what is in a store, in numbers", example="robot-rl data info demos")
    _store(info)

    verify = add(
        commands,
        "verify",
        _verify,
        "read and check all of a store; exit with 1 if anything is wrong",
        example="robot-rl data verify demos --repair",
    )
    _store(verify)
    verify.add_argument("--repair", action="store_true", help="move what is wrong aside, recover what was interrupted")
    verify.add_argument(
        "--jobs", type=positive, default=min(4, os.cpu_count() or 1), metavar="N", help="processes that decode episodes"
    )
    add_verify_flags(verify)
    add_signing_commands(commands, add)

    view = add(
        commands,
        "view",
        _view,
        "show episodes: in Rerun, or as a file without a screen",
        example="robot-rl data view runs/one --out sheet.png",
    )
    _store(view)
    view.add_argument(
        "--episode", action="append", default=[], metavar="ID", help="this one; repeatable (default: all)"
    )
    view.add_argument("--out", type=Path, metavar="FILE", help="contact sheet (.png), film (.mp4) or Rerun file (.rrd)")
    view.add_argument("--rewards", metavar="NAME", help="rewards of this labeller (default: those recorded)")

    export = add(
        commands,
        "export",
        _export,
        "write a store in another format",
        example="robot-rl data export runs/one --out dataset",
    )
    _store(export)
    export.add_argument("--format", choices=("lerobot",), default="lerobot", help="which (default: lerobot, v3.0)")
    export.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory of the new dataset")
    export.add_argument(
        "--images", choices=("png", "video"), default="png", help="png is lossless, video is small (default: png)"
    )
    export.add_argument("--fps", type=_number, metavar="RATE", help="frames per second (default: that of the stamps)")
    export.add_argument("--task", metavar="TEXT", help="the instruction of the robot (default: the store's task)")
    export.add_argument(
        "--scene",
        nargs="+",
        default=[],
        metavar="KEY",
        help="vectors for `observation.environment_state`, e.g. state/target",
    )
    export.add_argument(
        "--successes", action="store_true", help="only the episodes that succeeded, e.g. to imitate them"
    )

    take = add(
        commands,
        "import",
        _import,
        "make a store of a LeRobot dataset, of SERL's pickles, or of a ROS 2 bag (MCAP)",
        example="robot-rl data import dataset --out demos",
    )
    take.add_argument(
        "source", type=Path, metavar="SOURCE", help="directory of a dataset, pickles or a bag; a .pkl or .mcap file"
    )
    take.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory of the new store")
    take.add_argument("--mapping", type=Path, metavar="FILE", help="what in a bag is what in an episode (YAML)")
    take.add_argument(
        "--action-scale", type=_number, metavar="X", help="divide a dataset's actions by this (default: 1)"
    )
    take.add_argument(
        "--actor", choices=("human", "policy", "script"), help="who acted in a dataset of others (default: human)"
    )
    take.add_argument("--rate", type=_number, metavar="HZ", help="of control, for SERL's pickles (default: 10)")

    merge = add(
        commands,
        "merge",
        _merge,
        "make one new store of several",
        example="robot-rl data merge demos more --rename --out all",
    )
    merge.add_argument("stores", type=Path, nargs="+", metavar="STORE", help="directories of stores, or of runs")
    merge.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory of the new store")
    merge.add_argument("--rename", action="store_true", help="give episodes whose id is taken a new one")

    split = add(
        commands,
        "split",
        _split,
        "share the episodes of a store out at random among new stores",
        example="robot-rl data split demos --into train=0.8 --into test=0.2 --out parts",
    )
    _store(split)
    split.add_argument(
        "--into", action="append", required=True, type=_part, metavar="NAME=SHARE", help="a new store; repeatable"
    )
    split.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory to make the new stores in")
    split.add_argument("--seed", type=int, default=0, metavar="N", help="the draw follows from it (default: 0)")

    lineage = add(
        commands,
        "lineage",
        _lineage,
        "show what a run, a store or an episode was made of; exit with 1 where the chain breaks",
        example="robot-rl data lineage runs/one",
    )
    lineage.add_argument("path", type=Path, metavar="PATH", help="directory of a run, or of a store")
    lineage.add_argument("--episode", metavar="ID", help="only this episode")

    prune = add(
        commands,
        "prune",
        _prune,
        "take episodes out of a store; they are moved to its folder `aside`",
        example="robot-rl data prune demos --failed",
    )
    _store(prune)
    prune.add_argument("--episode", action="append", default=[], metavar="ID", help="this one; repeatable")
    prune.add_argument("--failed", action="store_true", help="those without success")
    prune.add_argument("--interrupted", action="store_true", help="those whose writer ended before they did")
    prune.add_argument("--shorter-than", type=int, default=0, metavar="N", help="those of fewer steps")


def _store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("store", type=Path, metavar="STORE", help="directory of a store, or of a run")


# --------------------------------------------------------------------- commands


def _ls(arguments: argparse.Namespace) -> Reply:
    from robot_rl.data.store.info import list_episodes
    from robot_rl.data.store.layout import find_store

    rows = list_episodes(find_store(arguments.store))
    width = max([len(row["episode_id"]) for row in rows], default=0)
    return Reply(rows, [_row(row, width) for row in rows])


def _row(row: dict[str, Any], width: int) -> str:
    outcome = {True: "success", False: "failed", None: "-"}[row["success"]]
    if row["interrupted"]:
        outcome = "interrupted"
    return (
        f"{row['position']:>6}  {row['episode_id']:<{width}}  {row['steps']:>6} steps  {outcome:<11}  "
        f"{in_bytes(row['bytes']):>9}"
    )


def _info(arguments: argparse.Namespace) -> Reply:
    from robot_rl.data.store.info import store_facts
    from robot_rl.data.store.layout import find_store

    facts = store_facts(find_store(arguments.store))
    sizes = {key: in_bytes(value) for key, value in facts.items() if key.startswith("bytes")}
    return Reply(facts, flat_lines(facts | sizes))


def _verify(arguments: argparse.Namespace) -> Reply:
    from robot_rl.data.store.layout import find_store
    from robot_rl.data.store.verify import repair, verify
    from robot_rl.system.progress import Progress

    check_verify_flags(arguments)
    path = find_store(arguments.store)
    signed = signed_state(path, arguments.key) if arguments.signed else None
    with Progress(None, "verify", unit="episodes") as progress:

        def show(done: int, total: int) -> None:
            progress.total = total
            progress.update(done)

        check = repair if arguments.repair else verify
        verdict = check(path, jobs=arguments.jobs, on_episode=show)
    lines = [
        f"{v.file}, {'episode ' + v.episode_id if v.episode_id else 'no episode'}, {v.field}: {v.problem}"
        for v in verdict.violations
    ]
    lines += [f"unfinished: {leftover}" for leftover in verdict.leftovers]
    lines += [f"repaired: {done}" for done in verdict.repaired]
    lines.append(f"{verdict.episodes} episodes, {len(verdict.violations)} violations")
    answer = {"store": path, **asdict(verdict)}
    wrong = bool(verdict.violations) and not arguments.repair
    if signed is not None:
        answer["signature"] = asdict(signed)
        lines += state_lines(signed)
        wrong |= bool(signed.differences)
    return Reply(answer, lines, int(wrong))


def _view(arguments: argparse.Namespace) -> Reply:
    from robot_rl.data.store.layout import find_store
    from robot_rl.data.store.store import EpisodeStore

    out, kinds = arguments.out, (".png", ".mp4", ".rrd")
    if out is not None and out.suffix not in kinds:
        arguments.parser.error(f"--out must end in one of {', '.join(kinds)}, got {out.name!r}")
    with EpisodeStore.open(find_store(arguments.store)) as store:
        ids = arguments.episode or store.ids()
        if out is None or out.suffix == ".rrd":
            if arguments.rewards:
                arguments.parser.error("--rewards is for .png and .mp4; Rerun shows the rewards of all labellers")
            from robot_rl.viz.rerun_view import show

            show(store, ids, out)
        else:
            from robot_rl.viz.contact_sheet import contact_sheet
            from robot_rl.viz.film import write_film

            episodes = (store.read(episode_id, rewards=arguments.rewards) for episode_id in ids)
            if out.suffix == ".png":
                contact_sheet(list(episodes), out)
            else:
                write_film(episodes, out)
    return Reply({"episodes": ids, "out": out}, [f"{len(ids)} episodes in {out or 'the viewer'}"])


def _export(arguments: argparse.Namespace) -> Reply:
    from robot_rl.data.formats.lerobot_export import export_lerobot
    from robot_rl.data.store.layout import find_store
    from robot_rl.data.store.store import EpisodeStore
    from robot_rl.system.progress import Progress

    with (
        EpisodeStore.open(find_store(arguments.store)) as store,
        Progress(len(store), "export", unit="episodes") as progress,
    ):
        answer = export_lerobot(
            store,
            arguments.out,
            images=arguments.images,
            fps=arguments.fps,
            task=arguments.task,
            successes=arguments.successes,
            scene=arguments.scene,
            on_episode=_counted(progress.update),
        )
    lines = [f"{answer['episodes']} episodes, {answer['frames']} frames in {arguments.out}"]
    lines += [f"kept beside it, as the format has no place for it: {what}" for what in answer["beside"]]
    return Reply({**answer, "out": arguments.out}, lines)


def _import(arguments: argparse.Namespace) -> Reply:
    from robot_rl.data.formats.serl_import import serl_files
    from robot_rl.data.store.edit import whole_store
    from robot_rl.system.progress import Progress

    is_lerobot = (arguments.source / "meta" / "info.json").is_file()
    is_serl = not is_lerobot and bool(serl_files(arguments.source))
    if arguments.rate is not None and not is_serl:
        arguments.parser.error("--rate is for SERL's pickles; datasets and bags have time stamps")
    if arguments.mapping is not None and (is_lerobot or is_serl):
        arguments.parser.error("--mapping is for bags; datasets and pickles describe themselves")
    read = _read_lerobot if is_lerobot else _read_serl if is_serl else _read_bag
    episodes, metadata, total = read(arguments)
    with (
        whole_store(arguments.out, metadata) as store,
        Progress(total, "import", unit="episodes") as progress,
    ):
        for episode in episodes:
            store.append(episode)
            progress.update(len(store))
        answer = {"episodes": len(store), "steps": sum(row.length for row in store.summaries()), "out": arguments.out}
    return Reply(answer, [f"{answer['episodes']} episodes, {answer['steps']} steps in {arguments.out}"])


_Read = tuple["Iterator[Episode]", Mapping[str, Any], int | None]
"""Episodes one after the other, the metadata of their store, and their number if it is known."""


def _read_lerobot(arguments: argparse.Namespace) -> _Read:
    from robot_rl.data.formats.lerobot_import import LeRobotReader

    reader = LeRobotReader(arguments.source, **_of_others(arguments))
    return reader.episodes(), reader.metadata, len(reader)


def _read_serl(arguments: argparse.Namespace) -> _Read:
    from robot_rl.data.formats.serl_import import RATE, SerlReader

    reader = SerlReader(arguments.source, **_of_others(arguments), rate=arguments.rate or RATE)
    return reader.episodes(), reader.metadata, None


def _of_others(arguments: argparse.Namespace) -> dict[str, Any]:
    from robot_rl.data.schema import Source

    return {"action_scale": arguments.action_scale or 1.0, "source": Source[(arguments.actor or "human").upper()]}


def _read_bag(arguments: argparse.Namespace) -> _Read:
    from robot_rl.data.formats.rosbag_import import bag_files, read_bag
    from robot_rl.data.formats.rosbag_mapping import load_mapping

    try:
        bag_files(arguments.source)
    except DataError as error:
        raise DataError(f"{error}, nor a dataset of LeRobot (meta/info.json), nor pickles of SERL (*.pkl)") from error
    if arguments.mapping is None:
        arguments.parser.error("a bag needs --mapping FILE, which maps its topics to parts of an episode")
    if arguments.action_scale is not None or arguments.actor is not None:
        arguments.parser.error("for a bag, the mapping file sets the source and the scale of the actions")
    mapping = load_mapping(arguments.mapping)
    metadata = {"task": mapping.task, "imported_from": arguments.source.name}
    return read_bag(arguments.source, mapping), metadata, None


def _merge(arguments: argparse.Namespace) -> Reply:
    from robot_rl.data.store.edit import merge
    from robot_rl.data.store.layout import find_store

    count = merge([find_store(path) for path in arguments.stores], arguments.out, rename=arguments.rename)
    return Reply({"store": arguments.out, "episodes": count}, [f"{count} episodes in {arguments.out}"])


def _split(arguments: argparse.Namespace) -> Reply:
    from robot_rl.data.store.edit import split
    from robot_rl.data.store.layout import find_store

    parts = dict(arguments.into)
    if len(parts) < len(arguments.into):
        arguments.parser.error("--into names a new store twice; give each another name")
    counts = split(find_store(arguments.store), arguments.out, parts, seed=arguments.seed)
    return Reply(counts, [f"{count} episodes in {arguments.out / name}" for name, count in counts.items()])


def _prune(arguments: argparse.Namespace) -> Reply:
    from robot_rl.data.store.edit import prune
    from robot_rl.data.store.layout import find_store
    from robot_rl.data.store.operator_labels import outcomes
    from robot_rl.data.store.store import EpisodeStore

    if not (arguments.episode or arguments.failed or arguments.interrupted or arguments.shorter_than):
        arguments.parser.error("select episodes: --episode ID, --failed, --interrupted or --shorter-than N")
    path = find_store(arguments.store)
    with EpisodeStore.open(path) as store:
        if unknown := sorted(set(arguments.episode) - set(store.ids())):
            raise DataError(f"{path}: no episodes {', '.join(unknown)}; `robot-rl data ls` lists them")
        success = outcomes(store)
    ids, folder = prune(
        path,
        lambda row: (
            row.episode_id in arguments.episode
            or (arguments.failed and success.get(row.episode_id, row.success) is not True)
            or (arguments.interrupted and row.facts.interrupted)
            or row.length < arguments.shorter_than
        ),
        "pruned by `robot-rl data prune`",
    )
    where = f"; they lie in {folder}, delete that to free the space" if folder else ""
    return Reply({"pruned": ids, "aside": folder}, [f"{len(ids)} episodes taken out{where}"])


def _lineage(arguments: argparse.Namespace) -> Reply:
    from robot_rl.run.lineage.run_chain import trace
    from robot_rl.system.progress import Progress

    with Progress(None, "compare episodes", unit="episodes") as progress:
        link = trace(arguments.path, arguments.episode, on_episode=_counted(progress.update))
    lines = list(_chain_lines(link, ""))
    breaks = sum(len(one.breaks) for one in link.all())
    unchecked = sum(len(one.unchecked) for one in link.all())
    lines.append(f"breaks of the chain: {breaks}; links that cannot be checked here: {unchecked}")
    return Reply({**asdict(link), "breaks_in_all": breaks, "unchecked_in_all": unchecked}, lines, int(breaks > 0))


# ---------------------------------------------------------------------- helpers


def _chain_lines(link: ChainLink, indent: str) -> Iterator[str]:
    """Yield a link of the chain for a person, and below it what it was made of."""
    yield f"{indent}{link.kind} {link.name}" + ("  (see above)" if link.facts.get("above") else "")
    inner = f"{indent}  "
    shown = {key: value for key, value in link.facts.items() if key != "above" and value is not None}
    yield from (f"{inner}{line}" for line in flat_lines(shown))
    yield from (f"{inner}BREAK: {text}" for text in link.breaks)
    yield from (f"{inner}not checked: {text}" for text in link.unchecked)
    for source in link.sources:
        yield from _chain_lines(source, inner)


def _counted(update: Callable[[int], object]) -> Callable[[], object]:
    """Return a function that calls `update` with the number of its calls."""
    numbers = itertools.count(1)
    return lambda: update(next(numbers))


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number above 0, got {text!r}")
    return value


def _part(text: str) -> tuple[str, float]:
    name, _, share = text.partition("=")
    try:
        value = float(share)
    except ValueError:
        value = -1.0
    if not name or "/" in name or name.startswith(".") or not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(f"must be a name and a share from 0 to 1, e.g. train=0.8, got {text!r}")
    return name, value
