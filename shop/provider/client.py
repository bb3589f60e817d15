"""The shop's side of the payment provider: HTTP in, one of three answers out."""

import asyncio
import json
import os
import ssl
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from marlow.clock import Clock
from shop.provider.answers import Answer, LandedCharge, Verdict


class NoAnswer(Exception):
    """Nothing came back that we may act on. The sentence says why."""


# The only answers that mean no: this status with this code, about the key that was asked about.
NO = {
    (402, "card_declined"): "the card was declined",
    (409, "key_barred"): "the key was cancelled",
    (404, "no_such_charge"): "no money has moved",
    (409, "nothing_to_refund"): "nothing to refund",
}


class HttpProvider:
    """The provider over HTTP (`Provider` in `answers`).

    `timeout` is the deadline of a whole call in virtual seconds: connecting, sending, and the last byte of an answer
    that drips in. Nothing is tried twice.

    Threads may share one: each call takes an idle line (an event loop and its kept-alive connection) or opens one.
    After a fork the child opens lines of its own. Not to be called from inside a running event loop.
    `close` hangs up the idle lines; a later call opens new ones.
    """

    def __init__(self, base_url: str, clock: Clock, timeout: float = 10.0) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ValueError(f"The provider's address begins with http:// or https://, unlike {base_url!r}.")
        self.base_url = base_url
        self.clock = clock
        self.timeout = timeout
        self._tls = _trust(base_url)
        self._idle: deque[_Line] = deque()
        self._pid = os.getpid()
        self._parents: list[deque[_Line]] = []

    def charge(self, key: str, amount_minor: int) -> Answer:
        """A key used before for another amount is unknown: money may have moved, but not this."""
        question = _Question("POST", "/v1/charges", key, ("card_declined", "key_barred"))
        return self._verdict(question, "landed", amount_minor)

    def lookup(self, key: str) -> Answer:
        return self._verdict(
            _Question("GET", f"/v1/charges/{quote(key, safe='')}", key, ("no_such_charge",)), "landed"
        )

    def cancel(self, key: str) -> Answer:
        question = _Question("POST", f"/v1/charges/{quote(key, safe='')}/cancel", key, ())
        try:
            status, body = self._ask(question)
            if status == 200 and body.get("status") == "barred" and body.get("key") == key:
                return Answer(Verdict.NO, why="no money has moved, and none will")
            return _read(question, status, body, "landed", None)
        except NoAnswer as silence:
            return Answer(Verdict.UNKNOWN, why=str(silence))

    def refund(self, charge_key: str, refund_key: str, amount_minor: int) -> Answer:
        path = f"/v1/charges/{quote(charge_key, safe='')}/refunds"
        question = _Question("POST", path, refund_key, ("no_such_charge", "nothing_to_refund"))
        return self._verdict(question, "refunded", amount_minor)

    def charges_since(self, since: datetime) -> list[LandedCharge] | None:
        """Raise ValueError for a time without a zone."""
        if since.tzinfo is None:
            raise ValueError("`since` needs a zone: the provider's times are absolute.")
        moment = quote(since.astimezone(UTC).isoformat())
        try:
            status, body = self._ask(_Question("GET", f"/v1/charges?since={moment}", "", ()))
            if status != 200:
                raise NoAnswer(f"the provider answered {status}")
            return _charges(body)
        except NoAnswer:
            return None

    def close(self) -> None:
        while line := self._take():
            line.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def _verdict(self, question: "_Question", yes: str, amount_minor: int | None = None) -> Answer:
        try:
            status, body = self._ask(question, amount_minor)
            return _read(question, status, body, yes, amount_minor)
        except NoAnswer as silence:
            return Answer(Verdict.UNKNOWN, why=str(silence))

    def _ask(self, question: "_Question", amount_minor: int | None = None) -> tuple[int, dict[str, Any]]:
        """Status and JSON object of the answer. Raise NoAnswer where there is none within the deadline."""
        line = self._take() or _Line(self.base_url, self._tls)
        try:
            response = line.ask(question, amount_minor, self.clock.real(self.timeout))
        except TimeoutError as late:
            self._idle.append(line)
            raise NoAnswer(f"no answer within {self.timeout:g} s") from late
        except (httpx.HTTPError, OSError) as broken:
            self._idle.append(line)
            raise NoAnswer(f"the connection failed: {broken or type(broken).__name__}") from broken
        except BaseException:
            line.close()  # a signal's exception may have left a request of its own on this line
            raise
        self._idle.append(line)
        return response.status_code, _json_object(response)

    def _take(self) -> "_Line | None":
        if self._pid != os.getpid():
            # The parent's sockets: closing them here would meddle with a conversation that is not ours.
            self._parents.append(self._idle)
            self._idle, self._pid = deque(), os.getpid()
        try:
            return self._idle.pop()
        except IndexError:
            return None


