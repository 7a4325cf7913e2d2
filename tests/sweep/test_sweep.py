"""Sweeps whose runs are a function of their settings, so that the best trial is known."""

import json
import random

import pytest
from running import SMALL

from robot_rl.bench.jobs import FailedJob, play
from robot_rl.cli.main import main
from robot_rl.errors import ConfigError, RunDirectoryError
from robot_rl.sweep.report import summary, test_runs, write_report
from robot_rl.sweep.sampler import suggest
from robot_rl.sweep.schedule import Schedule, best_of
from robot_rl.sweep.space import Range, Space, ValueList
from robot_rl.sweep.sweep import Sweep
from robot_rl.sweep.trial import TrialRun

test_runs.__test__ = False  # a function of ours, whose name is not that of a test

SPACE = Space({"replay.demo_fraction": Range(0.0, 1.0), "update_to_data": ValueList(("1", "2", "4"))})
SCHEDULE = Schedule(budget=20, round_size=9, steps=900, eta=3, rungs=3)


class KilledError(Exception):
    pass


def score(run):
    """Best at a fraction of 0.3 and 4 updates; more steps show it better; seeds differ."""
    config = run.config
    at_end = 1.0 - abs(config.replay.demo_fraction - 0.3) - 0.1 * abs(config.update_to_data - 4)
    return max(0.0, at_end * min(1.0, 0.5 + config.env_steps / 1800) + 0.01 * (config.seed - 100))


def player(chance=0.0, seed=0):
    """Plays runs; with some chance it is killed after any of them."""
    draw, played = random.Random(seed), []

    def played_runs(runs):
        for run in runs:
            if not run.finished:
                assert run.path / "summary.json" not in played or run.config.env_steps > 100
                run.path.mkdir(parents=True, exist_ok=True)
                content = {"env_steps": run.config.env_steps, "success_rate": score(run)}
                (run.path / "summary.json").write_text(json.dumps(content))
                played.append(run.name)
            if draw.random() < chance:
                raise KilledError
        return []

    played_runs.played = played
    return played_runs


def swept(path, play_runs, schedule=SCHEDULE, seeds=(100, 101)):
    with Sweep(path, "reach", SPACE, schedule, seeds) as sweep:
        sweep.run(play_runs)
    return sweep


def test_a_sweep_that_is_killed_often_has_the_table_of_one_that_is_not(tmp_path):
    whole = swept(tmp_path / "whole", player())
    kills, done, names = 0, None, []
    while done is None:
        play_runs = player(chance=0.08, seed=kills)
        try:
            done = swept(tmp_path / "killed", play_runs)
        except KilledError:
            kills += 1
        names += play_runs.played
    assert kills >= 5
    assert done.table() == whole.table()
    assert len(names) == len(set(names))  # nothing was played twice
    assert [len(row["scores"]) for row in whole.table()].count(3) == 3  # one of each round went all the way
    assert (tmp_path / "whole/sweep.json").read_text() == (tmp_path / "killed/sweep.json").read_text()


def test_later_rounds_look_where_earlier_ones_were_good(tmp_path):
    sweep = swept(tmp_path / "sweep", player(), Schedule(36, 9, 900))
    off = [abs(row["settings"]["replay.demo_fraction"] - 0.3) for row in sweep.table()]
    assert sum(off[18:]) / 18 < 0.75 * sum(off[:9]) / 9
    number, chosen, best = sweep.best()
    assert chosen["update_to_data"] == "4"
    assert best == max(row["scores"].get(900, 0.0) for row in sweep.table())
    assert sweep.table()[number]["settings"] == chosen
    answer = summary(sweep)
    assert set(answer["importance"]) == set(SPACE.axes)
    page = write_report(sweep, answer, "robot-rl sweep").read_text()
    assert page.count("\n| ") >= 36
    assert (tmp_path / "sweep/sweep.png").stat().st_size > 10_000
    runs = test_runs(sweep, [0, 1])
    assert [run.seed for run in runs["best"]] == [0, 1]
    assert runs["best"][0].config.update_to_data == 4
    assert runs["default"][0].config.update_to_data == 8


def test_suggestions_depend_on_seed_round_and_scores_only():
    scored = [({"replay.demo_fraction": x / 10, "update_to_data": "2"}, x / 10) for x in range(10)]
    first = suggest(SPACE, scored, 3, seed=1, round_number=2)
    assert first == suggest(SPACE, scored, 3, seed=1, round_number=2)
    assert first != suggest(SPACE, scored, 3, seed=2, round_number=2)
    assert first != suggest(SPACE, scored, 3, seed=1, round_number=3)
    assert first != suggest(SPACE, [], 3, seed=1, round_number=2)


def test_halving_keeps_the_best_third_and_the_first_of_equals():
    assert [SCHEDULE.steps_at(rung) for rung in range(3)] == [100, 300, 900]
    assert SCHEDULE.promoted({0: 0.1, 1: 0.5, 2: 0.5, 3: 0.2, 4: 0.9, 5: 0.0}) == [4, 1]
    assert SCHEDULE.promoted({7: 0.1}) == [7]
    assert [list(numbers) for numbers in Schedule(5, 2, 10).rounds] == [[0, 1], [2, 3], [4]]
    assert best_of([{0: 0.9, 1: 0.8}, {1: 0.3}, {}]) == (1, 1)


