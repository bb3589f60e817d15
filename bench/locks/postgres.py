"""The locks in the shop's own Postgres, all through Django's connection."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pglock
from django.db import connection, connections, transaction

from bench.locks.contest import Race
from bench.locks.redises import acquired, was_refused
from bench.locks.world import HELD, JOB, TTL, World
from marlow.clock import real_now
from shop.models import Book, Order, Publisher
from sweeper.locks import LOCKS
from sweeper.locks.base import Released
from sweeper.locks.live import LivePostgres

KEY = 4711  # the floor's advisory lock
INSERT = """
    insert into sweeper_jobrun (job_name, run_slot, box, run, at) values (%s, 1, %s, %s, %s)
    on conflict do nothing returning id
"""
ELECTED = "select box from sweeper_jobrun where job_name = %s and run_slot = 1"
CLAIM = "select id from shop_order where id = %s and status = 'pending' for update skip locked"


def first(sql: str, *params: Any) -> Any:
    """The first column of the first row that Django's cursor gets."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        row = cursor.fetchone()
    return row and row[0]


def advisory(world: World) -> Iterator[Race]:
    name, ours = "postgres-advisory", world.ports()
    holder = replace(world.ports(box="box-b"), postgres=LivePostgres("journal"))

    def floor() -> bool:
        return first("select pg_try_advisory_lock(%s)", KEY) and first("select pg_advisory_unlock(%s)", KEY)

    def refused() -> bool:
        return not first("select pg_try_advisory_lock(%s)", KEY)

    theirs = pglock.advisory(JOB, timeout=0)
    peers = {"django-pglock": lambda: theirs.acquire() and theirs.release() is None}
    commands = "pg_try_advisory_lock, pg_advisory_unlock"
    yield Race(name, "acquired", commands, floor, acquired(name, ours), peers)
    lease = LOCKS[name](holder).acquire(JOB, HELD)
    with connections["journal"].cursor() as held:
        held.execute("select pg_try_advisory_lock(%s)", [KEY])
    pglock.advisory(JOB, timeout=0, using="journal").acquire()
    peers = {"django-pglock": lambda: not theirs.acquire()}
    yield Race(name, "refused", "pg_try_advisory_lock", refused, was_refused(name, ours, ""), peers)
    lease.release()
    connections["journal"].close()


def slot(world: World) -> Iterator[Race]:
    """Every election is of another job, for a slot is never given back. Those that are refused ask for one that is
    taken; slots are long here, so that none ends meanwhile.
    """
    ours, holder = (LOCKS["slot"](replace(world.ports(box=box), every=1e9)) for box in ("box-a", "box-b"))
    numbers, run = count(), str(uuid.uuid4())

    def floor() -> bool:
        return first(INSERT, f"floor-{next(numbers)}", "box-a", run, real_now())

    def refused() -> bool:
        return not first(INSERT, "held", "box-a", run, real_now()) and first(ELECTED, "held") == "box-b"

    def elected() -> bool:
        return ours.acquire(f"ours-{next(numbers)}", TTL).release().released is Released.OURS

    def passed_over() -> bool:
        return ours.acquire(JOB, TTL).holder == "box-b"

    yield Race("slot", "acquired", "INSERT ON CONFLICT DO NOTHING", floor, elected)
    first(INSERT, "held", "box-b", run, real_now())
    holder.acquire(JOB, HELD)
    yield Race("slot", "refused", "INSERT ON CONFLICT DO NOTHING, SELECT", refused, passed_over)


def rows(world: World) -> Iterator[Race]:
    """`skip-locked`: one order claimed and let go. What would happen to it in between is not measured."""
    lock, order = LOCKS["skip-locked"](world.ports()), an_order()

    def floor() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("begin")
            cursor.execute(CLAIM, [order.pk])
            claimed = cursor.fetchone()
            cursor.execute("commit")
        return claimed is not None

    def ours() -> bool:
        lease = lock.acquire(JOB, TTL)
        with lease.claim(order) as mine:
            claimed = mine
        lease.release()
        return claimed

    commands = "BEGIN, SELECT FOR UPDATE SKIP LOCKED, COMMIT"
    yield Race("skip-locked", "acquired", commands, floor, ours)
    with transaction.atomic("journal"):
        Order.objects.using("journal").select_for_update().get(pk=order.pk)
        yield Race("skip-locked", "refused", commands, lambda: not floor(), lambda: not ours())
    connections["journal"].close()


def an_order() -> Order:
    """Pending, of the one book there is."""
    press = Publisher.objects.create(name="Quayside Press")
    book = Book.objects.create(isbn="9780000000002", title="B", author="A", publisher=press, price_minor=1)
    return Order.objects.create(
        key=uuid.uuid4().hex, book=book, reference="bench", buyer="Ada", amount_minor=1, created_at=real_now()
    )