@dataclass(frozen=True)
class _Question:
    """`key` is what the answer must be about; `noes` are the codes that answer no to this question."""

    method: str
    path: str
    key: str
    noes: tuple[str, ...]


class _Line:
    """An event loop and one kept-alive connection, used by one call at a time."""

    def __init__(self, base_url: str, tls: ssl.SSLContext) -> None:
        self.runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        # httpx's timeouts start afresh with every read, so ours is around the call. No proxies from the environment.
        self.client = httpx.AsyncClient(base_url=base_url, verify=tls, timeout=None, trust_env=False)  # noqa: S113

    def ask(self, question: _Question, amount_minor: int | None, seconds: float) -> httpx.Response:
        """Raise TimeoutError after this many real seconds, and httpx's errors."""
        return self.runner.run(self._ask(question, amount_minor, seconds))

    def close(self) -> None:
        self.runner.run(self.client.aclose())
        self.runner.close()

    async def _ask(self, question: _Question, amount_minor: int | None, seconds: float) -> httpx.Response:
        headers = {"Idempotency-Key": question.key} if question.key else {}
        body = None if amount_minor is None else {"amount_minor": amount_minor}
        async with asyncio.timeout(seconds):
            return await self.client.request(question.method, question.path, headers=headers, json=body)


def _trust(base_url: str) -> ssl.SSLContext:
    """Loading the authorities takes tens of milliseconds, once: plain HTTP gets a context that trusts nobody."""
    if base_url.startswith("https://"):
        return httpx.create_ssl_context(trust_env=False)
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _json_object(response: httpx.Response) -> dict[str, Any]:
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError) as senseless:
        raise NoAnswer(f"the provider answered {response.status_code} with something that is not JSON") from senseless
    if not isinstance(body, dict):
        raise NoAnswer(f"the provider answered {response.status_code} with JSON of another shape")
    return body


def _read(question: _Question, status: int, body: dict[str, Any], yes: str, expected: int | None) -> Answer:
    """Yes or no, for an answer that is unmistakably about this question. Raise NoAnswer for every other one."""
    if status != 200:
        return _read_error(question, status, body)
    if body.get("status") != yes or body.get("key") != question.key:
        raise NoAnswer("the provider answered about something else")
    amount = _whole(body.get("amount_minor"))
    if expected not in (None, amount):
        raise NoAnswer(f"the provider answered about {amount}, not {expected}")
    return Answer(Verdict.YES, amount)


def _read_error(question: _Question, status: int, body: dict[str, Any]) -> Answer:
    error = body.get("error")
    code, key = (error.get("code"), error.get("key")) if isinstance(error, dict) else (None, None)
    if code == "amount_differs":
        raise NoAnswer("the key was used before, for another amount")
    if code not in question.noes or key != question.key or (status, code) not in NO:
        raise NoAnswer(f"the provider answered {status}")
    return Answer(Verdict.NO, why=NO[status, code])


def _charges(body: dict[str, Any]) -> list[LandedCharge]:
    charges = body.get("charges")
    if not isinstance(charges, list):
        raise NoAnswer("the list was of another shape")
    return [_charge(charge) for charge in charges]


def _charge(charge: object) -> LandedCharge:
    match charge:
        case {"key": str(key), "amount_minor": amount, "landed_at": str(landed_at), "refunded": bool(refunded)}:
            return LandedCharge(key, _whole(amount), _moment(landed_at), refunded)
    raise NoAnswer("the list held something that is not a charge")


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as senseless:
        raise NoAnswer("the list held a time that is not one") from senseless
    if moment.tzinfo is None:
        raise NoAnswer("the list held a time without a zone")
    return moment


def _whole(amount: object) -> int:
    if isinstance(amount, bool) or not isinstance(amount, int) or amount <= 0:
        raise NoAnswer("the amount was not a whole number of minor units")
    return amount
