"""How one request is served: its mode first, then the work, and the promises that fall due meanwhile."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from starlette.datastructures import Address
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from marlow.clock import Clock
from shop.provider.modes import Control, Mode, Operation, Rule
from shop.provider.store import Refused, Store

Body = dict[str, Any]
log = logging.getLogger("provider")

# How long (real seconds) the lander waits at most: a dial may be started, stopped or set at any moment.
LOOK_AGAIN = 0.25
MOST_STEPS = 1000  # connections whose step is remembered
CHECKPOINT_EVERY = 2.0  # real seconds
STATUS = {"no_such_charge": 404, "card_declined": 402}  # of the store's refusals; every other one is 409
NOBODY = Response(status_code=499)  # for a client that has gone: nothing of it is sent
PAGE = "<!doctype html><title>Scheduled maintenance</title><h1>We will be back soon</h1>"


def error(status: int, code: str, message: str, **more: str) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": message, **more}}, status)


@dataclass(frozen=True)
class Question:
    """One request as it was understood. `arrived` is real, monotonic; `key` is the key the answer is about."""

    request: Request
    operation: Operation
    key: str
    arrived: float


class Counter:
    """Serves questions in the mode of the hour. One to a process, on its event loop."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.control = store.control()
        self.promised = asyncio.Event()
        self.steps: dict[Address, float] = {}  # when each connection's last slow answer was due, oldest first

    def set_control(self, control: Control) -> None:
        self.store.set_control(control)
        self.control = control

    def promise(self, key: str, amount_minor: int, reference: str, rule: Rule, now: datetime) -> None:
        """Have the money move after the rule's `lands_after`, client or no client."""
        self.store.promise(key, amount_minor, reference, now + timedelta(seconds=rule.lands_after))
        self.promised.set()

    async def serve(self, question: Question, work: Callable[[Rule, datetime], Body]) -> Response:
        """Answer in the mode of this request. `work` does what was asked, at a virtual time, in one go."""
        rule = self._rule(question.operation)
        match rule.mode:
            case Mode.SLOW:
                if await left(question.request, self._in_step(question, rule)):
                    return NOBODY
            case Mode.DARK:
                await left(question.request)
                return NOBODY
            case Mode.REFUSING:
                return error(503, "unavailable", "The provider is refusing requests.")
            case Mode.HTML:
                return HTMLResponse(PAGE)
            case Mode.GARBAGE:
                return JSONResponse({"ok": True, "data": [question.key]})
        response = self._work(question, rule, work)
        if rule.mode is Mode.LATE and response.status_code == 200:
            await left(question.request)
        return response

    async def land_promises(self) -> None:
        """Land what falls due, for as long as the process lives."""
        while True:
            try:
                wait = self._land_due()
            except Exception:
                log.exception("Landing due charges failed; trying again.")
                wait = LOOK_AGAIN
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self.promised.wait()
            self.promised.clear()

    async def keep_the_log_short(self) -> None:
        """Checkpoint the store now and then on a thread, for an fsync in the loop would be late answers."""
        folded = 0
        while True:
            await asyncio.sleep(CHECKPOINT_EVERY)
            if (written := self.store.changes()) != folded:
                try:
                    await asyncio.to_thread(self.store.checkpoint)
                    folded = written
                except Exception:
                    log.exception("The store's log could not be folded in; trying again.")

    def _land_due(self) -> float | None:
        """Land what is due; real seconds until the next look, None while nothing is promised."""
        now = self.clock.now()
        due = self.store.next_due()
        if due is not None and due <= now:
            self.store.land_due(now)
            due = self.store.next_due()
        if due is None:
            return None
        return min(LOOK_AGAIN, max(0.005, self.clock.real((due - now).total_seconds())))

    def _rule(self, operation: Operation) -> Rule:
        number, phase = self.control.phase(self.clock.now())
        rule = phase.rule(operation)
        return rule.hit(self.store.count(number, operation)) if rule.counts else rule

    def _in_step(self, question: Question, rule: Rule) -> float:
        """When (monotonic) a slow answer is due on this connection, noted for the next one."""
        client, due = question.request.client, question.arrived + self.clock.real(rule.latency)
        if client is None or not rule.spacing:
            return due
        due = max(due, self.steps.pop(client, 0.0) + self.clock.real(rule.spacing))
        self.steps[client] = due
        if len(self.steps) > MOST_STEPS:
            self.steps.pop(next(iter(self.steps)))
        return due

    def _work(self, question: Question, rule: Rule, work: Callable[[Rule, datetime], Body]) -> Response:
        self._land_due()  # a promise that is due comes before this question, whoever wakes first
        try:
            body = work(rule, self.clock.now())
        except Refused as refusal:
            return error(STATUS.get(refusal.code, 409), refusal.code, str(refusal), key=question.key)
        return JSONResponse(askew(body) if rule.mode is Mode.WRONG_AMOUNT else body)


async def left(request: Request, until: float | None = None) -> bool:
    """Wait until the client goes away (True) or until this monotonic time (False). The body must have been read."""
    if await _gone(request, until):
        return True
    # Both may have happened in one turn of the loop. A client that has gone has given up, and its money stays.
    return await _gone(request, 0.0)


async def _gone(request: Request, until: float | None) -> bool:
    try:
        async with asyncio.timeout_at(until):
            while (await request.receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        return False
    return True


def askew(body: Body) -> Body:
    """The same answer with every amount one minor unit too high."""
    charges = [askew(charge) for charge in body.get("charges", [])]
    wrong = {"amount_minor": body["amount_minor"] + 1} if "amount_minor" in body else {}
    return {**body, **wrong, **({"charges": charges} if "charges" in body else {})}
