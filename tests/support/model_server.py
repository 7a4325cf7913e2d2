"""A real HTTP server on this machine that speaks the protocol of OpenAI-compatible ones, and fails as they do.

What it answers follows from what it sees: tests put an identity into their frames, `seen_by` reads it back.
"""

import base64
import io
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from PIL import Image

MODEL = "test/vision-1"
KEY_VARIABLE = "ROBOT_RL_TEST_KEY"


def stamped(number, size=64):
    """A frame that shows a number below 4096 as twelve fields, black or white, so that it survives JPEG."""
    bits = np.array([(number >> bit) & 1 for bit in range(12)], np.uint8).reshape(3, 4) * 255
    frame = np.kron(bits, np.ones((size // 3, size // 4), np.uint8))
    return np.repeat(np.pad(frame, ((0, size - frame.shape[0]), (0, 0)))[:, :, None], 3, axis=2)


def stamp_of(frame):
    """The number that a frame shows."""
    height, width = frame.shape[0] // 3, frame.shape[1] // 4
    fields = [frame[r * height + height // 2, c * width + width // 2, 0] for r in range(3) for c in range(4)]
    return sum(int(value > 127) << bit for bit, value in enumerate(fields))


@dataclass(frozen=True)
class Request:
    """What was asked, as the server saw it."""

    payload: dict
    headers: dict

    @property
    def words(self):
        content = self.payload["messages"][0]["content"]
        return "".join(part["text"] for part in content if part["type"] == "text")

    @property
    def images(self):
        urls = [p["image_url"]["url"] for p in self.payload["messages"][0]["content"] if p["type"] == "image_url"]
        contents = [base64.b64decode(re.fullmatch(r"data:image/jpeg;base64,(.*)", url)[1]) for url in urls]
        return [np.asarray(Image.open(io.BytesIO(content)).convert("RGB")) for content in contents]

    @property
    def stamps(self):
        return [stamp_of(image) for image in self.images]


def reply(text, *, tokens=(100, 10), top=None, **message):
    """The body of a good answer; `top`: log-probabilities of the first token."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": "stop"}
    if top is not None:
        candidates = [{"token": token, "logprob": logprob, "bytes": None} for token, logprob in top.items()]
        choice["logprobs"] = {"content": [{**candidates[0], "top_logprobs": candidates}]}
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    return {"id": "x", "object": "chat.completion", "model": MODEL, "choices": [choice], "usage": usage}


@dataclass(frozen=True)
class Fault:
    """Something other than an answer: a status with words, silence, or a body that is not what it should be."""

    status: int = 200
    body: bytes = b""
    headers: dict = field(default_factory=dict)
    silence: float = 0.0


def refusal(status, message, **headers):
    return Fault(status, json.dumps({"error": {"message": message, "type": "x"}}).encode(), headers)


class ModelServer:
    """Answers with `answer(request)`; but first with what is in `faults`, one for each request.

    Attributes:
        faults: What to do instead of answering; the next request takes the first.
        requests: All that were made, those that got a fault included.
        connections: Number of those that were opened.
        most_at_a_time: Largest number of requests that were open together.
        hold: While cleared, requests wait.
    """

    def __init__(self, answer, *, models=(MODEL,), key=None, faults=(), root="", digest=""):
        self.answer, self.models, self.key = answer, list(models), key
        self.root, self.digest = root, digest  # of the weights, as vLLM and as Ollama state them
        self.faults, self.requests = list(faults), []
        self.most_at_a_time, self.open_requests, self.connections = 0, 0, 0
        self.lock = threading.Lock()
        self.hold = threading.Event()
        self.hold.set()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                owner.connections += 1
                super().setup()

            def log_message(self, *_):
                pass

            def do_GET(self):
                if owner.refuses_key(self.headers):
                    return self.say(401, {"error": {"message": owner.key_complaint(self.headers)}})
                if self.path == "/api/tags":
                    models = [{"name": name, "digest": owner.digest} for name in owner.models]
                    return self.say(200 if owner.digest else 404, {"models": models})
                listed = [{"id": name} | ({"root": owner.root} if owner.root else {}) for name in owner.models]
                return self.say(200, {"object": "list", "data": listed})

            def do_POST(self):
                payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                request = Request(payload, dict(self.headers))
                with owner.lock:
                    owner.requests.append(request)
                    owner.open_requests += 1
                    owner.most_at_a_time = max(owner.most_at_a_time, owner.open_requests)
                    fault = owner.faults.pop(0) if owner.faults else None
                try:
                    owner.hold.wait(60)
                    if owner.refuses_key(self.headers):
                        return self.say(401, {"error": {"message": owner.key_complaint(self.headers)}})
                    if fault is None:
                        return self.say(200, owner.answer(request))
                    if fault.silence:
                        threading.Event().wait(fault.silence)
                        self.close_connection = True
                        return None
                    return self.say(fault.status, fault.body, fault.headers)
                finally:
                    with owner.lock:
                        owner.open_requests -= 1

            def say(self, status, body, headers=()):
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                for name, value in dict(headers).items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(content)

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # clients that gave up waiting

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def refuses_key(self, headers):
        return self.key is not None and headers.get("Authorization") != f"Bearer {self.key}"

    def key_complaint(self, headers):
        return f"Incorrect API key provided: {(headers.get('Authorization') or 'none').removeprefix('Bearer ')}"

    def close(self):
        self.hold.set()
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def says_success(request):
    """By the last frame: an even number is a success."""
    verdict = "failure" if request.stamps[-1] % 2 else "success"
    return reply(json.dumps({"seen": f"number {request.stamps[-1]}", "verdict": verdict, "confidence": 90}))


def prefers_larger(request):
    first, second = request.stamps
    return reply(json.dumps({"seen": "numbers", "closer": "first" if first > second else "second"}))
