"""`robot-rl label` as a user calls it: other processes, real servers, Ctrl-C and kill -9."""

import json
import shutil
import signal
import time

import pytest
from model_server import ModelServer, prefers_larger, refusal, reply, says_success
from running import environment, robot_rl, start
from scenes import FRAMES, stamped_episode, stamped_store

from robot_rl.data.store.reward_overlays import overlay_fingerprints, overlay_names, read_overlay
from robot_rl.data.store.store import EpisodeStore
from robot_rl.reward.label_store import LabelStore

pytestmark = pytest.mark.slow

KEY = "sk-a-secret-of-the-user"


def flags(server, *more):
    return ("--url", server.url, "--set", "task=push it", "--set", "frames.count=3", *more)


def stored(path, name="success"):
    with LabelStore(path) as labels:
        return list(labels.labels(name))


def test_labels_are_made_and_told(tmp_path):
    path = stamped_store(tmp_path / "s")
    with ModelServer(says_success) as server:
        done = robot_rl("label", "run", path, *flags(server), "--json")
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert (answer["queried"], answer["ok"], answer["model"]) == (6, 6, "test/vision-1")
        again = robot_rl("label", "run", path, *flags(server))
        assert "0 new, 6 known before" in again.stdout
    assert len(stored(path)) == 6


def test_killed_at_any_moment_it_loses_no_label_and_asks_none_of_them_again(tmp_path):
    path = stamped_store(tmp_path / "s", 12)
    asked = []

    def slowly(request):
        time.sleep(0.05)
        asked.append(request.stamps[-1])
        return says_success(request)

    with ModelServer(slowly) as server:
        process = start("label", "run", path, *flags(server, "--set", "endpoint.concurrency=2"))
        database = path / "labels" / "labels.sqlite"
        deadline = time.monotonic() + 60
        while len(asked) < 6 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert database.exists()
        kept = stored(path)
        assert kept
        before = len(asked)
        done = robot_rl("label", "run", path, *flags(server))
        assert done.returncode == 0, done.stderr
        assert len(stored(path)) == 12
        after = asked[before:]
        known = {int(json.loads(one.answer.raw)["seen"].removeprefix("number ")) for one in kept}
        assert not known & set(after)
        assert len(asked) <= 12 + 2 + 1  # what was on its way when it was killed is asked again, nothing else


def test_ctrl_c_keeps_what_was_answered_and_says_how_to_go_on(tmp_path):
    path = stamped_store(tmp_path / "s", 12)

    def slowly(request):
        time.sleep(0.5)
        return says_success(request)

    with ModelServer(slowly) as server:
        process = start("label", "run", path, *flags(server, "--set", "endpoint.concurrency=1"))
        while len(server.requests) < 4:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "new labels are stored, the same command goes on from there" in errors
        assert "Traceback" not in errors
        assert len(stored(path)) >= 4 - 1
        assert robot_rl("label", "run", path, *flags(server)).returncode == 0
        assert len(server.requests) == 12


def test_a_spent_budget_is_told_and_is_no_success(tmp_path):
    path = stamped_store(tmp_path / "s")
    with ModelServer(says_success) as server:
        done = robot_rl("label", "run", path, *flags(server, "--set", "budget.calls=2"))
        assert done.returncode == 1
        assert "stopped: the budget does not reach for another call (calls: 2 of 2 used)" in done.stdout
        assert "the same command goes on from here" in done.stdout


def test_labels_without_any_value_are_reported_and_are_no_success(tmp_path):
    path = stamped_store(tmp_path / "s", 12)
    with ModelServer(lambda _: reply("It went well.")) as server:
        done = robot_rl("label", "run", path, *flags(server))
        assert done.returncode == 1
        assert "stopped: 1" in done.stdout
        assert "because it holds no JSON object" in done.stdout
        few = robot_rl("label", "run", stamped_store(tmp_path / "few", 3), *flags(server), "--json")
        assert (few.returncode, json.loads(few.stdout)["reasons"]) == (1, {"it holds no JSON object": 3})


def test_wrong_settings_are_refused_before_the_first_connection(tmp_path):
    path = stamped_store(tmp_path / "s", 2)
    with ModelServer(says_success) as server:
        for wrong in (("--name", "Bad Name"), ("--set", "budget.money=1"), ("--set", "frames.camera=no")):
            assert robot_rl("label", "run", path, *flags(server, *wrong)).returncode == 1
        assert robot_rl("label", "watch", path, *flags(server, "--name", "Bad Name")).returncode == 1
        assert server.connections == 0


