"""A client for a model behind an OpenAI-compatible server: requests, retries, costs, and errors with their cure.

Why it is not built on the package `openai`: each attempt must pass the budget before it starts, so the package's own
retries would be off; it does not validate replies, so servers that deviate would need our parser all the same. It would
replace one request of urllib3. Measured with openai 3.54 under our budget (2 cores, local server, median of 5): its
import takes 353 ms instead of 54 ms; it makes 660 calls per second instead of 1,960 with text alone, and 194 instead of
269 with four frames of 448 px. Its time-out starts again with each received byte: a reply of 250 bytes, one each 50 ms,
took 12.5 s under a time-out of 1 s. Here `timeout_s` limits the whole attempt.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import urllib3
from urllib3.exceptions import HTTPError, ReadTimeoutError

from robot_rl.config.labelling import EndpointConfig
from robot_rl.errors import BudgetSpentError, EndpointError, UnansweredError
from robot_rl.reward.budget import Budget, Purchase
from robot_rl.reward.vlm.chat_backend import JPEG_QUALITY, data_url
from robot_rl.reward.vlm.chat_model import Completion, Turn
from robot_rl.reward.vlm.openai_http import (
    TRANSIENT,
    explain_refusal,
    is_permanent,
    message_of,
    read_completion,
    read_models,
    wait_before_retry,
)

TOP_LOGPROBS = 20
"""Largest number that such servers give."""
MAX_REPLY = 16 * 2**20
"""Largest reply that is read [bytes]."""
_PIECE = 2**16


class Endpoint:
    """A `ChatModel` behind a server. `connect` before the first turn finds out early what is wrong.

    Args:
        config: Address, model and settings of the requests.
        budget: Limits of calls, tokens, money and time.

    Raises:
        EndpointError: if the URL cannot be one, or holds a secret.
    """

    def __init__(self, config: EndpointConfig, budget: Budget) -> None:
        self._config, self._budget = config, budget
        self._url = _checked_url(config.url)
        self._key = os.environ.get(config.key_variable, "").strip()
        self._pool = urllib3.PoolManager(maxsize=config.concurrency, block=True, retries=False)
        self._closed = threading.Event()
        self._rng = np.random.default_rng()  # spreads retries in time; no label depends on it
        self.model = config.model

    @property
    def identity(self) -> Mapping[str, Any]:
        """Server, model and settings of the requests: a model of the same name elsewhere may be another one."""
        config = self._config
        return {
            "backend": "openai",
            "url": self._url,
            "model": self.model,
            "revision": config.revision,
            "structured": config.structured,
            "temperature": config.temperature,
            "max_reply_tokens": config.max_reply_tokens,
            "image": f"jpeg{JPEG_QUALITY}",
        }

    @property
    def concurrency(self) -> int:
        """Requests at the same time, as configured."""
        return self._config.concurrency

    def connect(self) -> list[str]:
        """Fetch the list of models, choose the only one if none was named, and return them all.

        Raises:
            EndpointError: if there is no server, it wants another key, or it does not have the model.
        """
        try:
            status, headers, body = self._request("GET", "/models", None, self._config.timeout_s)
        except HTTPError as error:
            raise EndpointError(
                f"{self._url}: no answer ({self._safe(_reason(error))}); start the server, or set endpoint.url"
            ) from error
        if status == 404 and self.model:
            return []  # a server that keeps no list
        if status != 200:
            raise self._refusal(status, headers, body)
        names = read_models(body)
        if not self.model and len(names) == 1:
            self.model = names[0]
        if not self.model:
            raise EndpointError(f"{self._url}: serves {', '.join(names) or 'no model'}; choose with endpoint.model")
        if names and self.model not in names:
            raise EndpointError(f"{self._url}: has no model {self.model!r}; it serves: {', '.join(names)}")
        return names

    def complete(self, turn: Turn) -> Completion:
        """Return the reply of the model, after at most the configured number of attempts.

        Raises:
            UnansweredError: if no attempt succeeded, or the endpoint was closed meanwhile.
            BudgetSpentError: if another attempt would cost more than is left.
            EndpointError: if the server cannot do what the request needs.
        """
        payload, started = self._payload(turn), time.monotonic()
        problem = ""
        for attempt in range(1, self._config.attempts + 1):
            if self._closed.is_set():
                raise UnansweredError(f"{self._url}: closed before it answered")
            retry_after: str | None = None
            with self._budget.purchase() as bought:
                try:
                    timeout = min(self._config.timeout_s, self._budget.seconds_left)
                    status, headers, body = self._request("POST", "/chat/completions", payload, timeout)
                except HTTPError as error:
                    problem = self._safe(_reason(error))
                else:
                    if status == 200:
                        completion = read_completion(body, bool(turn.choices))
                        if completion is not None:
                            return self._paid(completion, bought, time.monotonic() - started, attempt)
                        problem = "the reply was cut off or is no JSON"
                    elif status in TRANSIENT and not is_permanent(text := self._text(body)):
                        problem, retry_after = f"HTTP {status}: {message_of(text)}", headers.get("Retry-After")
                    else:
                        raise self._refusal(status, headers, body)
            if attempt < self._config.attempts:
                self._wait(wait_before_retry(attempt, self._config.backoff_s, retry_after, self._rng), problem)
        raise UnansweredError(f"{self._url}: not answered in {self._config.attempts} attempts; the last: {problem}")

    def close(self) -> None:
        """End waits, and let no further request start."""
        self._closed.set()
        self._pool.clear()

    def _payload(self, turn: Turn) -> dict[str, Any]:
        config = self._config
        content: list[dict[str, Any]] = [
            {"type": "text", "text": part}
            if isinstance(part, str)
            else {"type": "image_url", "image_url": {"url": data_url(part)}}
            for part in turn.parts
        ]
        payload: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": content}],
            "temperature": config.temperature,
            "max_tokens": 1 if turn.choices else config.max_reply_tokens,
        }
        if turn.choices:
            payload |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        elif turn.schema is not None and config.structured == "json_schema":
            schema = {"name": "answer", "strict": True, "schema": turn.schema}
            payload["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif turn.schema is not None and config.structured == "json_object":
            payload["response_format"] = {"type": "json_object"}
        return payload

    def _request(
        self, method: str, path: str, payload: Mapping[str, Any] | None, timeout: float
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers and body, all within `timeout` [s]; raise `HTTPError` if there is no whole reply."""
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        deadline = time.monotonic() + timeout
        reply = self._pool.request(
            method,
            self._url + path,
            json=payload,
            headers=headers,
            timeout=urllib3.Timeout(total=max(timeout, 0.001)),
            redirect=False,  # a key is for the server that it was given for
            preload_content=False,
        )
        try:
            return reply.status, reply.headers, _read_body(reply, deadline)
        except HTTPError:
            reply.close()
            raise
        finally:
            reply.release_conn()

    def _paid(self, completion: Completion, bought: Purchase, latency: float, attempts: int) -> Completion:
        """Record what the call used; return the completion with its cost."""
        config = self._config
        used = completion.prompt_tokens + completion.reply_tokens
        if not used and self._budget.limits_usage:
            raise EndpointError(
                f"{self._url}: does not report the tokens that it used, so a budget of tokens or money cannot be kept; "
                "limit budget.calls or budget.seconds instead"
            )
        cost = (config.price_prompt * completion.prompt_tokens + config.price_reply * completion.reply_tokens) / 1e6
        bought.tokens, bought.money = used, cost
        facts = {**vars(completion), "cost": cost, "latency": latency, "attempts": attempts}
        return Completion(**facts)

    def _wait(self, seconds: float, problem: str) -> None:
        if seconds >= self._budget.seconds_left:
            raise BudgetSpentError(f"the budget's seconds end before the next attempt ({self._url}: {problem})")
        self._closed.wait(seconds)

    def _refusal(self, status: int, headers: Mapping[str, str], body: bytes) -> EndpointError:
        text = explain_refusal(status, headers, self._text(body), self._config, bool(self._key))
        return EndpointError(f"{self._url}: {text}")

    def _text(self, body: bytes) -> str:
        return self._safe(body.decode(errors="replace"))

    def _safe(self, text: str) -> str:
        """Return the text without the key, which servers may repeat in their messages."""
        return text.replace(self._key, "(key)") if self._key else text


def _reason(error: HTTPError) -> str:
    return f"{type(error).__name__}: {error}"


def _read_body(reply: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
    """Return the whole body; raise `HTTPError` after the deadline, or if it is larger than `MAX_REPLY`."""
    pieces, size = list[bytes](), 0
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise ReadTimeoutError(None, None, "the reply was not complete in time")  # type: ignore[arg-type]
        if (sock := getattr(reply.connection, "sock", None)) is not None:
            sock.settimeout(left)
        piece = reply.read1(_PIECE)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
        if size > MAX_REPLY:
            raise HTTPError(f"the reply is larger than {MAX_REPLY} bytes")


def _checked_url(url: str) -> str:
    """Return the URL without a slash at its end.

    Raises:
        EndpointError: if it is none, or holds a secret.
    """
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid:
        raise EndpointError(f"endpoint.url {url!r} is no URL; expected one like http://127.0.0.1:8000/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise EndpointError("endpoint.url must hold no key; put it into the environment, see endpoint.key_variable")
    return url.rstrip("/")
