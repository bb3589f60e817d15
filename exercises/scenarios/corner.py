"""Two boxes and a few rows: small enough to try every order in which they can meet.

All rows hold copies of one novel, and none of their money ever moved, so whoever settles a row puts its copy back.
Every box fires twice, a lease apart; the second message comes a millisecond after a key of the first would be gone.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, connection

from exercises.lab.database import Database
from exercises.lab.scheduler import Policy, Scheduler, Stuck, Taken
from exercises.scenarios import oracles, wednesday
from exercises.scenarios.boxes import Box, Servers, Setting, Unplayable, as_told
from exercises.scenarios.faults import Fault
from exercises.scenarios.placed import Placed
from exercises.scenarios.provider import TIMEOUT
from exercises.scenarios.replay import CLEAR
from exercises.scenarios.strikes import Death, Strikes
from exercises.wrong_locks import APART, AdvisoryApart
from shop.models import Book, Publisher
from sweeper import verdict
from sweeper.events import Event

START = wednesday.START
JUST_AFTER = timedelta(milliseconds=1)
BOXES = "abcdefgh"
MOST = {"boxes": len(BOXES), "orders": 50, "messages": 10}


@dataclass(frozen=True)
class Corner:
    """What is explored. `latency`: virtual seconds from a question to its answer; 0: none, all in one moment."""

    setting: Setting
    boxes: int = 2
    orders: int = 2
    messages: int = 1
    latency: float = 0.0

    def __post_init__(self) -> None:
        for name, most in MOST.items():
            if not 1 <= getattr(self, name) <= most:
                raise Unplayable(f"{getattr(self, name)} {name} are not to be had: take from 1 to {most}.")
        if not 0 <= self.latency <= TIMEOUT:
            raise Unplayable(f"An answer after {self.latency:g} s is none: take from 0 to {TIMEOUT:g}.")

    @property
    def names(self) -> list[str]:
        return [f"box-{BOXES[number]}" for number in range(self.boxes)]


@dataclass(frozen=True)
class Played:
    """One order, and what it came to. `wrong` names what the oracles found, nothing where all is well; `met` are the
    faults that struck something.
    """

    taken: Sequence[Taken]
    verdict: dict[str, Any]
    wrong: tuple[str, ...]
    errors: dict[str, str]
    met: frozenset[Fault] = frozenset()
    places: Sequence[int] = ()  # of the verdict's events: how many steps came before each
    events: Sequence[Event] = ()  # the verdict's, as the journal had them
    deaths: Sequence[Death] = ()
    left: tuple[Any, ...] = ()  # the orders' states, and the charges that are due back or were given back

    @property
    def outcome(self) -> tuple[Any, ...]:
        """What two orders are compared by: the shop as it ends, and what the oracles say."""
        counts = ("phantom", "lost", "double_settles", "foreign_deletes")
        ends = (self.left, self.wrong, tuple(sorted(self.errors.values())))
        return (*(self.verdict[name] for name in counts), *ends)


def play(database: Database, corner: Corner, policy: Policy, faults: Sequence[Fault] = ()) -> Played:
    """Under this policy, with these faults. The database is the laboratory's, lent."""
    with furnished_with(corner.orders):
        scheduler = Scheduler(policy, START)
        servers, journal = Servers(scheduler), Placed(scheduler)
        servers.provider.latency = corner.latency
        boxes = {name: Box(name, 0.0, servers, corner.setting, journal) for name in corner.names}
        for message in range(corner.messages):
            moment = START + message * (timedelta(seconds=corner.setting.every) + JUST_AFTER)
            for box in boxes.values():
                database.session(name := box.cron(moment).name)
                if corner.setting.lock == AdvisoryApart.name:  # open beforehand, or it hung on the order before
                    database.session(f"{name} {APART}")
        strikes = Strikes(scheduler, database, boxes, servers, faults)
        strikes.lie_in_wait()
        stuck = ""
        try:
            scheduler.run()
        except Stuck as error:
            stuck = str(error)
        finally:
            database.tidy()
        counted, statuses, owed = _counted()
        told = verdict.on(journal.events, counted, **corner.setting.named)
    told["events"] = as_told(journal.events)
    errors = {fibre.name: type(fibre.error).__name__ for fibre in scheduler.fibres if fibre.error is not None}
    if stuck:
        errors["everybody"] = "Stuck"
    found = (
        *oracles.copies(told),
        *oracles.money(servers.provider, statuses, owed),
        *oracles.liveness(journal.events, strikes.deaths, corner.setting),
        *oracles.died(errors, struck=bool(faults)),
    )
    return Played(
        scheduler.taken,
        told,
        found,
        errors,
        strikes.met,
        journal.places,
        journal.events,
        strikes.deaths,
        (tuple(statuses.values()), tuple(owed)),
    )


