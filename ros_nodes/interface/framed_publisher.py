"""A publisher that writes the frame of its topic into each header."""

from __future__ import annotations

from typing import Any

from rclpy.publisher import Publisher


class FramedPublisher(Publisher):
    """A publisher of a topic; `frame` is set after it is made, since ROS makes it."""

    frame = ""
    """Name of the frame; empty leaves the headers as they are."""

    def publish(self, msg: Any) -> None:
        """Publish a message in the frame."""
        if self.frame:
            msg.header.frame_id = self.frame
        super().publish(msg)
