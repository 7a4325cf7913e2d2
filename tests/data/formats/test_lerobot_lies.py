"""A LeRobot data set that lies: refused by name, nothing outside it is read, nothing of it is evaluated."""

import json
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tagged import valid

from robot_rl.data.formats.lerobot_export import export_lerobot
from robot_rl.data.formats.lerobot_import import LeRobotReader
from robot_rl.data.formats.lerobot_layout import EXTRA
from robot_rl.data.formats.lerobot_paths import below, filled
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError

pq = pytest.importorskip("pyarrow.parquet", reason="LeRobot datasets need pyarrow: pip install 'robot_rl[lerobot]'")

PLACE = {"chunk_index": 3, "file_index": 12}


@pytest.fixture
def dataset(tmp_path):
    with EpisodeStore.create(tmp_path / "store", {"task": "reach"}) as store:
        for number in range(2):
            store.append(valid(number, 4))
        export_lerobot(store, tmp_path / "set", fps=10.0)
    (tmp_path / "set" / EXTRA).unlink()  # a data set of others
    return tmp_path / "set"


def lie(dataset, **changes):
    info = dataset / "meta" / "info.json"
    info.write_text(json.dumps(json.loads(info.read_text()) | changes))


def read(dataset):
    return list(LeRobotReader(dataset).episodes())


def test_the_truth_is_read(dataset):
    assert [len(episode) for episode in read(dataset)] == [4, 4]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"fps": 0}, "fps is 0, must be above 0"),
        ({"fps": -10}, "fps is -10"),
        ({"fps": float("nan")}, "fps is nan"),
        ({"fps": "10"}, "fps is '10'"),
        ({"fps": None}, "fps is None"),
        ({"features": []}, "features must map names"),
        ({"features": {"action": [3]}}, "features must map names"),
        ({"features": {"action": {"dtype": "float32", "shape": 3}}}, "features must map names"),
        ({"data_path": "data/{chunk_index.__class__}"}, "data_path.*has a field that is no"),
        ({"data_path": "data/{chunk_index:>999999999}"}, "has a field that is no"),
        ({"data_path": "data/{episode:03d}"}, "names 'episode'; valid: chunk_index, file_index"),
        ({"data_path": ["data"]}, r"data_path of meta/info.json is \['data'\]"),
        ({"data_path": "../outside.parquet"}, "leads out of the data set"),
        ({"data_path": "/etc/passwd"}, "leads out of the data set"),
        ({"data_path": "data"}, "no regular file"),
    ],
)
def test_a_lie_in_the_head_is_refused_by_name(dataset, changes, expected):
    (dataset.parent / "outside.parquet").write_bytes(next(dataset.glob("data/*/*.parquet")).read_bytes())
    lie(dataset, **changes)
    with pytest.raises(DataError, match=expected) as caught:
        read(dataset)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["timestamp", "frame_index"])
def test_frames_out_of_order_are_refused(dataset, name):
    file = sorted(dataset.glob("data/*/*.parquet"))[1]
    table = pq.read_table(file)
    column = table.column_names.index(name)
    values = table.column(name).to_numpy().copy()
    values[2] = values[1]
    pq.write_table(table.set_column(column, table.field(name), [values]), file)
    with pytest.raises(DataError, match=f"episode 1: {name} does not increase at frame 2"):
        read(dataset)


def test_a_link_does_not_lead_out(tmp_path, dataset):
    file = next(dataset.glob("data/*/*.parquet"))
    shutil.move(file, tmp_path / "outside.parquet")
    file.symlink_to(tmp_path / "outside.parquet")
    with pytest.raises(DataError, match="leads out of the data set"):
        read(dataset)


def test_links_in_a_circle_are_refused(dataset):
    file = next(dataset.glob("data/*/*.parquet"))
    file.unlink()
    file.symlink_to(file.name)
    with pytest.raises(DataError, match=r"data_path of meta/info\.json"):
        read(dataset)


def test_templates_are_filled_as_lerobot_fills_them():
    template = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
    place = {"video_key": "observation.images.front", **PLACE}
    assert filled(template, place, "video_path") == template.format(**place)


@given(st.text("{}:0123d_chunk index!.[]>", max_size=30))
def test_whatever_a_template_holds_nothing_of_it_is_evaluated(template):
    try:
        name = filled(template, PLACE, "data_path")
    except DataError:
        return
    assert name == template.format(**PLACE)


def test_names_that_are_no_paths_are_refused(tmp_path):
    for name in (None, 3, "a\0b", "", "missing"):
        with pytest.raises(DataError):
            below(tmp_path, name, "path")
