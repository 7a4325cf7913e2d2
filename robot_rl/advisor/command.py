"""`robot-rl advisor`: how well the failures of a policy can be predicted while it acts."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_rl.cli.parts.command import MakeParser, Reply, share
from robot_rl.system.process import one_thread

if TYPE_CHECKING:
    from robot_rl.advisor.calibration import RuleQuality


def add_command(commands: Any, make: MakeParser) -> None:
    """Add the command."""
    parser = make(
        commands,
        "advisor",
        _advisor,
        "measure how well each rule predicts, while a policy acts, that it will fail",
        example="robot-rl advisor runs/one --episodes evaluated",
        page="docs/person.md",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="run directory, whose critics are asked")
    parser.add_argument(
        "--episodes",
        type=Path,
        required=True,
        metavar="STORE",
        help="episodes that the run has not learned from, of `robot-rl eval RUN --record STORE`",
    )
    parser.add_argument(
        "--precision",
        type=share,
        default=0.9,
        metavar="SHARE",
        help="least share of rightful calls where the threshold is set (default: 0.9)",
    )
    parser.add_argument(
        "--at",
        type=_rule_at,
        metavar="RULE=RISK",
        help="judge this rule with this threshold on all episodes, instead, e.g. doubt=0.5",
    )
    parser.add_argument(
        "--lead",
        type=float,
        default=2.0,
        metavar="S",
        help="a call counts if it comes this long before the end (default: 2)",
    )


def _advisor(arguments: argparse.Namespace) -> Reply:
    if not 0.0 <= arguments.lead < float("inf"):
        arguments.parser.error(f"--lead must be a time of at least 0 s, got {arguments.lead:g}")
    one_thread()
    from robot_rl.advisor.calibration import Played, calibrate, judge
    from robot_rl.advisor.traces import read_traces
    from robot_rl.calling.rules import RULES

    traces, period = read_traces(arguments.run, arguments.episodes)
    timing = {"lead_s": arguments.lead, "control_period": period}
    answer, lines = {}, []
    for name in RULES if arguments.at is None else [arguments.at[0]]:
        played = [Played(RULES[name](trace), success) for trace, success in traces]
        if arguments.at is None:
            found = calibrate(played, precision=arguments.precision, **timing)
        else:
            found = judge(played, arguments.at[1], **timing)
        answer[name] = asdict(found)
        lines.append(f"{name:<6} {_text(found)}")
    return Reply(answer, lines)


def _text(found: RuleQuality) -> str:
    if found.threshold is None:
        return "no threshold is precise enough"
    low, high = found.recall_ci95
    recall = "no failures"
    if found.recall is not None:
        recall = f"recall {found.recall:.2f} ({low:.2f}-{high:.2f}) of {found.failures} failures"
    if found.precision is None:
        return f"threshold {found.threshold:.3g}: no calls in {found.episodes} episodes, {recall}"
    low, high = found.precision_ci95
    precision = f"precision {found.precision:.2f} ({low:.2f}-{high:.2f}) of {found.calls} calls"
    saved = "" if found.saved_s is None else f", {found.saved_s:.1f} s before the end"
    false = f"{found.false_calls_per_hour:.1f} false calls an hour"
    return f"threshold {found.threshold:.3g}: {precision}, {recall}, {false}{saved}"


def _rule_at(text: str) -> tuple[str, float]:
    from robot_rl.calling.rules import RULES

    name, _, threshold = text.partition("=")
    if name not in RULES:
        raise argparse.ArgumentTypeError(f"must be RULE=RISK with RULE one of {', '.join(RULES)}, got {text!r}")
    return name, share(threshold)
