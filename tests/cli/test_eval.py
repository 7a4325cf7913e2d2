"""`robot-rl eval`, as a user calls it."""

import json

import pytest
from running import environment, robot_rl, snapshot

from robot_rl.cli.main import main
from robot_rl.data.store.store import EpisodeStore


@pytest.mark.slow
def test_eval_repeats_the_result_of_the_run_and_does_not_touch_it(finished):
    path, trained = finished
    before = snapshot(path)
    done = robot_rl("eval", path, "--json")
    answer, summary = json.loads(done.stdout), json.loads(trained.stdout)
    assert done.returncode == 0
    kept = ("task", "episodes", "success_rate", "success_ci95", "return_mean", "force_peak_p95_n", "video")
    assert {key: answer[key] for key in kept} == {key: summary[key] for key in kept}
    assert len(answer["results"]) == 3
    assert snapshot(path) == before


@pytest.mark.slow
def test_eval_keeps_its_episodes_if_asked(finished, tmp_path):
    path, _ = finished
    done = robot_rl("eval", path, "--episodes", 2, "--record", tmp_path / "episodes", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(robot_rl("data", "ls", tmp_path / "episodes", "--json").stdout)
    results = json.loads(done.stdout)["results"]
    assert [row["episode_id"] for row in rows] == ["evaluation-0000", "evaluation-0001"]
    assert [(row["success"], row["steps"]) for row in rows] == [(one["success"], one["steps"]) for one in results]
    again = robot_rl("eval", path, "--episodes", 2, "--record", tmp_path / "episodes")
    assert (again.returncode, "already holds an episode store" in again.stderr) == (1, True)


@pytest.mark.slow
def test_eval_with_the_policys_noise(finished, capsys):
    path, answers = str(finished[0]), []
    for share in ("0", "1", "1"):
        assert main(["eval", path, "--episodes", "2", "--json", "--set", f"sac.deployed_noise={share}"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert [one["deployed_noise"] for one in answers] == [0.0, 1.0, 1.0]
    assert answers[1] == answers[2]
    assert answers[0]["results"] != answers[1]["results"]


@pytest.mark.slow
def test_eval_in_another_world_records_it(finished, tmp_path, capsys):
    path, file = str(finished[0]), tmp_path / "results" / "biased.json"
    world = ["--set", "world.wrench_bias=2", "--set", "simulation.command_delay=0.05"]
    assert main(["eval", path, "--episodes", "2", "--out", str(file), "--record", str(tmp_path / "store"), *world]) == 0
    said = capsys.readouterr().out
    assert said.startswith("in another world: simulation.command_delay=0.05, world.wrench_bias=2.0\n")
    result = json.loads(file.read_text())
    assert result["changes"] == {"simulation.command_delay": 0.05, "world.wrench_bias": 2.0}
    assert (result["world"]["task"], result["world"]["world"]["wrench_bias"], result["run"]) == ("reach", 2.0, path)
    with EpisodeStore.open(tmp_path / "store") as store:
        assert store.metadata["world"] == result["world"]
    assert main(["eval", path, "--episodes", "2", "--json"]) == 0
    own = json.loads(capsys.readouterr().out)
    assert own["changes"] == {}
    assert own["results"] != result["results"]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            ("--task", "peg_insert"),
            "reach does not fit peg_insert: it observes state/target, which peg_insert does not",
        ),
        (("--task", "gym:Pendulum-v1"), "an action is 1 numbers there, not 3"),
        (("--task", "reech"), "did you mean 'reach'"),
        (("--set", "world.tilt=0.1"), "reach has no world.tilt; it has arm, wrench_bias"),
        (("--set", "sac.discount=0.5"), "is no setting of the world, and the policy stays as it is"),
        (("--set", "world.brightnes=2"), "did you mean 'world.brightness'"),
        (("--set", "sac.deployed_noise=2"), "sac.deployed_noise: 2 should be less than or equal to 1"),
    ],
)
def test_a_world_that_does_not_fit_is_refused_in_one_line(finished, capsys, call, expected):
    assert main(["eval", str(finished[0]), "--episodes", "1", *call]) == 1  # in this process, as it is one of many
    complaint = capsys.readouterr().err
    assert expected in complaint
    assert complaint.startswith("robot-rl: ")
    assert complaint.count("\n") == 1


def test_eval_below_the_rate_asked_for_exits_with_1(finished):
    path, _ = finished
    done = robot_rl("eval", path, "--episodes", 1, "--min-success", 1)
    assert done.returncode == 1
    assert "success 0.000 on 1 held-out resets of reach" in done.stdout
    assert "success 0.000 is below --min-success 1" in done.stderr


@pytest.mark.slow
def test_eval_films_from_the_cameras_asked_for(finished, tmp_path):
    path, _ = finished
    film = tmp_path / "films" / "front.mp4"
    done = robot_rl("eval", path, "--episodes", 1, "--video", film, "--camera", "front", "--json")
    if "cannot make an OpenGL context" in done.stderr:
        pytest.skip("this machine cannot render")
    assert (done.returncode, json.loads(done.stdout)["video"]) == (0, str(film)), done.stderr
    import av

    with av.open(str(film)) as container:
        stream = container.streams.video[0]
        assert (stream.width, stream.height) == (320, 272), "with the captions"
        assert stream.frames >= 40 + 10  # an episode, and a second for its last frame

    wrong = robot_rl("eval", path, "--video", tmp_path / "side.mp4", "--camera", "side")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "unknown camera 'side'; valid: front, wrist" in wrong.stderr


@pytest.mark.slow
def test_where_nothing_can_be_rendered_results_are_not_lost(copy, tmp_path):
    blind = environment(MUJOCO_GL="disable")
    film = tmp_path / "film.mp4"
    evaluated = robot_rl("eval", copy, "--episodes", 1, "--video", film, "--json", env=blind)
    answer = json.loads(evaluated.stdout)
    assert (evaluated.returncode, answer["episodes"], answer["video"]) == (1, 1, None)

    (copy / "summary.json").unlink()
    more = ("--set", "evaluation.video_episodes=1", "--episodes", 2)
    trained = robot_rl("train", "--resume", "--out", copy, *more, env=blind)
    summary = json.loads((copy / "summary.json").read_text())
    assert (trained.returncode, summary["episodes"], summary["video"]) == (0, 2, None)
    for done in (evaluated, trained):
        assert "warning: no video: cannot make an OpenGL context" in done.stderr
        assert "install libegl1" in done.stderr
    assert not film.exists()
    assert not (copy / "evaluation.mp4").exists()
