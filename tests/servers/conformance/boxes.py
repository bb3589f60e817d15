"""Boxes of one process, each with connections and a session of its own."""

import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import environ
from django.db import connections

from marlow.clock import Clock, RealClock
from sweeper.locks import build
from sweeper.locks.base import Lock
from sweeper.locks.live import LivePostgres, open_ports
from sweeper.locks.ports import Ports
from tests.servers.conformance.processes import EVERY, Job
from tests.servers.conformance.stands import Stand
from tests.servers.conformance.strategies import Strategy

TTL = 60.0  # real seconds: longer than a test that does not wait for it


@dataclass
class Boxes:
    """Makes boxes over one stand. A box is its lock; every call is a run of its own, in a session of its own."""

    strategy: Strategy
    stand: Stand
    database: Callable[[], str]  # the tests' own; most locks can do without, and it takes a while to be emptied
    closing: ExitStack

    def __call__(self, name: str = "box-b", clock: Clock | None = None, **changes: Any) -> Lock:
        plain = Ports(
            clock=clock or RealClock(),
            box=name,
            run=str(uuid.uuid4()),
            every=EVERY,
            new_value=lambda: uuid.uuid4().hex,
        )
        ports = self.closing.enter_context(open_ports(self.strategy.server, plain, self.stand.at, ttl=TTL))
        if self.stand.database:
            ports = replace(ports, postgres=LivePostgres(self.session()))
        return build(self.strategy.name, replace(ports, **changes))

    def job(self, **how: Any) -> Job:
        """For boxes in processes of their own."""
        return Job(lock=self.strategy.name, database=self.database(), at=self.stand.at, **how)

    def session(self) -> str:
        """The alias of a connection to the stand's Postgres that nobody else has."""
        alias = uuid.uuid4().hex
        there = connections["default"].settings_dict
        connections.settings[alias] = {**there, **connection_to(self.stand.database)}
        self.closing.callback(forget, alias)
        return alias


def connection_to(database: str) -> dict[str, Any]:
    told = environ.Env.db_url_config(database)
    return {name: told[name] for name in ("USER", "PASSWORD", "HOST", "PORT", "NAME")}


def forget(alias: str) -> None:
    connections[alias].close()
    del connections[alias]
    del connections.settings[alias]
