"""A run that goes on with another robot file records that one, and keeps what it recorded before."""

import json

import pytest
from judged_arm import judged_arm

from robot_rl.cli.main import main

SMALL = ("--episodes", "1", "--set", "evaluation.curve_interval=0", "--set", "warmup_steps=5")
BEGIN = (*SMALL, "--set", "demonstrations=0", "--set", "replay.batch_size=8", "--set", "sac.hidden_sizes=[8]")


@pytest.mark.slow
@pytest.mark.wall_clock
def test_provenance_names_the_robot_file_of_now_and_those_of_before(tmp_path, capsys):
    files = {name: tmp_path / f"{name}.yaml" for name in ("first", "second", "third")}
    for file in files.values():
        file.write_text(judged_arm(cell={"judge": "goal"}, task={"max_steps": 10}))

    def train(*flags, robot):
        return main(["train", *map(str, flags), "--robot", str(files[robot])])

    def provenance(run):
        return json.loads((run / "provenance.json").read_text())

    run, fork = tmp_path / "run", tmp_path / "fork"
    assert train("plug", *BEGIN, "--steps", 10, "--out", run, robot="first") == 0
    before = provenance(run)
    assert before["robot_file"] == str(files["first"]) and "earlier_places" not in before
    assert train("--resume", "--out", run, "--seed", 7, robot="second") == 1
    assert provenance(run) == before, "what was refused was no start"

    assert train("--resume", "--out", run, "--steps", 20, robot="second") == 0
    after = provenance(run)
    place = {name: before[name] for name in ("robot_file", "driver", "commissioning", "crops")}
    assert after["robot_file"] == str(files["second"])
    assert after["earlier_places"] == [{"until": after["starts"][1]["started"], **place}]
    assert train("--resume", "--out", run, "--steps", 30, robot="second") == 0
    assert provenance(run)["earlier_places"] == after["earlier_places"]

    assert train("--fork", run, "--out", fork, "--steps", 40, robot="third") == 0
    assert provenance(fork)["robot_file"] == str(files["third"])
    assert [place["robot_file"] for place in provenance(fork)["earlier_places"]] == [str(files["second"])]
    capsys.readouterr()
    assert main(["train", "--resume", "--out", str(fork)]) == 1
    assert f"add --robot {files['third']}" in capsys.readouterr().err
