"""The simulated payment provider: a process of its own, spoken to over HTTP only.

    python -m shop.provider.server --host 127.0.0.1 --port 8001 --store provider.sqlite3

The API, JSON both ways, amounts in minor units, times virtual (ISO 8601):

    POST /v1/charges                Idempotency-Key, {"amount_minor", "reference"?}
    GET  /v1/charges/{key}
    POST /v1/charges/{key}/cancel
    POST /v1/charges/{key}/refunds  Idempotency-Key (the refund's own), {"amount_minor"}
    GET  /v1/charges?since=         landed charges, oldest first
    GET  /healthz

and beside it the simulator's own switch, `GET` and `PUT /control` (see `modes`). An error is
`{"error": {"code", "message"}}`, with the `key` it is about where the answer is a decided no.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import re
import sys
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from marlow.clock import Clock, ClockError, live, monotonic
from shop.provider.counter import Body, Counter, Question, error
from shop.provider.modes import ControlError, Mode, Operation, Rule, read_control, read_moment
from shop.provider.store import Charge, Store

KEY = re.compile(r"[A-Za-z0-9._:~-]{1,200}")
HIGHEST_AMOUNT = 10**12  # minor units
LONGEST_BODY = 64 * 1024  # bytes


class BadInput(Exception):
    """The request makes no sense, and the sentence says why: nothing was done."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def application(store: Store, clock: Clock) -> Starlette:
    counter = Counter(store, clock)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.counter = counter
        chores = [asyncio.create_task(chore) for chore in (counter.land_promises(), counter.keep_the_log_short())]
        yield
        for chore in chores:
            chore.cancel()

    return Starlette(routes=ROUTES, lifespan=lifespan, exception_handlers=ERRORS)


async def charge(request: Request) -> Response:
    arrived = monotonic()
    key = _header_key(request)
    body = await _body(request)
    amount, reference = _amount(body), _reference(body)
    counter = _counter(request)

    def work(rule: Rule, now: datetime) -> Body:
        if rule.mode is Mode.LATE:
            counter.promise(key, amount, reference, rule, now)
            return {}
        if rule.mode is Mode.DECLINING:
            return _landed(counter.store.decline(key, amount, reference))
        return _landed(counter.store.charge(key, amount, reference, now))

    return await counter.serve(Question(request, Operation.CHARGE, key, arrived), work)


async def lookup(request: Request) -> Response:
    arrived = monotonic()
    key = _path_key(request)
    counter = _counter(request)

    def work(rule: Rule, now: datetime) -> Body:
        return _with_refunds(counter.store.find(key))

    return await counter.serve(Question(request, Operation.LOOKUP, key, arrived), work)


async def cancel(request: Request) -> Response:
    arrived = monotonic()
    key = _path_key(request)
    await _read(request)
    counter = _counter(request)

    def work(rule: Rule, now: datetime) -> Body:
        moved = counter.store.cancel(key)
        return _with_refunds(moved) if moved else {"key": key, "status": "barred"}

    return await counter.serve(Question(request, Operation.CANCEL, key, arrived), work)


async def refund(request: Request) -> Response:
    arrived = monotonic()
    charge_key, key = _path_key(request), _header_key(request)
    amount = _amount(await _body(request))
    counter = _counter(request)

    def work(rule: Rule, now: datetime) -> Body:
        made = counter.store.refund(charge_key, key, amount, now)
        return {
            "key": made.key,
            "charge_key": made.charge_key,
            "amount_minor": made.amount_minor,
            "status": "refunded",
            "refunded_at": made.refunded_at.isoformat(),
        }

    return await counter.serve(Question(request, Operation.REFUND, key, arrived), work)


async def since(request: Request) -> Response:
    arrived = monotonic()
    try:
        moment = read_moment(request.query_params.get("since"), "since")
    except ControlError as senseless:
        raise BadInput("bad_since", str(senseless)) from senseless
    counter = _counter(request)

    def work(rule: Rule, now: datetime) -> Body:
        return {"charges": [_with_refunds(charge) for charge in counter.store.since(moment)]}

    return await counter.serve(Question(request, Operation.LIST, "", arrived), work)


