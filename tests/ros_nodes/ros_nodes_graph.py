"""A small ROS graph for tests: real nodes and topics, in a domain that no other run of tests has."""

import gc
import os
import queue
import threading
from collections.abc import Callable
from functools import partial

os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"

import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetAvailableTransitions, GetState
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.parameter import Parameter
from running import ros_domain
from waiting import PATIENCE, eventually

from robot_rl.config.nodes import ActorNodeConfig
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import RobotRLError
from ros_nodes.bridge.ros_workcell import RosWorkcell
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.nodes.safety_node import SafetyNode
from ros_nodes.nodes.sim_node import SimNode
from ros_nodes.nodes.teleop_node import TeleopNode

DOMAIN = int(os.environ.get("ROBOT_RL_TEST_DOMAIN") or ros_domain())


class Graph:
    """Nodes, each served by a thread of its own, as in processes of their own."""

    def __init__(self):
        self.context = Context()
        rclpy.init(args=[], context=self.context, domain_id=DOMAIN)
        self._running = []
        self._half_made = False

    def add(self, make: Callable, **parameters):
        """Makes a node with these parameters and serves it, all in a thread of its own; rendering is bound to one."""
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        done, made = threading.Event(), queue.Queue()

        def live():
            try:
                node = make(context=self.context, parameter_overrides=overrides)
            except (RobotRLError, RuntimeError, ValueError) as error:
                made.put(error)
                return
            executor = SingleThreadedExecutor(context=self.context)
            executor.add_node(node)
            made.put(node)
            try:
                while not done.is_set():
                    executor.spin_once(timeout_sec=0.1)
            except ExternalShutdownException:
                pass
            executor.shutdown()
            node.destroy_node()

        thread = threading.Thread(target=live, daemon=True)
        thread.start()
        node = made.get(timeout=60)
        if isinstance(node, Exception):
            self._half_made = True
            raise node
        self._running.append((node, done, thread))
        return node

    @staticmethod
    def thread(work):
        """Does something beside the test."""
        helper = threading.Thread(target=work, daemon=True)
        helper.start()
        return helper

    def remove(self, node):
        """Ends a node."""
        for entry in [entry for entry in self._running if entry[0] is node]:
            self._running.remove(entry)
            self._end(*entry)

    def close(self):
        while self._running:
            self._end(*self._running.pop())
        self.context.try_shutdown()
        if self._half_made:
            gc.collect()  # a node whose constructor raised lives on in a cycle, and would be seen by later tests

    @staticmethod
    def _end(_, done, thread):
        done.set()
        thread.join(10)


class Cell:
    """A simulated arm behind topics, with safety and teleoperation, and the workcell that an actor makes of it."""

    def __init__(
        self,
        graph: Graph,
        task="reach",
        *,
        lockstep=True,
        options=None,
        safety=None,
        cap=None,
        max_age=0.2,
        operator="script",
        namespace="",
    ):
        there = namespaced(namespace)
        simulation = {"lockstep": lockstep, "operator": operator, **sim_options(options), **(cap or {})}
        self.sim = graph.add(there(SimNode), task=task, **simulation)
        self.safety = graph.add(there(SafetyNode), lockstep=lockstep, **(safety or {}))
        self.teleop = graph.add(there(TeleopNode))
        self.actor = graph.add(lambda **made: there(RobotNode)("actor_node", **made))
        self.workcell = RosWorkcell(self.actor, ActorNodeConfig(graph_timeout=20.0, max_age=max_age)).make(
            task, options or WorkcellOptions()
        )


def namespaced(namespace):
    """Makes nodes of a class in a namespace."""
    return lambda kind: partial(kind, cli_args=["--ros-args", "-r", f"__ns:=/{namespace}"]) if namespace else kind


def sim_options(options):
    if options is None or not options.cameras:
        return {}
    return {"cameras": list(options.cameras), "image_size": options.image_size[0]}


class ManagedClient:
    """Asks what `ros2 lifecycle` asks, by the same services; by a node that somebody else serves."""

    def __init__(self, asking, name):
        self._asking, self._name, self._clients = asking, name, {}

    def _call(self, kind, service, request):
        if service not in self._clients:
            self._clients[service] = self._asking.create_client(kind, f"{self._name}/{service}")
        client = self._clients[service]
        assert client.wait_for_service(PATIENCE), service
        future = client.call_async(request)
        assert eventually(future.done)
        return future.result()

    def state(self):
        """As `ros2 lifecycle get`."""
        return self._call(GetState, "get_state", GetState.Request()).current_state.label

    def transitions(self):
        """As `ros2 lifecycle list`: by label."""
        request = GetAvailableTransitions.Request()
        found = self._call(GetAvailableTransitions, "get_available_transitions", request).available_transitions
        return {one.transition.label: one.transition.id for one in found}

    def set(self, label):
        """As `ros2 lifecycle set`, which looks the number up and sends it."""
        number = self.transitions()[label]
        return self.change(Transition(id=number))

    def change(self, transition):
        return self._call(ChangeState, "change_state", ChangeState.Request(transition=transition)).success
