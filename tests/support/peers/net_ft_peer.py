"""A Net F/T box: RDT over UDP, and its page with the counts per unit."""

import http.server
import socket
import struct
import threading
import time

PAGE = "<netft><cfgcpf>{}</cfgcpf><cfgcpt>{}</cfgcpt><scfgfu>{}</scfgfu><scfgtu>{}</scfgtu></netft>"


class NetFtPeer:
    def __init__(self, rate=500.0):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0.001)
        self.port = self.socket.getsockname()[1]
        self.wrench = [0.0] * 6  # [N, Nm], 1e6 counts each
        self.status, self.skip, self.silent, self.restart = 0, 0, False, False
        self.period, self.requests = 1 / rate, 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def end(self):
        self.ended.set()
        self.thread.join()
        self.socket.close()

    def run(self):
        client, sequence, due = None, 0, time.monotonic()
        while not self.ended.is_set():
            try:
                data, sender = self.socket.recvfrom(64)
                header, command, count = struct.unpack(">HHI", data)
                assert (header, count) == (0x1234, 0)
                self.requests += 1
                client = sender if command == 2 else None
            except TimeoutError:
                pass
            if self.restart:
                client, sequence, self.restart = None, 0, False
            if client is not None and not self.silent and time.monotonic() >= due:
                due = time.monotonic() + self.period
                sequence += 1 + self.skip
                self.skip = 0
                counts = [round(1e6 * value) for value in self.wrench]
                self.socket.sendto(struct.pack(">III6i", sequence, sequence, self.status, *counts), client)


class PageServer:
    """Serves `netftapi2.xml` on 127.0.0.1; `address` has its port."""

    def __init__(self, text):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200 if self.path == "/netftapi2.xml" else 404)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *arguments):
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()