async def healthz(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def control(request: Request) -> Response:
    """Answer the control as it stands, after setting it where the method is PUT."""
    counter = _counter(request)
    if request.method == "PUT":
        try:
            counter.set_control(read_control(await _body(request)))
        except ControlError as senseless:
            raise BadInput("bad_control", str(senseless)) from senseless
    return JSONResponse(counter.control.body())


def _counter(request: Request) -> Counter:
    counter: Counter = request.app.state.counter
    return counter


def _landed(charge: Charge) -> Body:
    """What a charge answers: the same every time, whatever has been refunded since."""
    return {
        "key": charge.key,
        "amount_minor": charge.amount_minor,
        "reference": charge.reference,
        "status": "landed",
        "landed_at": charge.landed_at.isoformat(),
    }


def _with_refunds(charge: Charge) -> Body:
    """`refunded` is true once the whole amount has moved back."""
    back = charge.refunded_minor
    return {**_landed(charge), "refunded_minor": back, "refunded": back == charge.amount_minor}


async def _read(request: Request) -> bytes:
    read = bytearray()
    async for chunk in request.stream():
        read += chunk
        if len(read) > LONGEST_BODY:
            raise BadInput("body_too_long", f"The body is longer than {LONGEST_BODY} bytes.")
    return bytes(read)


async def _body(request: Request) -> Body:
    try:
        body = json.loads(await _read(request))
    except (ValueError, RecursionError) as senseless:
        raise BadInput("bad_json", "The body is not JSON.") from senseless
    if not isinstance(body, dict):
        raise BadInput("bad_json", "The body is JSON, but not an object.")
    return body


def _amount(body: Body) -> int:
    amount = body.get("amount_minor")
    if isinstance(amount, bool) or not isinstance(amount, int) or not 0 < amount <= HIGHEST_AMOUNT:
        raise BadInput("bad_amount", f"amount_minor is a whole number of minor units, 1 to {HIGHEST_AMOUNT}.")
    return amount


def _reference(body: Body) -> str:
    reference = body.get("reference", "")
    if not isinstance(reference, str) or len(reference) > 200 or not reference.isprintable():
        raise BadInput("bad_reference", "reference is printable text of at most 200 characters.")
    return reference


def _path_key(request: Request) -> str:
    return _key(request.path_params["key"], "The key in the path")


def _header_key(request: Request) -> str:
    return _key(request.headers.get("Idempotency-Key", ""), "The header Idempotency-Key")


def _key(text: str, where: str) -> str:
    if not KEY.fullmatch(text):
        raise BadInput("bad_key", f"{where} is 1 to 200 letters, digits and . _ : ~ - without spaces.")
    return text


async def _bad_input(request: Request, problem: Exception) -> Response:
    return error(422, getattr(problem, "code", "bad_input"), str(problem))


async def _no_such_page(request: Request, problem: Exception) -> Response:
    status = problem.status_code if isinstance(problem, HTTPException) else 400
    code = {404: "no_such_page", 405: "method_not_allowed"}.get(status, "bad_request")
    return error(status, code, f"{request.method} {request.url.path}: see the API in shop/provider/server.py.")


async def _broken(request: Request, problem: Exception) -> Response:
    return error(500, "broken", "The provider failed; its own log says why.")


ROUTES = [
    Route("/v1/charges", charge, methods=["POST"]),
    Route("/v1/charges", since, methods=["GET"]),
    Route("/v1/charges/{key}", lookup, methods=["GET"]),
    Route("/v1/charges/{key}/cancel", cancel, methods=["POST"]),
    Route("/v1/charges/{key}/refunds", refund, methods=["POST"]),
    Route("/healthz", healthz, methods=["GET"]),
    Route("/control", control, methods=["GET", "PUT"]),
]
ERRORS = {BadInput: _bad_input, HTTPException: _no_such_page, Exception: _broken}


class Server(uvicorn.Server):
    """A server that ends at the first signal, whoever is still waiting for an answer."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # those cut off are meant to be
        super().handle_exit(sig, frame)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m shop.provider.server", description="The payment provider.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--store", type=Path, required=True, help="the SQLite file, made if missing")
    chosen = parser.parse_args()
    try:
        clock = live()
        clock.now()
    except ClockError as problem:
        sys.exit(str(problem))
    store = Store(chosen.store)
    config = uvicorn.Config(
        application(store, clock),
        host=chosen.host,
        port=chosen.port,
        access_log=False,
        log_level="warning",
        timeout_keep_alive=75,
        timeout_graceful_shutdown=0,
    )
    try:
        Server(config).run()
    finally:
        store.close()


if __name__ == "__main__":
    main()