def test_the_key_is_nowhere(tmp_path):
    path = stamped_store(tmp_path / "s")
    with ModelServer(says_success, key=KEY) as server:
        done = robot_rl("label", "run", path, *flags(server), env=environment(OPENAI_API_KEY=KEY))
        assert done.returncode == 0, done.stderr
        refused = robot_rl("label", "run", path, *flags(server), env=environment(OPENAI_API_KEY=KEY + "x"))
        assert refused.returncode == 1
    told = done.stdout + done.stderr + refused.stdout + refused.stderr
    assert KEY not in told
    assert "the key in it is not accepted" in refused.stderr
    assert all(KEY.encode() not in file.read_bytes() for file in path.rglob("*") if file.is_file())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "which STORE?"),
        (("nowhere",), "neither an episode store"),
        (("STORE", "--set", "frames.cuont=3"), "did you mean 'frames.count'"),
        (("STORE", "--set", "endpoint.timeout_s=-1"), "greater than 0"),
        (("STORE", "--kind", "rating"), "invalid choice"),
        (("STORE", "--name", "Bad Name", "--url", "URL", "--set", "task=x"), "lower-case letters"),
        (("STORE", "--url", "http://127.0.0.1:9/v1", "--set", "task=x"), "start the server, or set endpoint.url"),
        (("STORE", "--url", "URL", "--model", "gpt", "--set", "task=x"), "has no model 'gpt'; it serves: test/vision"),
        (("STORE", "--url", "URL"), "set it with --set task="),
        (("STORE", "--url", "URL", "--set", "prompt=no.yaml", "--set", "task=x"), "cannot read prompt no.yaml"),
        (("STORE", "--url", "URL", "--set", "task=x", "--set", "answer=logprobs"), "gave no log-probabilities"),
    ],
)
def test_mistakes_are_told_with_their_cure(tmp_path, arguments, told):
    path = stamped_store(tmp_path / "s", 1)
    with ModelServer(says_success) as server:
        names = {"STORE": str(path), "URL": server.url}
        done = robot_rl("label", "run", *(names.get(word, word) for word in arguments))
    assert done.returncode in (1, 2)
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_the_doctor_finds_what_is_wrong():
    def colours(request):
        first, second = (image[:, :, 0].mean() > image[:, :, 2].mean() for image in request.images)
        return reply(json.dumps({"seen": "", "closer": "first" if first > second else "second"}))

    with ModelServer(colours) as server:
        good = robot_rl("label", "doctor", "--kind", "preference", "--url", server.url)
        assert (good.returncode, good.stdout.count("good")) == (0, 4), good.stdout
        server.answer = lambda _: reply(json.dumps({"seen": "", "closer": "first"}))
        biased = robot_rl("label", "doctor", "--kind", "preference", "--url", server.url)
        assert biased.returncode == 1
        assert "BAD   sense: it does not distinguish red from blue" in biased.stdout
        server.faults = [refusal(400, "this server does not support images")]
        blind = robot_rl("label", "doctor", "--url", server.url)
        assert blind.returncode == 1
        assert "choose a model that sees" in blind.stdout
    gone = robot_rl("label", "doctor", "--url", server.url)
    assert (gone.returncode, "start the server" in gone.stdout) == (1, True)


def test_settings_are_listed():
    done = robot_rl("label", "run", "--list-settings", "--json")
    keys = {row["key"]: row for row in json.loads(done.stdout)}
    assert keys["budget.calls"]["default"] == 0
    assert all(row["help"] for row in keys.values())


def test_pairs_by_the_command_line(tmp_path):
    path = stamped_store(tmp_path / "s")
    with ModelServer(prefers_larger) as server:
        done = robot_rl("label", "run", path, "--kind", "preference", *flags(server, "--set", "pairs=5"))
    assert done.returncode == 0, done.stderr
    assert len(stored(path, "preference")) == 10


def test_preferences_become_rewards_if_one_insists(tmp_path):
    path = stamped_store(tmp_path / "s")
    with ModelServer(prefers_larger) as server:
        robot_rl("label", "run", path, "--kind", "preference", *flags(server, "--set", "pairs=30"))
    what = ("label", "apply", path, "--name", "preference", "--rewards", "liked", "--features", "state")
    refused = robot_rl(*what)
    assert refused.returncode == 1
    assert "fit for learning a reward" in refused.stderr.lower()
    done = robot_rl(*what, "--allow-uncalibrated", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["rewards"], answer["episodes"], answer["certified"]) == ("liked", 6, False)
    with EpisodeStore.open(path) as store:
        for episode in store.episodes(rewards="liked"):
            assert episode.reward_source == "liked"
            assert episode.terminated[-1]
            assert (episode.reward >= 0.0).all()


