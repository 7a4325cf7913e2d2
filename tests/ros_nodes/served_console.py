"""The console's node, served in a thread as it is in a process of its own."""

import threading

from waiting import PATIENCE, eventually

from ros_nodes.nodes.console_node import ConsoleNode


class Console:
    """The node, served as in a process of its own."""

    def __init__(self, graph, **parameters):
        self.node = graph.add(ConsoleNode, address="127.0.0.1:0", **parameters)
        self._end = threading.Event()
        self._thread = graph.thread(lambda: self.node.serve(self._end))
        assert eventually(lambda: hasattr(self.node, "teleoperation"))
        assert eventually(lambda: self.node.console.serving)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.node.console.port}"

    def close(self):
        self._end.set()
        self._thread.join(PATIENCE)
