"""A training of `actor_node` that goes on by the same parameters, as after a crash, when it is started again."""

import json

from robot_rl.config.nodes import ActorNodeConfig
from robot_rl.env.task import WorkcellOptions
from robot_rl.run.demonstrate import demonstrate
from robot_rl.run.deployment import Deployment
from ros_nodes.jobs.actor_jobs import ActorJobs
from ros_nodes.jobs.site import Site

SMALL = """\
task: reach
demonstrations: 20
warmup_steps: 10
sac: {hidden_sizes: [8]}
replay: {batch_size: 8}
evaluation: {episodes: 1, curve_interval: 0, video_episodes: 0}
"""


def test_a_file_of_settings_counts_at_each_start_and_given_demonstrations_are_as_many_as_they_were(tmp_path):
    demonstrate("reach", tmp_path / "demos", episodes=2, seed=7, observed=WorkcellOptions())
    file, out = tmp_path / "settings.yaml", tmp_path / "run"
    given = {"demos": str(tmp_path / "demos"), "config": str(file), "out": str(out), "job": "train"}
    for steps in (20, 40):
        file.write_text(f"{SMALL}env_steps: {steps}\n")
        jobs = ActorJobs(ActorNodeConfig(**given), lambda: Site(Deployment(), lockstep=True), print)
        jobs.run()
        summary = json.loads((out / "summary.json").read_text())
        assert summary["config"]["env_steps"] == steps
        assert summary["config"]["demonstrations"] == 2


def test_a_folder_in_the_home_directory_is_that_of_the_console_and_no_folder_of_that_name(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(f"{SMALL}env_steps: 5\n")
    given = {"config": "~/small.yaml", "out": "~/run", "settings": ("demonstrations=1",), "job": "train"}
    jobs = ActorJobs(ActorNodeConfig(**given), lambda: Site(Deployment(), lockstep=True), print)
    assert f"run directory: {tmp_path / 'run'}" in jobs.run()
    assert (tmp_path / "run" / "summary.json").is_file()
    assert not (tmp_path / "~").exists()
