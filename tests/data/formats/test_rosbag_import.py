"""Bags of known content, written by the mcap packages, become episodes of known content."""

import io

import numpy as np
import pytest
import yaml
from PIL import Image

from robot_rl.data.formats.rosbag_import import read_bag
from robot_rl.data.formats.rosbag_mapping import load_mapping
from robot_rl.data.schema import Source
from robot_rl.data.store.verify import check_episode
from robot_rl.errors import ConfigError, DataError

writer_module = pytest.importorskip("mcap_ros2.writer", reason="bags need mcap: pip install 'robot_rl[mcap]'")

HEADER = "=" * 80 + "\nMSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n"
HEADER += "=" * 80 + "\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"
VECTOR = "=" * 80 + "\nMSG: geometry_msgs/Vector3\nfloat64 x\nfloat64 y\nfloat64 z\n"
DEFINITIONS = {
    "geometry_msgs/msg/TwistStamped": "std_msgs/Header header\ngeometry_msgs/Twist twist\n"
    + HEADER
    + "=" * 80
    + "\nMSG: geometry_msgs/Twist\ngeometry_msgs/Vector3 linear\ngeometry_msgs/Vector3 angular\n"
    + VECTOR,
    "sensor_msgs/msg/JointState": "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\n"
    "float64[] effort\n" + HEADER,
    "sensor_msgs/msg/Image": "std_msgs/Header header\nuint32 height\nuint32 width\nstring encoding\n"
    "uint8 is_bigendian\nuint32 step\nuint8[] data\n" + HEADER,
    "sensor_msgs/msg/CompressedImage": "std_msgs/Header header\nstring format\nuint8[] data\n" + HEADER,
    "std_msgs/msg/Bool": "bool data\n",
}
STAMP = {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": "base"}
START, TICK = 5 * 10**9, 10**8


def twist(t):
    part = {"x": 0.004 * t, "y": 0.0, "z": -0.05}
    return {"header": STAMP, "twist": {"linear": part, "angular": {"x": 0.0, "y": 0.0, "z": 0.001 * t}}}


def joints(t):
    return {"header": STAMP, "name": ["a", "b"], "position": [float(t), -float(t)], "velocity": [], "effort": []}


def pixels(t):
    return np.full((4, 6, 3), (10 * t % 256, 1, 2), np.uint8)


def image(t, encoding="bgr8"):
    data = np.pad(pixels(t)[..., ::-1].reshape(4, 18), ((0, 0), (0, 2)))  # rows of 20 bytes
    step = {"is_bigendian": 0, "step": 20, "data": data.tobytes()}
    return {"header": STAMP, "height": 4, "width": 6, "encoding": encoding, **step}


def compressed(t):
    content = io.BytesIO()
    Image.fromarray(pixels(t)).save(content, "png")
    return {"header": STAMP, "format": "png", "data": content.getvalue()}


def write_bag(path, ticks=12, changes=(), episode=None, success_at=None, first=0):
    """One message per topic and tick from the first one on, the command half a tick later."""
    path.parent.mkdir(exist_ok=True)
    with open(path, "wb") as stream:
        writer = writer_module.Writer(stream)
        schemas = {kind: writer.register_msgdef(kind, text) for kind, text in DEFINITIONS.items()}

        def say(topic, kind, message, stamp):
            writer.write_message(topic, schemas[kind], message, log_time=stamp, publish_time=stamp)

        for t in range(first, ticks):
            now = START + t * TICK
            if episode:
                say("/recording", "std_msgs/msg/Bool", {"data": any(a <= t < b for a, b in episode)}, now)
            say("/joints", "sensor_msgs/msg/JointState", joints(t), now)
            say("/image", "sensor_msgs/msg/Image", dict(changes).get("image", image)(t), now)
            say("/image/compressed", "sensor_msgs/msg/CompressedImage", compressed(t), now)
            say("/command", "geometry_msgs/msg/TwistStamped", twist(t), now + TICK // 2)
            if success_at == t:
                say("/success", "std_msgs/msg/Bool", {"data": True}, now + TICK // 4)
        writer.finish()
    return path


MAPPING = {
    "rate": 10,
    "task": "insert",
    "observations": {
        "state/joints": {"topic": "/joints", "fields": ["position"]},
        "images/wrist": {"topic": "/image"},
        "images/front": {"topic": "/image/compressed"},
    },
    "action": {"topic": "/command", "fields": ["twist.linear", "twist.angular.z"], "scale": [0.2, 0.2, 0.1, 1.0]},
}


def mapping(tmp_path, **changes):
    path = tmp_path / "mapping.yaml"
    path.write_text(yaml.safe_dump({**MAPPING, **changes}))
    return load_mapping(path)


def test_every_number_is_where_it_belongs(tmp_path):
    bag = write_bag(tmp_path / "day" / "bag.mcap")
    for path in (bag, bag.parent):  # a file, and a rosbag2 directory
        (episode,) = read_bag(path, mapping(tmp_path))
        assert len(episode) == 11
        t = np.arange(12)
        assert np.array_equal(episode.observations["state/joints"], np.stack([t, -t], 1).astype(np.float32))
        for key in ("images/wrist", "images/front"):
            assert np.array_equal(episode.observations[key], np.stack([pixels(i) for i in t]))
        expected = np.stack([0.02 * t, 0 * t, 0 * t - 0.5, 0.001 * t], 1)[:11]
        assert np.allclose(episode.action, expected, atol=1e-6)
        ticks = [START + TICK // 2 + TICK * i for i in range(12)]  # from the first command on
        assert episode.stamp_obs.tolist() == ticks
        assert episode.stamp_action.tolist() == ticks[:-1]
        assert set(episode.source) == {Source.HUMAN}
        assert (episode.terminated[-1], episode.truncated[-1], episode.reward.sum()) == (False, True, 0)
        assert list(check_episode(episode)) == []


def test_an_episode_runs_while_its_topic_says_so_and_ends_with_success(tmp_path):
    bag = write_bag(tmp_path / "b" / "bag.mcap", ticks=40, episode=[(5, 15), (20, 35)], success_at=30)
    topics = {
        "episode": {"topic": "/recording", "fields": ["data"]},
        "success": {"topic": "/success", "fields": ["data"]},
    }
    first, second = read_bag(bag, mapping(tmp_path, source="script", **topics))
    assert [first.episode_id, second.episode_id] == ["bag-0000", "bag-0001"]
    assert first.observations["state/joints"][:, 0].tolist() == list(range(5, 16))
    assert (len(first), first.truncated[-1], first.metadata["success"]) == (10, True, False)
    assert second.observations["state/joints"][:, 0].tolist() == list(range(20, 32))  # the first tick after it
    assert (len(second), second.terminated[-1], second.metadata["success"]) == (11, True, True)
    assert second.reward.tolist() == [0.0] * 10 + [1.0]
    assert set(second.source) == {Source.SCRIPT}
    assert list(check_episode(second)) == []


def test_a_bag_in_many_files_is_read_in_the_order_of_time(tmp_path):
    """rosbag2 numbers its files, `bag_10` sorts before `bag_2`, and a file may be without a topic."""
    for number in range(12):
        write_bag(tmp_path / "day" / f"bag_{number}.mcap", 3 * number + 3, first=3 * number, success_at=31)
    topics = {"success": {"topic": "/success", "fields": ["data"]}}
    (episode,) = read_bag(tmp_path / "day", mapping(tmp_path, max_age=60.0, **topics))
    assert episode.observations["state/joints"][:, 0].tolist() == list(range(32))
    assert np.allclose(episode.action[:, 0], 0.02 * np.arange(31), atol=1e-6)
    assert (len(episode), episode.facts.success) == (31, True)


def joint_fields(*fields):
    return {"observations": {"state/joints": {"topic": "/joints", "fields": list(fields)}}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observations": {"images/x": {"topic": "/nope"}}}, r"no topic /nope; it has /command, /image, /image/comp"),
        (joint_fields("pose.x"), r"topic /joints \(state/joints\): no field 'pose.x'; .*has header, name, position"),
        (joint_fields("name"), r"field 'name' is not made of numbers"),
        ({"observations": {"images/x": {"topic": "/joints"}}}, r"JointState is no picture; expected sensor_msgs/Image"),
        ({"action": {"topic": "/command", "fields": ["twist.linear"]}, "rate": 10, "max_age": 0.001}, "max_age"),
        (
            {"action": {"topic": "/joints", "fields": ["position"]}},
            r"topic /joints \(action\), .*lie in \[-1, 1\]",
        ),
        ({"action": {"topic": "/command", "fields": ["twist.linear"], "scale": [1, 2]}}, "`scale` has 2 numbers"),
        (
            {"rate": 9000, "max_age": 0.01},
            r"would have 9900 steps; the 12 messages of topic /image/.* last for 1183 at",
        ),
    ],
)
def test_errors_name_topic_and_field(changes, message, tmp_path):
    bag = write_bag(tmp_path / "b" / "bag.mcap")
    with pytest.raises(DataError, match=message):
        list(read_bag(bag, mapping(tmp_path, **changes)))


def test_a_bag_without_an_episode_is_refused(tmp_path):
    """As where the topic is true for no step, or the robot said nothing meanwhile."""
    bag = write_bag(tmp_path / "b" / "bag.mcap", episode=[(90, 95)])
    with pytest.raises(DataError, match=r"holds no episode: .* step of 0\.1 s .* while topic /recording is true"):
        list(read_bag(bag, mapping(tmp_path, episode={"topic": "/recording", "fields": ["data"]})))


def test_an_encoding_that_is_not_known_is_refused(tmp_path):
    bag = write_bag(tmp_path / "b" / "bag.mcap", changes=[("image", lambda t: image(t, "bayer_rggb8"))])
    with pytest.raises(DataError, match=r"topic /image \(images/wrist\): pictures in 'bayer_rggb8'; valid: rgb8, bgr8"):
        list(read_bag(bag, mapping(tmp_path)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rates": 3}, "rates: Extra inputs"),
        ({"rate": 0}, "rate: .*greater than 0"),
        ({"rate": 1e30}, "rate: .*less than or equal to 10000"),
        ({"observations": {"wrist": {"topic": "/image"}}}, "'wrist' must be called state/... or images/..."),
        (joint_fields(), "state/joints needs `fields`"),
        ({"episode": {"topic": "/recording"}}, "episode needs `fields`"),
        ({"success": {"topic": "/success"}}, "success needs `fields`"),
        ({"observations": {"images/x": {"topic": "/image", "fields": ["data"]}}}, "images/x is a picture; leave out"),
    ],
)
def test_a_mapping_that_is_wrong_says_where(changes, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        mapping(tmp_path, **changes)


def test_a_damaged_bag_is_refused_or_read_right(tmp_path):
    intact = write_bag(tmp_path / "b" / "bag.mcap", ticks=5)
    how, content = mapping(tmp_path), intact.read_bytes()
    (tmp_path / "d").mkdir()
    for place in range(0, len(content), max(1, len(content) // 60)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << (place % 8)
        for number, version in enumerate((content[:place], damaged)):
            path = tmp_path / "d" / f"{place}-{number}.mcap"
            path.write_bytes(version)
            try:
                episodes = list(read_bag(path, how))
            except DataError as error:
                assert str(path) in str(error)
            else:
                assert all(list(check_episode(episode)) == [] for episode in episodes)
    with pytest.raises(DataError, match=r"no bag \(\*\.mcap\) there"):
        list(read_bag(tmp_path / "none", how))
