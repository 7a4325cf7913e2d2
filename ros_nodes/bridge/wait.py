"""Lets the thread that controls wait for what the thread that receives has got."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from rclpy.client import Client

from robot_rl.errors import GraphError

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

    def call(self, client: Client[Any, Any], request: Any, timeout: float) -> Any:
        """Return the answer of a service.

        Raises:
            GraphError: if it does not exist or does not answer in time.
        """
        if not client.service_is_ready() and not client.wait_for_service(timeout):
            raise GraphError(f"no node offers the service {client.srv_name}; is the node that has it running?")
        future = client.call_async(request)
        future.add_done_callback(lambda _: self.ring())
        if not self.wait_for(future.done, timeout):
            raise GraphError(f"the service {client.srv_name} has not answered within {timeout:g} s")
        return future.result()