# Out: the shop as a corner can leave it. Two that are alike in this are alike in what `verdict.counted` says.
STATE = """
select (select stock from shop_book where id = 1), (select count(*) from shop_stockmovement),
    (select array_agg(status::text order by id) from shop_order),
    (select array_agg(format('%s %s %s', order_id, outcome, copies_back) order by order_id, outcome, copies_back)
        from shop_settlement),
    (select array_agg(charge_key || ' ' || amount_minor order by charge_key) from shop_refund)
"""


def _counted() -> tuple[dict[str, int], dict[str, str], list[str]]:
    """The shop's own sums, done once for each state: they cost as much as the whole order that led there. And the
    orders' states by their charges' keys, and the keys of charges that are due back or were given back.
    """
    with connection.cursor() as cursor:
        cursor.execute(STATE)
        row = cursor.fetchone()
    state = repr(row)
    if state not in _known:
        _known[state] = verdict.counted()
    statuses = {f"row-{number}": status for number, status in enumerate(row[2], start=1)}
    return _known[state], statuses, [refund.partition(" ")[0] for refund in row[4] or ()]


_known: dict[str, dict[str, int]] = {}


@contextmanager
def furnished_with(orders: int) -> Iterator[None]:
    """Rows with the same ids every time: what a step touches is then called the same in every order."""
    if not _laid_out(orders):
        _furnish()
        _laid_out(orders)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(CLEAR_ROWS)


def _laid_out(orders: int) -> bool:
    """Not where there is no book to lay them out for, or where a killed exploration left something."""
    old = START - timedelta(minutes=10)
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"{BARE};{ROWS}", [wednesday.NOVEL, orders, old, old, orders])
            return bool(cursor.fetchone()[0])
    except IntegrityError:
        return False


# In: the book's title. Out: whether it is there, and nothing that a run writes beside its orders.
BARE = """
select exists (select from shop_book where id = 1 and title = %s) and not exists (select from shop_settlement)
    and not exists (select from shop_refund) and not exists (select from sweeper_jobrun)
    and not exists (select from shop_fence)
"""
# In: copies received, when; when the first order was made, how many. Nothing is left on the shelf: all are held.
ROWS = """
with emptied as (update shop_book set stock = 0 where id = 1),
received as (insert into shop_stockmovement (id, book_id, kind, copies, at)
    overriding system value values (1, 1, 'received', %s, %s))
insert into shop_order
    (id, reference, key, book_id, buyer, amount_minor, status, created_at, settled_by_box, dispatched_by)
    overriding system value
select number, 'row ' || number, 'row-' || number, 1, 'R. Patel', 1299, 'pending',
    %s::timestamptz + number * interval '1 second', '', ''
from generate_series(1, %s) number
"""
CLEAR_ROWS = (
    "delete from shop_settlement; delete from shop_refund; delete from sweeper_jobrun; delete from shop_fence;"
    "delete from shop_order; delete from shop_stockmovement"
)


def _furnish() -> None:
    """The one book, which stays from order to order, and nothing else."""
    with connection.cursor() as cursor:
        cursor.execute(CLEAR)
    publisher = Publisher.objects.create(pk=1, name="Lantern House")
    Book.objects.create(
        pk=1,
        isbn=wednesday.isbn_of(13),
        title=wednesday.NOVEL,
        author="Edith Marchmont",
        publisher=publisher,
        price_minor=1299,
        stock=0,
    )
