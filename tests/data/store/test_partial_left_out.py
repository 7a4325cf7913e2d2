"""A copy of a store may lack its empty folder `partial`: git and some copies leave empty folders out."""

from robot_rl.data.store.info import store_facts
from robot_rl.data.store.layout import PARTIAL
from robot_rl.data.store.store import EpisodeStore


def test_a_store_without_its_empty_folder_is_read_and_written(tmp_path):
    EpisodeStore.create(tmp_path / "store", {"task": "reach"}).close()
    (tmp_path / "store" / PARTIAL).rmdir()
    assert "unfinished" not in store_facts(tmp_path / "store")
    with EpisodeStore.open(tmp_path / "store", write=True) as store:
        store.begin("one")
        store.abandon()