def test_a_trial_that_fails_does_not_go_on_and_has_no_score(tmp_path):
    works = player()

    def play_runs(runs):
        failed = [run for run in runs if run.number == 4]
        works([run for run in runs if run.number != 4])
        return [FailedJob(run, "exit code 1: no memory") for run in failed]

    sweep = swept(tmp_path / "sweep", play_runs, Schedule(9, 9, 900))
    row = sweep.table()[4]
    assert row["scores"] == {}
    assert sweep.best()[0] != 4
    assert len(sweep.scored()) == 8
    answer = summary(sweep)
    assert answer["failed"][0] == "trial 4, seed 100, 100 steps: exit code 1: no memory"
    assert "no memory" in write_report(sweep, answer, "").read_text()
    again = swept(tmp_path / "sweep", player())  # there is nothing left to play, and still no score
    assert summary(again)["failed"] == ["trial 4: it failed in an earlier call; --retry-failed plays it again"]
    unhurt, cured = swept(tmp_path / "unhurt", player(), Schedule(9, 9, 900)), player()
    with Sweep(tmp_path / "sweep", "reach", SPACE, SCHEDULE, (100, 101)) as sweep:
        sweep.retry_failed(cured)
    assert cured.played and all(name.startswith("trial 4,") for name in cured.played)
    assert (sweep.table()[4], sweep.failed) == (unhurt.table()[4], [])


def test_a_sweep_is_continued_with_the_same_space_and_with_more_trials(tmp_path):
    path = tmp_path / "sweep"
    first = swept(path, player(), Schedule(9, 9, 900))
    with pytest.raises(
        ConfigError, match=r"holds a sweep with schedule\.steps=900, here 1800; continue it with the same"
    ):
        swept(path, player(), Schedule(9, 9, 1800))
    with pytest.raises(ConfigError, match=r"holds a sweep with seeds=\[100, 101\], here \[100\]; continue"):
        swept(path, player(), seeds=(100,))
    more = swept(path, player(), Schedule(18, 9, 900))
    assert more.table()[:9] == first.table()
    with pytest.raises(ConfigError, match="has 18 trials already, --budget 12 is less"):
        swept(path, player(), Schedule(12, 9, 900))
    short = swept(tmp_path / "short", player(), Schedule(4, 9, 900))  # less than a round
    longer = swept(tmp_path / "short", player(), Schedule(15, 9, 900))
    assert [len(one.trials) for one in longer.rounds] == [4, 9, 2]
    assert longer.table()[:4] == short.table()
    with (
        Sweep(path, "reach", SPACE, Schedule(18, 9, 900), (100, 101)),
        pytest.raises(RunDirectoryError, match="in use"),
    ):
        Sweep(path, "reach", SPACE, Schedule(18, 9, 900), (100, 101))
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").write_text("mine")
    with pytest.raises(RunDirectoryError, match="not empty and no sweep"):
        swept(tmp_path / "other", player())
    (path / "sweep.json").write_text("{")
    with pytest.raises(RunDirectoryError, match="is not as a sweep writes it"):
        swept(path, player())


@pytest.mark.slow
def test_a_run_goes_on_from_rung_to_rung(tmp_path):
    """Real processes: the second rung resumes what the first one has learned."""
    settings = tuple(text for text in SMALL[1::2] if "=" in text)
    space = Space(SPACE.axes, (*settings, "evaluation.curve_interval=0", "evaluation.episodes=1"))
    chosen = {"replay.demo_fraction": 0.5, "update_to_data": "1"}
    for steps in (40, 80):
        run = TrialRun(0, space.config("reach", 100, steps, chosen), tmp_path / "000/seed-100")
        assert not run.finished
        assert play([run], 1) == []
        assert run.finished and run.score >= 0.0
    starts = json.loads((tmp_path / "000/seed-100/provenance.json").read_text())["starts"]
    assert len(starts) == 2
    other = TrialRun(0, space.config("reach", 100, 80, {**chosen, "update_to_data": "2"}), run.path)
    with pytest.raises(ConfigError, match="made with other settings"):
        other.check()


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        ("--tuning-seeds 3", 1, "seeds [3]: settings are chosen on seeds from 100 on"),
        ("--test-seeds 100", 1, "seeds [100]: settings are chosen"),
        ("--test-seeds 1 1", 1, "--test-seeds: 1 is given twice"),
        ("--eta 1", 2, "--eta must be at least 2"),
        ("--steps 8", 1, "8 env steps are too few for 3 rungs; valid: at least 9"),
        ("--budget 0", 2, "must be a whole number of at least 1"),
        ("--space no.yaml", 1, "cannot read space no.yaml"),
    ],
)
def test_wrong_flags_of_a_sweep(tmp_path, monkeypatch, capsys, flags, code, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.yaml").write_text("space: {update_to_data: [1, 2]}")
    try:
        ended = main(["sweep", "reach", "--space", "space.yaml", "--budget", "3", "--out", "new", *flags.split()])
    except SystemExit as exit_:
        ended = exit_.code
    assert ended == code
    assert message in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
