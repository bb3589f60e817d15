"""The shop's side of the payment provider: HTTP in, one of three answers out."""

import json
import os
import ssl
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from marlow.clock import Clock
from shop.provider.answers import Answer, LandedCharge, Verdict
from shop.provider.line import Call, Line, LineBroken, LineTimeout


class NoAnswer(Exception):
    """Nothing came back that we may act on. The sentence says why."""


# The only answers that mean no: this status with this code, about the key that was asked about.
NO = {
    (402, "card_declined"): "the card was declined",
    (409, "key_barred"): "the key was cancelled",
    (404, "no_such_charge"): "no money has moved",
    (409, "nothing_to_refund"): "nothing to refund",
}


@dataclass(frozen=True)
class Question:
    """`key` is what the answer must be about, `yes` and `no` the status that means so, `noes` the error codes that
    mean no.
    """

    method: str
    path: str
    key: str = ""
    yes: str = "landed"
    no: str = ""
    noes: tuple[str, ...] = ()
    amount_minor: int | None = None

    def call(self) -> Call:
        if self.amount_minor is None:
            return Call(self.method, self.path)
        headers = {b"Idempotency-Key": self.key.encode(), b"Content-Type": b"application/json"}
        return Call(self.method, self.path, headers, json.dumps({"amount_minor": self.amount_minor}).encode())


class HttpProvider:
    """The provider over HTTP (`Provider` in `answers`).

    `timeout` is the deadline of a whole call in virtual seconds: resolving, connecting, sending, and the last byte of
    an answer that drips in. Nothing is tried twice.

    Threads may share one: each call takes an idle line (a kept-alive connection) or opens one. After a fork the child
    opens lines of its own. `close` hangs up the idle lines; a later call opens new ones.
    """

    def __init__(self, base_url: str, clock: Clock, timeout: float = 10.0) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ValueError(f"The provider's address begins with http:// or https://, unlike {base_url!r}.")
        self.base_url = base_url
        self.clock = clock
        self.timeout = timeout
        self._tls = ssl.create_default_context() if base_url.startswith("https://") else None
        self._pid = os.getpid()
        self._idle: deque[Line] = deque()
        self._inherited: list[deque[Line]] = []

    def charge(self, key: str, amount_minor: int) -> Answer:
        """A key used before for another amount is unknown: money may have moved, but not this."""
        noes = ("card_declined", "key_barred")
        return self._verdict(Question("POST", "/v1/charges", key, noes=noes, amount_minor=amount_minor))

    def lookup(self, key: str) -> Answer:
        return self._verdict(Question("GET", _path(key), key, noes=("no_such_charge",)))

    def cancel(self, key: str) -> Answer:
        return self._verdict(Question("POST", f"{_path(key)}/cancel", key, no="barred"))

    def refund(self, charge_key: str, refund_key: str, amount_minor: int) -> Answer:
        path, noes = f"{_path(charge_key)}/refunds", ("no_such_charge", "nothing_to_refund")
        return self._verdict(Question("POST", path, refund_key, yes="refunded", noes=noes, amount_minor=amount_minor))

    def charges_since(self, since: datetime) -> list[LandedCharge] | None:
        """Raise ValueError for a time without a zone."""
        if since.tzinfo is None:
            raise ValueError("`since` needs a zone: the provider's times are absolute.")
        moment = quote(since.astimezone(UTC).isoformat())
        try:
            status, body = self._ask(Question("GET", f"/v1/charges?since={moment}"))
            return _charges(status, body)
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

    def _verdict(self, question: Question) -> Answer:
        try:
            status, body = self._ask(question)
            return _read(question, status, body)
        except NoAnswer as silence:
            return Answer(Verdict.UNKNOWN, why=str(silence))

    def _ask(self, question: Question) -> tuple[int, dict[str, Any]]:
        """Status and JSON object of the answer. Raise NoAnswer where there is none within the deadline."""
        line = self._take() or Line(self.base_url, self._tls)
        try:
            status, content = line.ask(question.call(), self.clock.real(self.timeout))
        except LineTimeout as late:
            self._idle.append(line)  # it has hung up and will connect again
            raise NoAnswer(f"no answer within {self.timeout:g} s") from late
        except LineBroken as broken:
            self._idle.append(line)
            raise NoAnswer(str(broken)) from broken
        except BaseException:
            line.close()  # a signal's exception (a worker's time limit) came at no particular point: trust nothing
            raise
        self._idle.append(line)
        return status, _json_object(status, content)

    def _take(self) -> Line | None:
        if self._pid != os.getpid():
            # Our parent's conversations: kept unused, for to hang up here would cut them off there.
            self._inherited.append(self._idle)
            self._idle, self._pid = deque(), os.getpid()
        try:
            return self._idle.pop()
        except IndexError:
            return None


def _path(key: str) -> str:
    return f"/v1/charges/{quote(key, safe='')}"


def _json_object(status: int, content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as senseless:
        raise NoAnswer(f"the provider answered {status} with something that is not JSON") from senseless
    if not isinstance(body, dict):
        raise NoAnswer(f"the provider answered {status} with JSON of another shape")
    return body


def _read(question: Question, status: int, body: dict[str, Any]) -> Answer:
    """Yes or no, for an answer that is unmistakably about this question. Raise NoAnswer for every other one."""
    if status != 200:
        return _read_error(question, status, body)
    status_now = body.get("status")
    if body.get("key") != question.key or not status_now or status_now not in (question.yes, question.no):
        raise NoAnswer("the provider answered about something else")
    if status_now == question.no:
        return Answer(Verdict.NO, why="no money has moved, and none will")
    amount = _whole(body.get("amount_minor"))
    if question.amount_minor not in (None, amount):
        raise NoAnswer(f"the provider answered about {amount}, not {question.amount_minor}")
    return Answer(Verdict.YES, amount)


def _read_error(question: Question, status: int, body: dict[str, Any]) -> Answer:
    error = body.get("error")
    code, key = (error.get("code"), error.get("key")) if isinstance(error, dict) else (None, None)
    if code == "amount_differs":
        raise NoAnswer("the key was used before, for another amount")
    if code not in question.noes or key != question.key or (status, code) not in NO:
        raise NoAnswer(f"the provider answered {status}")
    return Answer(Verdict.NO, why=NO[status, code])


def _charges(status: int, body: dict[str, Any]) -> list[LandedCharge]:
    charges = body.get("charges")
    if status != 200 or not isinstance(charges, list):
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
