"""The report of an examination: for a terminal, for a program, and as a page that can be sent to a colleague."""

from __future__ import annotations

import base64
import datetime
import html
import platform
from collections.abc import Sequence
from typing import Any

import robot_rl
from robot_rl.doctor.contract.result import SEVERITIES, CheckResult, without_credentials, worst

_COLUMN = 24
_BAR = 40
"""Characters of the longest bar of a histogram."""


def summary(results: Sequence[CheckResult], subject: str) -> dict[str, Any]:
    """Return the report as plain values.

    Args:
        results: What was found.
        subject: What was examined, e.g. the name of a robot's configuration.
    """
    return {
        "format": "robot_rl.doctor/1",
        "subject": without_credentials(subject),
        "machine": platform.node(),
        "system": platform.platform(),
        "robot_rl": robot_rl.__version__,
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "verdict": worst(results),
        **{f"{severity}s" if severity != "ok" else "ok": _count(results, severity) for severity in SEVERITIES},
        "results": [result.row() for result in results],
    }


def conclusion(results: Sequence[CheckResult]) -> str:
    """Return the last line: may an arm move?"""
    faults, notes = _count(results, "fault"), _count(results, "note")
    noted = f"{notes} note{'s' if notes != 1 else ''}"
    if faults:
        return f"{faults} fault{'s' if faults != 1 else ''}, {noted}: cure the fault{'s' if faults != 1 else ''} first"
    return f"no fault, {noted}: nothing here has to be cured before an arm moves"


def text_lines(results: Sequence[CheckResult]) -> list[str]:
    """Return the report for a terminal: faults first, each with its cure; then notes; what is well last."""
    lines = []
    for severity in SEVERITIES:
        for result in (one for one in results if one.severity == severity):
            lines.append(f"{severity:<6} {without_credentials(result.name)}: {without_credentials(result.text)}")
            if severity != "ok":
                lines += [f"{'':<6} {label}: {text}" for label, text in _details(result)]
            most = max((count for _, count in result.histogram), default=0)
            for label, count in result.histogram:
                if count:
                    lines.append(f"{'':<8} {label:>16} {'#' * max(1, _BAR * count // most)} {count}")
    return [*lines, conclusion(results)]


def html_page(
    results: Sequence[CheckResult], subject: str, *, title: str = "robot-rl doctor", picture: bytes | None = None
) -> str:
    """Return the report as one page without scripts, other files, or credentials.

    Args:
        results: What was found.
        subject: What was examined.
        title: The heading.
        picture: A PNG to show above the results.
    """
    answer, rows = summary(results, subject), []
    for severity in SEVERITIES:
        for result in (one for one in results if one.severity == severity):
            details = "".join(
                f"<dt>{label}</dt><dd>{f'<code>{_escaped(text)}</code>' if label == 'cure' else _escaped(text)}</dd>"
                for label, text in _details(result)
            )
            rows.append(
                f'<section class="{severity}"><h2><span>{severity}</span> {_escaped(result.name)}</h2>'
                f"<p>{_escaped(result.text)}</p>{f'<dl>{details}</dl>' if details else ''}{_bars(result)}</section>"
            )
    facts = " · ".join(
        _escaped(str(answer[key])) for key in ("subject", "machine", "system", "time") if str(answer[key])
    )
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{_escaped(title)}: {answer['verdict']}</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>{_escaped(title)}</h1><p class='facts'>{facts} · robot_rl {_escaped(answer['robot_rl'])}</p>"
        f"<p class='conclusion {answer['verdict']}'>{_escaped(conclusion(results).capitalize())}.</p>"
        f"{_shown(picture)}{''.join(rows)}</main></body></html>\n"
    )


def _shown(picture: bytes | None) -> str:
    if picture is None:
        return ""
    data = base64.b64encode(picture).decode()
    return f'<img alt="what was commanded and measured" src="data:image/png;base64,{data}">'


def _details(result: CheckResult) -> list[tuple[str, str]]:
    """Return number, limit and cure, those that there are."""
    number = "" if result.value is None else f"{result.value:g} {result.unit}".strip()
    rows = (("seen", number), ("limit", result.limit), ("cure", result.cure))
    return [(label, without_credentials(text)) for label, text in rows if text]


def _count(results: Sequence[CheckResult], severity: str) -> int:
    return sum(result.severity == severity for result in results)


def _escaped(text: str) -> str:
    return html.escape(without_credentials(text))


def _bars(result: CheckResult) -> str:
    most = max((count for _, count in result.histogram), default=0)
    rows = (
        f"<tr><th>{_escaped(label)}</th><td><i style='width:{100 * count / most:.1f}%'></i></td><td>{count}</td></tr>"
        for label, count in result.histogram
        if most
    )
    return f"<table>{''.join(rows)}</table>" if most else ""


_STYLE = """
:root{color-scheme:light dark;--line:#d8dde3;--soft:#5b6570;--ok:#1a7f4b;--note:#8a5a00;--fault:#b3261e;--paper:#f6f8fa}
@media (prefers-color-scheme:dark){:root{--line:#39414a;--soft:#a6b0bb;--ok:#5fd39a;--note:#f0b84a;--fault:#ff8a80;
--paper:#1d2329}}
body{font:16px/1.45 system-ui,sans-serif;margin:0}main{max-width:56rem;margin:0 auto;padding:1.5rem}
h1{font-size:1.5rem;margin:0}.facts{color:var(--soft);margin:.25rem 0 1rem;overflow-wrap:anywhere}
.conclusion{font-weight:600;padding:.75rem 1rem;background:var(--paper);border-left:.3rem solid}
section{border-top:1px solid var(--line);padding:.6rem 0}section p{margin:.2rem 0}
h2{font-size:1rem;margin:0;overflow-wrap:anywhere}h2 span{display:inline-block;min-width:3.2rem}
.ok h2 span,.conclusion.ok{color:var(--ok)}.note h2 span,.conclusion.note{color:var(--note)}
.fault h2 span,.conclusion.fault{color:var(--fault)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem .8rem;margin:.3rem 0}dt{color:var(--soft)}dd{margin:0}
code{background:var(--paper);padding:.1rem .3rem;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%;font-size:.85rem;margin:.4rem 0}
th{text-align:right;font-weight:400;width:8rem}
td:nth-child(2){padding:0 .6rem}td:last-child{width:4rem}img{width:100%;height:auto;background:#fff}
i{display:block;height:.7rem;background:var(--ok)}
"""
