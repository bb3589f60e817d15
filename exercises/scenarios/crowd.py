"""Ninety-six of a hundred connections: what an advisory lock costs where every pod holds one.

The shop's Postgres takes 100 connections and its application pools keep 96 of them. A sweep that locks in the
database holds its connection for the whole run, and its journal holds another. One cron job has room; twelve pods
have not.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from marlow.servers.postgres import EmbeddedPostgres
from sweeper.locks.postgres_advisory import TAKE, key_of

Connection = psycopg.Connection[tuple[Any, ...]]
CONNECTIONS = 100
POOLED = 96
PODS = 12


@dataclass(frozen=True)
class Crowd:
    """How many pods got what a run needs, and what the server told the first that did not."""

    served: int
    refusal: str


def gather(folder: Path, say: Callable[[str], None]) -> Crowd:
    """Play it on an embedded Postgres of its own in `folder`; everything is closed afterwards."""
    postgres = EmbeddedPostgres(folder, max_connections=CONNECTIONS).start()
    try:
        with ExitStack() as held:

            def connect() -> Connection:
                return held.enter_context(psycopg.connect(postgres.url(), autocommit=True))

            for _ in range(POOLED):
                connect()
            say(f"The application pools hold {POOLED} of {CONNECTIONS} connections.")
            return _let_pods_in(connect, say)
    finally:
        postgres.stop()


def _let_pods_in(connect: Callable[[], Connection], say: Callable[[str], None]) -> Crowd:
    for pod in range(1, PODS + 1):
        name = f"pod-{pod}"
        try:
            taken = connect().execute(TAKE, (key_of(name), name)).fetchone()
            connect()
        except psycopg.OperationalError as refused:
            reason = str(refused).strip().splitlines()[-1].strip()
            say(f"Pod {pod} is turned away: {reason}")
            return Crowd(served=pod - 1, refusal=reason)
        say(f"Pod {pod} holds its own lock ({taken == (name,)}) and two connections until its run ends.")
    return Crowd(served=PODS, refusal="")
