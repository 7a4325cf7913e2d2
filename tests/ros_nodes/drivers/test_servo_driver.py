"""An SO-101 in robot_node: the same driver as without ROS, with its settings as parameters."""

from servo_peer import ServoPeer
from waiting import eventually

from ros_nodes.nodes.robot_node import ArmNode


def test_robot_node_runs_an_so101(graph, tmp_path):
    peer = ServoPeer("feetech", tmp_path / "tty").start()
    try:
        settings = dict(driver="so101", port=peer.link, timeout=0.2, cap_box_low=[-1.0, -1.0, -1.0])
        node = graph.add(lambda **options: ArmNode(cli_args=["--ros-args", "-r", "__ns:=/cell"], **options), **settings)
        assert eventually(lambda: node.facts().get("received pose", 0) > 10)
        assert node.facts()["received joints"] > 10
        peer.unplug()
        assert eventually(lambda: "is gone" in node.health()[1] or "there is no" in node.health()[1])
        peer.plug()
    finally:
        peer.end()
