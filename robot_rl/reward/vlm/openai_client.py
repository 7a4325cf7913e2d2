"""A client for a model behind an OpenAI-compatible server: requests, retries, costs, and errors with their cure.

Why it is not built on the package `openai`: each attempt must pass the budget before it starts, so the package's own
retries would be off; it does not validate replies, so servers that deviate would need our parser all the same. It would
replace one request of urllib3. Measured with openai 3.54 under our budget (2 cores, local server, median of 5): its
import takes 353 ms instead of 54 ms; it makes 660 calls per second instead of 1,960 with text alone, and 194 instead of
269 with four frames of 448 px. Its time-out starts again with each received byte: a reply of 250 bytes, one each 50 ms,
took 12.5 s under a time-out of 1 s. Here `timeout_s` limits the whole attempt.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np

from robot_rl.config.labelling import EndpointConfig
from robot_rl.errors import BudgetSpentError, ConfigError, EndpointError, ServerBusyError, UnansweredError
from robot_rl.reward.budget import Budget, Purchase
from robot_rl.reward.vlm.api_key import ApiKey
from robot_rl.reward.vlm.chat_backend import JPEG_QUALITY, data_url
from robot_rl.reward.vlm.chat_model import Completion, Turn
from robot_rl.reward.vlm.openai_http import (
    TRANSIENT,
    explain_refusal,
    is_permanent,
    message_of,
    random_wait,
    requested_wait,
)
from robot_rl.reward.vlm.openai_reply import (
    UnreadableReplyError,
    Use,
    most_used,
    read_completion,
    read_digest,
    read_models,
)
from robot_rl.reward.vlm.timed_http import HttpReply, NoReplyError, TimedHttp
from robot_rl.system.printable import one_line

TOP_LOGPROBS = 20
"""Largest number that such servers give."""
DIGEST_LIMIT = 5.0
"""Longest time for the hash of the model, which few servers state [s]."""
REPORTED_WAIT = 10.0
"""Waits from this length are reported [s]."""

logger = logging.getLogger(__name__)


@dataclass
class _Attempts:
    """What the attempts at one query have come to.

    Attributes:
        started: When the first began [s].
        made: Their number.
        cost: By the configured prices.
        uncounted: Those whose tokens the server did not count, though it may bill them.
        problem: Why the last one failed.
        not_before: When the next one may begin; on the clock of `time.monotonic` [s].
    """

    started: float
    made: int = 0
    cost: float = 0.0
    uncounted: int = 0
    problem: str = ""
    not_before: float = 0.0


class Endpoint:
    """A `ChatModel` behind a server. `connect` before the first turn finds out early what is wrong.

    Args:
        config: Address, model and settings of the requests.
        budget: Limits of calls, tokens, money and time.

    Raises:
        EndpointError: if the URL cannot be one or holds a secret, or the key cannot be sent.
        ConfigError: if the budget limits money, but there are no prices.
    """

    def __init__(self, config: EndpointConfig, budget: Budget) -> None:
        if budget.limits_money and not (config.price_prompt or config.price_reply):
            raise ConfigError(
                "budget.money limits nothing without prices; set endpoint.price_prompt and endpoint.price_reply to "
                "the price of a million tokens, or limit budget.tokens or budget.calls"
            )
        self._config, self._budget = config, budget
        self._url = _checked_url(config.url)
        self._key = ApiKey(config.key_variable)
        self._http = TimedHttp(config.concurrency)
        self._closed = threading.Event()
        self._not_before = 0.0  # as the server requested; on the clock of `time.monotonic` [s]
        self._rng = np.random.default_rng()  # spreads retries in time; no label depends on it
        self._weights: dict[str, str] = {}
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

        If the server states which weights are behind the name, completions are marked with that.

        Raises:
            EndpointError: if there is no server, it wants another key, or it does not have the model.
        """
        try:
            reply = self._request("GET", "/models", None, self._config.timeout_s)
        except NoReplyError as error:
            raise EndpointError(
                f"{self._url}: no answer ({self._reason(error)}); start the server, or set endpoint.url"
            ) from error
        if reply.status == 404 and self.model:
            return []  # a server that keeps no list
        if reply.status != 200:
            raise self._refusal(reply)
        weights = read_models(reply.body)
        names = list(weights)
        if not self.model and len(names) == 1 and names[0] == one_line(names[0]):
            self.model = names[0]
        if not self.model:
            raise EndpointError(
                f"{self._url}: serves {one_line(', '.join(names)) or 'no model'}; choose with endpoint.model"
            )
        if names and self.model not in names:
            raise EndpointError(f"{self._url}: has no model {self.model!r}; it serves: {one_line(', '.join(names))}")
        root = weights.get(self.model, "")
        self._weights = {"root": root} if root else self._digest()
        return names

    def _digest(self) -> dict[str, str]:
        """Return the hash of the model if the server is Ollama; other servers do not know the address."""
        try:
            reply = self._request(
                "GET", "/api/tags", None, min(self._config.timeout_s, DIGEST_LIMIT), self._url.removesuffix("/v1")
            )
        except NoReplyError:
            return {}
        digest = read_digest(reply.body, self.model) if reply.status == 200 else ""
        return {"digest": digest} if digest else {}

    def complete(self, turn: Turn) -> Completion:
        """Return the reply of the model, after at most the configured number of attempts.

        Raises:
            UnansweredError: if no attempt succeeded, or the endpoint was closed meanwhile.
            ServerBusyError: if the server requests a longer wait than configured.
            BudgetSpentError: if another attempt would cost more than is left.
            EndpointError: if the server cannot do what the request needs.
        """
        payload, attempts = self._payload(turn), _Attempts(time.monotonic())
        most = most_used(turn, payload)
        while attempts.made < self._config.attempts:
            self._wait(attempts)
            with self._budget.purchase(most.tokens, self._price(most)) as bought:
                attempts.made += 1
                completion = self._attempt(payload, bool(turn.choices), bought, attempts)
                attempts.cost += bought.money
            if completion is not None:
                return replace(
                    completion,
                    cost=attempts.cost,
                    latency=time.monotonic() - attempts.started,
                    attempts=attempts.made,
                    uncounted=attempts.uncounted,
                    served_by={**completion.served_by, **self._weights},
                )
        raise UnansweredError(f"{self._url}: not answered in {attempts.made} attempts; the last: {attempts.problem}")

    def close(self) -> None:
        """End waits, and let no further request start."""
        self._closed.set()
        self._http.close()

    def _wait(self, attempts: _Attempts) -> None:
        """Wait until the next attempt may begin, as the server requested of any query, or as this one backs off.

        Raises:
            BudgetSpentError: if the budget ends before.
            ServerBusyError: if the server requested more than the longest wait.
            UnansweredError: if the endpoint was closed.
        """
        seconds = max(self._not_before, attempts.not_before) - time.monotonic()
        if seconds > 0:
            problem = attempts.problem or "so it replied to another query"
            if seconds >= self._budget.seconds_left:
                raise BudgetSpentError(f"the budget's seconds end before the next attempt ({self._url}: {problem})")
            if seconds > self._config.longest_wait_s:
                raise ServerBusyError(
                    f"{self._url}: requests a wait of {seconds:.0f} s, more than endpoint.longest_wait_s="
                    f"{self._config.longest_wait_s:g} ({problem}); repeat the command then, or raise the setting"
                )
            if seconds >= REPORTED_WAIT and attempts.made:
                logger.warning(
                    f"{self._url}: {problem}; the next attempt, {attempts.made + 1} of {self._config.attempts}, is in "
                    f"{seconds:.0f} s"
                )
            self._closed.wait(seconds)
        if self._closed.is_set():
            raise UnansweredError(f"{self._url}: closed before it answered")

    def _attempt(
        self, payload: Mapping[str, Any], wants_logprobs: bool, bought: Purchase, attempts: _Attempts
    ) -> Completion | None:
        """Return the reply, or None if another attempt may bring one."""
        pause = random_wait(attempts.made, self._config.backoff_s, self._rng)
        try:
            timeout = min(self._config.timeout_s, self._budget.seconds_left)
            reply = self._request("POST", "/chat/completions", payload, timeout)
        except NoReplyError as error:
            attempts.problem, attempts.not_before = self._reason(error), time.monotonic() + pause
            attempts.uncounted += error.sent
            if not error.sent:
                bought.tokens, bought.money = 0, 0.0
            return None
        if reply.status == 200:
            try:
                completion = read_completion(reply.body, wants_logprobs)
            except UnreadableReplyError as error:
                attempts.uncounted += 1
                attempts.problem, attempts.not_before = str(error), time.monotonic() + pause
                return None
            except EndpointError as error:
                raise EndpointError(f"{self._url}: {error}") from error
            attempts.uncounted += completion.uncounted
            self._measure(completion, bought)
            return completion
        bought.tokens, bought.money = 0, 0.0  # a refusal is not billed
        text = self._text(reply.body)
        if reply.status not in TRANSIENT or is_permanent(text):
            raise self._refusal(reply)
        attempts.problem = f"HTTP {reply.status}: {message_of(text)}"
        requested = requested_wait(reply.headers.get("Retry-After"))
        if requested is None:
            attempts.not_before = time.monotonic() + pause
        else:
            self._not_before = max(self._not_before, time.monotonic() + requested)
        return None

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
        self, method: str, path: str, payload: Mapping[str, Any] | None, seconds: float, base: str = ""
    ) -> HttpReply:
        """Return the reply within so many seconds, without the key in its body; raises `NoReplyError`."""
        reply = self._http.request(method, (base or self._url) + path, payload, self._key.headers(), seconds)
        return reply._replace(body=self._key.hide_in_reply(reply.body))

    def _measure(self, completion: Completion, bought: Purchase) -> None:
        """Record what the call used. If the server does not count it, it stays the most that it may have used.

        Raises:
            EndpointError: if tokens or money are limited, and the server does not count.
        """
        if completion.uncounted:
            if self._budget.limits_usage:
                raise EndpointError(
                    f"{self._url}: does not report the tokens that it used, or not as numbers that can be true, so a "
                    "budget of tokens or money cannot be kept; limit budget.calls or budget.seconds instead"
                )
            return
        used = Use(completion.prompt_tokens, completion.reply_tokens)
        bought.tokens, bought.money = used.tokens, self._price(used)

    def _price(self, use: Use) -> float:
        return (self._config.price_prompt * use.prompt + self._config.price_reply * use.reply) / 1e6

    def _refusal(self, reply: HttpReply) -> EndpointError:
        location = self._key.hide(unquote(reply.headers.get("Location", "")))
        text = explain_refusal(reply.status, location, self._text(reply.body), self._config, bool(self._key))
        return EndpointError(f"{self._url}: {text}")

    def _reason(self, error: NoReplyError) -> str:
        return one_line(self._key.hide(str(error)))

    def _text(self, body: bytes) -> str:
        return self._key.hide(body.decode(errors="replace"))


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