def known_store(path, episodes=60, *, steps=3):
    """Episode n succeeded if n is even; the server below sees the stamp, and is wrong for every sixth."""
    with EpisodeStore.create(path, {"task": "push"}) as store:
        for number in range(episodes):
            store.append(stamped_episode(number, steps))
    return path


def is_mostly_right(request):
    number = request.stamps[-1] // FRAMES
    right = number % 2 == 0
    verdict = "success" if right != (number % 6 == 3) else "failure"
    return reply(json.dumps({"seen": "", "verdict": verdict, "confidence": 70 + number % 20}))


def test_from_labels_to_gates(tmp_path):
    path = known_store(tmp_path / "s")
    with ModelServer(is_mostly_right) as server:
        first = robot_rl("label", "run", path, *flags(server))
        assert first.returncode == 0
        assert "needs at least 189 successes, 381 failures, 73 near misses" in first.stderr
        assert "known are 30 failures and 30 successes" in first.stderr
        robot_rl("label", "run", path, *flags(server, "--name", "again"))
    raw = robot_rl("label", "report", path, "--name", "success")
    assert raw.returncode == 0, raw.stderr
    assert "not calibrated" in raw.stdout
    assert "NOT FIT for sparse reward and ending episodes" in raw.stdout
    fitted = robot_rl("label", "calibrate", path, "--share", "0.5")
    assert fitted.returncode == 0, fitted.stderr
    assert "fitted to 30 episodes" in fitted.stdout
    report = json.loads(robot_rl("label", "report", path, "--name", "success", "--json").stdout)
    assert report["compared"] == 30
    assert report["sequential"]["fitness"] in ("not shown", "unfit")
    assert 0.5 < report["figures"]["roc_auc"]["value"] < 1.0
    assert report["figures"]["precision"]["value"] is not None or report["figures"]["recall"]["value"] == 0.0
    compared = robot_rl("label", "compare", path, "--name", "success", "--name", "again", "--json")
    assert json.loads(compared.stdout)["difference"]["again"]["value"] == 0.0


def test_a_persons_outcomes_count_instead(tmp_path):
    path = known_store(tmp_path / "s", 24)
    with ModelServer(says_success) as server:
        robot_rl("label", "run", path, *flags(server))
    table = tmp_path / "people.csv"
    table.write_text("episode_id,success\n" + "".join(f"episode-{n},{int(n % 2 == 1)}\n" for n in range(20)))
    done = robot_rl("label", "report", path, "--truth", table, "--json")
    assert done.returncode == 0, done.stderr
    table.write_text("episode_id,success\nepisode-99,1\n")
    assert "people.csv:2: the store has no episode" in robot_rl("label", "report", path, "--truth", table).stderr
    table.write_text("episode_id,success\nepisode-1,perhaps\n")
    assert "success is 'perhaps'; valid: 1, true" in robot_rl("label", "report", path, "--truth", table).stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("report", "STORE"), "no labels there; `robot-rl label run` makes some"),
        (("calibrate", "STORE"), "no labels there"),
        (("compare", "STORE"), "--name"),
        (("calibrate", "STORE", "--share", "2"), "must be a number from 0 to below 1"),
    ],
)
def test_questions_that_cannot_be_answered(tmp_path, arguments, told):
    path = stamped_store(tmp_path / "s", 1)
    done = robot_rl("label", *(str(path) if word == "STORE" else word for word in arguments))
    assert done.returncode in (1, 2)
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_rewards_are_made_only_of_labels_that_are_good_for_it(tmp_path):
    path = known_store(tmp_path / "s", 12)
    with ModelServer(is_mostly_right) as server:
        robot_rl("label", "run", path, *flags(server))
    refused = robot_rl("label", "apply", path, "--rewards", "vlm")
    assert refused.returncode == 1
    assert "fit for sparse reward and ending episodes" in refused.stderr.lower()
    assert "--allow-uncalibrated takes the risk" in refused.stderr
    as_person = robot_rl("label", "apply", path, "--rewards", "operator-1", "--allow-uncalibrated")
    assert "that is a name of labels by operators" in as_person.stderr
    done = robot_rl("label", "apply", path, "--rewards", "vlm", "--allow-uncalibrated")
    assert done.returncode == 0, done.stderr
    assert "be how to deceive the labeller" in done.stdout
    with EpisodeStore.open(path) as store:
        for number, name in enumerate(store.ids()):
            judged = store.read(name, rewards="vlm")
            wanted = (number % 2 == 0) != (number % 6 == 3)
            assert judged.reward.tolist() == [0, 0, float(wanted)]
            assert store.read(name).reward.tolist() != judged.reward.tolist()
        overlay = read_overlay(path, "vlm", store.fingerprint(name))
    assert overlay.provenance["certified"] is False
    assert overlay.provenance["labeller"]["model"] == "test/vision-1"
    again = robot_rl("label", "apply", path, "--rewards", "vlm", "--allow-uncalibrated")
    assert "label under another name" in again.stderr

    anew = known_store(tmp_path / "recorded anew", 12, steps=4)
    shutil.copytree(path / "labels", anew / "labels")
    done = robot_rl("label", "apply", anew, "--rewards", "vlm", "--allow-uncalibrated")
    assert "0 episodes have rewards" in done.stdout
    assert "note: 12 labels are of recordings that the store no longer holds" in done.stdout


