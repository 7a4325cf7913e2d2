"""Preferences over mixed episodes, queried over HTTP from an oracle that is wrong for a given share of the pairs."""

from __future__ import annotations

import base64
import io
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from mixed_episodes import stamp_of
from PIL import Image

from robot_rl.config.labelling import BudgetConfig, EndpointConfig, FramesConfig, LabelConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.reward.budget import Budget
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.labels.annotate import Labelling
from robot_rl.reward.labels.units import Units
from robot_rl.reward.vlm.make_backend import make_backend

TIE = 0.0005
"""Difference in distance to the goal that the oracle cannot see [m]."""


class Oracle:
    """OpenAI-compatible server that prefers the moment nearer to the goal, except for a share of the pairs."""

    def __init__(self, distances: np.ndarray, error: float, seed: int) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                self.reply({"data": [{"id": "oracle"}]})

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                urls = [p["image_url"]["url"] for p in request["messages"][0]["content"] if p["type"] == "image_url"]
                first, second = (
                    stamp_of(np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))))
                    for url in urls
                )
                wrong = np.random.default_rng([seed, *sorted((first, second))]).uniform() < error
                gap = distances[second] - distances[first]
                closer = "neither" if abs(gap) < TIE else "first" if (gap > 0) != wrong else "second"
                text = json.dumps({"seen": f"{first} and {second}", "closer": closer})
                usage = {"prompt_tokens": 300, "completion_tokens": 20}
                self.reply({"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": usage})

            def reply(self, body: Any) -> None:
                content = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()


def labelled(path: Path, error: float, pairs: int, seed: int) -> dict[str, Any]:
    """Label the store, and return figures of the labels."""
    oracle = Oracle(np.load(path / "truth.npy"), error, seed)
    settings = LabelConfig(
        kind="preference",
        pairs=pairs,
        seed=seed,
        endpoint=EndpointConfig(url=oracle.url, revision=f"error {error}", key_variable="NO_KEY"),
        frames=FramesConfig(camera="front"),
        budget=BudgetConfig(calls=4 * pairs),
    )
    name = f"preference-{round(100 * error)}"
    try:
        with EpisodeStore.open(path) as store, LabelStore(path, create=True) as labels:
            backend = make_backend(settings, Budget(settings.budget))
            units = Units(store, settings, "insert the peg into the hole")
            labels.begin(name, units.kind, backend.identity, {})
            return Labelling(labels, name, backend).run(units).summary()
    finally:
        oracle.close()
