"""Grippers behind actions, and controllers that a controller manager activates, each with a scripted node."""

import sys
from functools import partial

import pytest
from cartesian_controller import Controller
from rclpy.action import ActionServer, GoalResponse
from std_srvs.srv import Trigger
from waiting import PATIENCE, eventually

from robot_rl.errors import ConfigError
from ros_nodes.drivers.crisp import CartesianTopics, CrispConfig
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.nodes.robot_node import ArmNode

GRIPPER = {"gripper_action": "/gripper/cmd", "gripper_joint": "finger_joint", "gripper_closed": 0.8}
SCALE = {"gripper_opened": 0.0, "gripper_width": 0.085}


class HostNode(RobotNode):
    max_age = 1.0

    def __init__(self, **options):
        super().__init__("robot_node", cli_args=["--ros-args", "-r", "__ns:=/cell"], **options)


class GripperController(RobotNode):
    """Takes goals, and moves there at once; it can refuse them."""

    def __init__(self, kind, **options):
        super().__init__("gripper_controller", **options)
        self.goals, self.refuses, self._kind = [], False, kind
        verdict = lambda _: GoalResponse.REJECT if self.refuses else GoalResponse.ACCEPT  # noqa: E731
        self._server = ActionServer(self, kind, "/gripper/cmd", self._execute, goal_callback=verdict)

    def _execute(self, goal):
        self.goals.append(goal.request.command)
        goal.succeed()
        return self._kind.Result()


@pytest.mark.parametrize("kind", ["GripperCommand", "ParallelGripperCommand"])
def test_a_gripper_behind_an_action_gets_one_goal_for_each_change(graph, kind):
    actions = pytest.importorskip("control_msgs.action", reason="control_msgs has no wheel: needs ROS")
    node = graph.add(HostNode)
    config = CrispConfig(**GRIPPER, **SCALE, gripper_action_type=kind, gripper_effort=20.0)
    driver = CartesianTopics(config, node)
    assert "gripper" in driver.measures
    missing = "no gripper takes goals on /gripper/cmd"
    assert any(missing in fault for fault in driver.faults())
    gripper = graph.add(partial(GripperController, getattr(actions, kind)))
    assert eventually(lambda: not any(missing in fault for fault in driver.faults()))
    for width in (0.0, 0.0, 0.0001, 0.085):
        driver.move_gripper(width)
    assert eventually(lambda: len(gripper.goals) == 2)
    if kind == "GripperCommand":
        seen = [(goal.position, goal.max_effort) for goal in gripper.goals]
    else:
        seen = [(goal.position[0], goal.effort[0]) for goal in gripper.goals if goal.name == ["finger_joint"]]
    assert seen == [(0.8, 20.0), (0.0, 20.0)]
    gripper.refuses = True
    driver.move_gripper(0.0)
    assert eventually(lambda: any("refused a goal" in text for text in node.problems))
    gripper.refuses = False
    driver.move_gripper(0.0)
    assert eventually(lambda: len(gripper.goals) == 3)


class Manager(RobotNode):
    """A controller manager with two controllers that claim the same joints."""

    def __init__(self, **options):
        super().__init__("controller_manager", **options)
        from controller_manager_msgs import srv

        self.states = {"cartesian_impedance_controller": "inactive", "joint_trajectory_controller": "active"}
        self.refuses = False
        self.create_service(srv.ListControllers, "/controller_manager/list_controllers", self._list)
        self.create_service(srv.SwitchController, "/controller_manager/switch_controller", self._switch)

    def _list(self, request, response):
        from controller_manager_msgs.msg import ControllerState

        response.controller = [ControllerState(name=name, state=state) for name, state in self.states.items()]
        return response

    def _switch(self, request, response):
        both = {name for name, state in self.states.items() if state == "active"} - set(request.deactivate_controllers)
        response.ok = not self.refuses and not both
        response.message = "" if response.ok else "the joints are claimed"
        if response.ok:
            self.states |= dict.fromkeys(request.deactivate_controllers, "inactive")
            self.states |= dict.fromkeys(request.activate_controllers, "active")
        return response


def test_an_inactive_controller_holds_the_arm_until_a_person_has_it_activated(graph):
    pytest.importorskip("controller_manager_msgs", reason="controller_manager_msgs has no wheel: needs ROS")
    graph.add(Controller)
    manager = graph.add(Manager)
    settings = {"controller": "cartesian_impedance_controller", "replaces": ["joint_trajectory_controller"]}
    node = graph.add(lambda **options: ArmNode(cli_args=["--ros-args", "-r", "__ns:=/cell"], **options), **settings)
    reason = "the controller cartesian_impedance_controller is inactive: robot/recover activates it"
    assert eventually(lambda: reason in node.health()[1]), node.health()
    assert eventually(lambda: node.sign().startswith("the arm would not obey"))
    consent = manager.create_client(Trigger, "/cell/robot/recover")
    assert consent.wait_for_service(PATIENCE)
    manager.refuses = True
    consent.call_async(Trigger.Request())
    assert eventually(lambda: "did not activate it: the joints are claimed" in node.health()[1]), node.health()
    manager.refuses = False
    consent.call_async(Trigger.Request())
    assert eventually(lambda: manager.states["cartesian_impedance_controller"] == "active")
    assert manager.states["joint_trajectory_controller"] == "inactive"
    assert eventually(lambda: "controller" not in node.health()[1]), node.health()
    del manager.states["cartesian_impedance_controller"]
    assert eventually(
        lambda: "has no controller 'cartesian_impedance_controller'; it has: joint_tra" in node.health()[1]
    )


@pytest.mark.parametrize(
    ("settings", "package", "message"),
    [
        ({**GRIPPER, **SCALE}, "control_msgs.action", "install ros-.*-control-msgs, or name the topic"),
        ({"controller": "some_controller"}, "controller_manager_msgs.srv", "install ros-.*-controller-manager-msgs"),
        ({**GRIPPER, **SCALE, "gripper_topic": "/g"}, "", "gripper_topic /g and gripper_action /gripper/cmd: .*leave"),
    ],
)
def test_what_cannot_work_is_an_error_with_its_cure(graph, monkeypatch, settings, package, message):
    if package:
        monkeypatch.setitem(sys.modules, package, None)  # as where it is not installed
    node = graph.add(HostNode)
    with pytest.raises(ConfigError, match=message):
        CartesianTopics(CrispConfig(**settings), node)