def test_a_killed_apply_leaves_no_half_rewards_and_is_called_again(tmp_path):
    path, overlays = known_store(tmp_path / "s", 60), tmp_path / "s" / "overlays"
    with ModelServer(is_mostly_right) as server:
        robot_rl("label", "run", path, *flags(server))
    what = ("label", "apply", path, "--rewards", "vlm", "--allow-uncalibrated")
    process = start(*what)
    deadline = time.monotonic() + 60
    while len(list(overlays.glob("*vlm*/*.zip"))) < 5 and time.monotonic() < deadline:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert 5 <= len(list(overlays.glob("*vlm*/*.zip"))) < 60, "it was killed in between"
    assert overlay_names(path) == []
    facts = json.loads(robot_rl("data", "info", path, "--json").stdout)
    assert "overlays" not in facts
    done = robot_rl(*what)
    assert (done.returncode, "60 episodes have rewards 'vlm' now" in done.stdout) == (0, True), done.stderr
    assert len(overlay_fingerprints(path, "vlm")) == 60
    assert [folder.name for folder in overlays.iterdir()] == ["vlm"]


def test_episodes_are_labelled_while_they_are_recorded_and_a_bad_labeller_raises_an_alarm(tmp_path):
    path = tmp_path / "s"

    def rewards_everything(request):
        return reply(json.dumps({"seen": "", "verdict": "success", "confidence": 95}))

    with ModelServer(rewards_everything) as server, EpisodeStore.create(path, {"task": "push"}) as store:
        process = start("label", "watch", path, *flags(server, "--pause", "0.1", "--json"))
        assert "watching" in process.stderr.readline()
        for number in range(8):
            store.append(stamped_episode(number, 3, success=False))
            time.sleep(0.05)
        deadline = time.monotonic() + 60
        while len(server.requests) < 8 and time.monotonic() < deadline:
            time.sleep(0.05)
        while len(stored(path)) < 8 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    answer = json.loads(out)
    assert (answer["labelled"], answer["judged"], answer["alarms"]) == (8, 8, 1)
    assert answer["lag_p95_s"] < 60
    assert errors.count("ALARM after episode-") == 1
    assert "the labeller calls failures a success: 5 of the last 5 failures" in errors
    assert process.returncode == 1
    assert len(server.requests) == 8


def test_watching_outlives_a_server_that_is_away(tmp_path):
    path = stamped_store(tmp_path / "s", 2)
    with ModelServer(says_success, faults=[refusal(503, "loading")] * 4) as server:
        settings = ("--set", "endpoint.attempts=2", "--set", "endpoint.backoff_s=0.01")
        process = start("label", "watch", path, *flags(server, "--pause", "0.1", *settings))
        deadline = time.monotonic() + 60
        while not server.requests and time.monotonic() < deadline:
            time.sleep(0.05)
        while time.monotonic() < deadline and len(stored(path)) < 2:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 0
        assert len(stored(path)) == 2


def test_demonstrations_can_be_recorded_with_cameras(tmp_path):
    done = robot_rl("demo", "reach", "--episodes", 1, "--camera", "front", "--out", tmp_path / "s")
    assert done.returncode == 0, done.stderr
    with EpisodeStore.open(tmp_path / "s") as store:
        frames = store.read(store.ids()[0]).observations["images/front"]
    assert frames.dtype == "uint8"
    assert frames.shape[1:] == (128, 128, 3)
    assert frames.std() > 1
