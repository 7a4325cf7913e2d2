"""The price of a person follows from what is recorded: sources of steps, facts of episodes, buttons."""

import json

import numpy as np
from scenes import stamped_store

from robot_rl.cli.parts.summary_text import effort_text
from robot_rl.console.job_state import JobState
from robot_rl.data.episode_facts import EpisodeFacts
from robot_rl.data.schema import Source
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.supervision import OPERATOR_JUDGE, RESET
from robot_rl.run.directory.human_effort import HumanEffort
from sim.tasks.reach import SPEC

P, H, HOLD = int(Source.POLICY), int(Source.HUMAN), int(Source.HOLD)


def priced(tmp_path):
    effort = HumanEffort(0.1, tmp_path / "operator.jsonl")
    effort.add(np.array([H] * 50), EpisodeFacts.of(demonstration=True))
    effort.add(np.array([P, H, H, HOLD, H, P, P, H]), EpisodeFacts.of(demonstration=False, judge=OPERATOR_JUDGE))
    effort.add(np.array([P, P, P]), EpisodeFacts.of(cut=RESET))
    return effort


def test_seconds_take_overs_resets_labels_and_presses_by_hand(tmp_path):
    effort = priced(tmp_path)
    figures = {
        "seconds": 5.4,
        "led_s": 0.4,
        "takeovers": 2,  # a rest inside one is part of it
        "demonstrations": 1,
        "demonstration_s": 5.0,
        "manual_resets": 1,
        "labels": 1,
        "presses": 0,
    }
    assert effort.figures == figures
    rows = [{"kind": kind} for kind in ("took control", "do", "do", "label", "note")]
    log = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "operator.jsonl").write_text(log + '{"kind": "do", "wh')  # another process is writing
    assert effort.figures == {**figures, "labels": 2, "presses": 2}


def test_what_is_known_of_the_first_episodes_is_not_read_again(tmp_path):
    stamped_store(tmp_path / "store", 6)
    whole, first = (HumanEffort(0.1, tmp_path / "operator.jsonl") for _ in range(2))
    with EpisodeStore.open(tmp_path / "store") as store:
        whole.recount(store)
        for row in store.summaries()[:4]:
            first.add(store.sources(row.episode_id), row.facts)
        known, end = first.counts, whole.counts
        for file in sorted((tmp_path / "store" / "episodes").iterdir())[:4]:
            file.unlink()
        first.recount(store, known)
    assert known != end == first.counts
    assert first.figures == whole.figures


def test_it_is_told_in_words(tmp_path):
    text = effort_text(priced(tmp_path).figures | {"seconds": 250.2})
    assert text.startswith("4 min 10 s of human action: led 0 s in 2 take-overs, demonstrated 5 s, 1 manual resets")


def test_the_console_gets_the_newest_price_and_success_alone(tmp_path):
    board = JobState("training", SPEC, 100)
    figures = priced(tmp_path).figures
    board.metric("episode", 40, {"person": figures})
    board.metric("curve", 40, {"success_rate": 0.82})
    assert board.state()["health"] == {"env_step": 40, "person": figures, "success_alone": 0.82}
