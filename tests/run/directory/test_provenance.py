import subprocess

from robot_rl.run.directory.run_directory import git_state, package_versions, provenance
from robot_rl.system.atomic_file import to_json


def git(folder, *arguments):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def test_git_state_of_a_checkout_clean_and_changed(tmp_path):
    git(tmp_path, "init")
    (tmp_path / "a.py").write_text("1")
    git(tmp_path, "add", "a.py")
    git(tmp_path, "commit", "-m", "first")
    clean = git_state(tmp_path)
    assert len(clean["revision"]) == 40
    assert clean["dirty"] is False
    (tmp_path / "a.py").write_text("2")
    assert git_state(tmp_path) == {"revision": clean["revision"], "dirty": True}


def test_git_state_is_none_outside_and_below_a_checkout(tmp_path):
    assert git_state(tmp_path)["revision"] is None
    assert "not a git repository" in git_state(tmp_path)["note"]
    git(tmp_path, "init")
    site_packages = tmp_path / "lib"
    site_packages.mkdir()
    assert git_state(site_packages) == {"revision": None, "dirty": None, "note": "not a git checkout"}
    assert git_state(tmp_path)["revision"] is None  # a checkout without a commit


def test_versions_name_python_and_what_is_installed():
    versions = package_versions()
    assert versions["python"].count(".") == 2
    assert versions["numpy"]
    assert versions["torch"]


def test_provenance_is_json():
    facts = provenance(["robot-rl", "train"])
    assert facts["argv"] == ["robot-rl", "train"]
    assert facts["cpu"]
    assert to_json(facts)
