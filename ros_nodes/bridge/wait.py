"""Lets the thread that controls wait for what the thread that receives has got."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from rclpy.client import Client
from rclpy.node import Node

from robot_rl.errors import GraphError
from ros_nodes.node.pause import PAUSED

POLL = 0.1
"""How often to look without a ring [s]: other nodes come and go in silence."""


class Arrivals:
    """A bell that the receiver rings at every arrival."""

    def __init__(self) -> None:
        self._condition = threading.Condition()

    def ring(self) -> None:
        """Something has arrived."""
        with self._condition:
            self._condition.notify_all()

    def wait_for(self, done: Callable[[], bool], timeout: float) -> bool:
        """Wait until `done()`; False if it is not within `timeout` [s]."""
        end = time.monotonic() + timeout
        with self._condition:
            while not done():
                left = end - time.monotonic()
                if left <= 0:
                    return False
                self._condition.wait(min(left, POLL))
        return True

    def call(
        self,
        node: Node,
        client: Client[Any, Any],
        request: Any,
        timeout: float,
        given_up: Callable[[], bool] = lambda: False,
    ) -> Any:
        """Return the answer of a service.

        A request or its answer is lost when the server ends, or when either process stands still for long. So it is
        repeated when servers come or go and after a pause of this process; only the answer to the last one counts.

        Raises:
            GraphError: if it does not exist, does not answer in time, or is `given_up()`.
        """
        end = time.monotonic() + timeout
        if not client.service_is_ready() and not client.wait_for_service(timeout):
            raise GraphError(f"no node offers the service {client.srv_name}; is the node that has it running?")
        while time.monotonic() < end:
            future = client.call_async(request)
            future.add_done_callback(lambda _: self.ring())
            lost = _Loss(node, client)
            self.wait_for(lambda: future.done() or lost.noticed() or given_up(), end - time.monotonic())  # noqa: B023
            if future.done():
                return future.result()
            client.remove_pending_request(future)
            if given_up():
                raise GraphError(f"the service {client.srv_name} is waited for no longer")
            client.wait_for_service(max(0.0, end - time.monotonic()))
        raise GraphError(f"the service {client.srv_name} has not answered within {timeout:g} s")


class _Loss:
    """Notices that a request may have been lost: a server has come or gone, or this process stood still."""

    def __init__(self, node: Node, client: Client[Any, Any]) -> None:
        self._client, self._node, self._last = client, node, time.monotonic()
        self._servers = node.count_services(client.srv_name)

    def noticed(self) -> bool:
        now = time.monotonic()
        gap, self._last = now - self._last, now
        servers, self._servers = self._servers, self._node.count_services(self._client.srv_name)
        return gap > PAUSED or self._servers != servers or not self._client.service_is_ready()
