"""Bags that are written are complete, in order and readable, or say why not."""

import subprocess
import sys
import threading

import pytest

from robot_rl.data.formats.rosbag_writer import BagWriter, MessageType
from robot_rl.errors import RunDirectoryError

reader_module = pytest.importorskip("mcap_ros2.reader", reason="bags need mcap: pip install 'robot_rl[mcap]'")
BOOL, FLAG = MessageType("std_msgs/msg/Bool", "bool data\n"), (b"\0\1\0\0\0", b"\0\1\0\0\1")


def read(path):
    return [(m.channel.topic, m.log_time_ns, m.ros_msg.data) for m in reader_module.read_ros2_messages(str(path))]


def test_what_is_written_is_read_with_its_topic_and_time(tmp_path):
    bag = BagWriter(tmp_path / "new" / "a.mcap")
    for i in range(100):
        bag.add("/b" if i % 3 else "/a", BOOL, 10**18 + i, FLAG[i % 2])
    assert not bag.path.exists(), "a bag that is not complete has not its name yet"
    load = bag.close()
    assert (load.messages, load.bytes, load.dropped, load.error) == (100, 500, 0, None)
    expected = [("/b" if i % 3 else "/a", 10**18 + i, bool(i % 2)) for i in range(100)]
    assert read(bag.path) == expected
    assert bag.close() == load
    assert [path.name for path in bag.path.parent.iterdir()] == ["a.mcap"]


def test_what_finds_no_room_is_counted(tmp_path):
    bag = BagWriter(tmp_path / "a.mcap", capacity=12)
    blocked, write = threading.Event(), bag._write

    def slowly(*entry):
        blocked.wait()
        write(*entry)

    bag._write = slowly  # a disk that does not keep up
    for i in range(5):
        bag.add("/a", BOOL, i, FLAG[0])
    assert (bag.load.messages, bag.load.dropped) == (2, 3)
    blocked.set()
    assert len(read(bag.close() and bag.path)) == 2


def test_a_disk_that_is_full_is_said_and_ends_the_bag(tmp_path):
    """In a process of its own, which may write files of 64 kB and no larger."""
    program = f"""
import os, time
from pathlib import Path
from robot_rl.data.formats.rosbag_writer import BagWriter, MessageType
bag = BagWriter(Path("{tmp_path}/a.mcap"))
while bag.load.error is None and bag.load.messages < 20000:
    bag.add("/a", MessageType("std_msgs/msg/Bool", "bool data"), 1, os.urandom(4096))
    time.sleep(0.0005)
bag.add("/a", MessageType("std_msgs/msg/Bool", "bool data"), 1, b"later")
print(bag.close())
"""
    command = ["bash", "-c", f"ulimit -f 64; exec {sys.executable} -c '{program}'"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert "cannot be written: File too large" in done.stdout, done.stdout + done.stderr
    assert "dropped=0" not in done.stdout
    assert not (tmp_path / "a.mcap").exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirectoryError, match="a file is in the way"):
        BagWriter(tmp_path / "file" / "a.mcap")
