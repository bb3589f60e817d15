"""The Wednesday on which the catalogue came to promise copies that no shelf held.

Both accounts of that evening are true together: the held copies that went back twice were rows 13 and 14, and both
were the same novel, so two held copies went back as four; two were sold and shipped on the Friday, and the catalogue
went on promising two.

From 21:50:00 the fourteen rows lie there already. From 20:50:00 they come about by themselves: one checkout in five
meets an answer that takes longer than the ten seconds it waits.

Live margins. Box A's clock is 3.5 virtual seconds behind box B's, and the clock is started 1.5 seconds past the
mark: so A comes two seconds after B, and B's key, set that moment after B's cron, outlives B's own next cron by it
and is gone when A asks.
Answers come 9.7 seconds apart: row 12 is settled well before A reads its list, row 13 well after, and a box that
takes its time between two questions is not put out of step by it.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from marlow.clock import StandingClock
from shop.checkout import hold
from shop.isbn import check_digit
from shop.models import Book, Order, Publisher, Settlement, StockCount, StockMovement

NAME = "wednesday"
START = datetime(2026, 2, 11, 21, 50, tzinfo=UTC)  # Europe/London is on UTC in February
START_OF_EVENING = datetime(2026, 2, 11, 20, 50, tzinfo=UTC)
LAST_SLOT = datetime(2026, 2, 11, 21, 51, 50, tzinfo=UTC)  # runs that start from here on are those of 21:52
CURTAIN = datetime(2026, 2, 11, 21, 52, 30, tzinfo=UTC)  # earliest end: every run of 21:52 has had its time
AFTERMATH = datetime(2026, 2, 11, 22, 10, tzinfo=UTC)  # where something fails, the last messages come then
LAST_CURTAIN = datetime(2026, 2, 11, 21, 53, 55, tzinfo=UTC)  # the clock stops before the boxes fire again
FRIDAY = datetime(2026, 2, 13, 10, 0, tzinfo=UTC)
STARTS = {"21:50": START, "20:50": START_OF_EVENING}

CLOCK_OFFSETS = {"box-a": -3.5, "box-b": 0.0}  # virtual seconds
AHEAD = 1.5  # virtual seconds past the start at which the clock begins to run
ROWS = 14
FIRST_ROW = datetime(2026, 2, 11, 20, 52, 30, tzinfo=UTC)
ROW_EVERY = timedelta(seconds=250)
ORDER_EVERY = 50.0  # virtual seconds between two checkouts
ANSWER_SLOW = 14.0  # virtual seconds: well past the ten the client waits, also for a client that wakes late
JUST_INSIDE = {"mode": "slow", "latency": 8.0, "spacing": 9.7}  # the client waits ten
NOVEL = "The Lighthouse Ledger"

CATALOGUE = [
    # title, author, publisher, price in pence, copies beside those the evening will hold
    ("A Field Guide to Fog", "Ines Okafor", "Saltmarsh Press", 1499, 9),
    ("Bread for Nightwatchmen", "Tomas Veld", "Saltmarsh Press", 1250, 7),
    ("The Quiet Ferry", "Marian Holt", "Lantern House", 999, 12),
    ("Seventeen Kinds of Rain", "Yusuf Adeyemi", "Lantern House", 1099, 5),
    ("Letters to a Lock-keeper", "Clara Brandt", "Pelican Lane", 1350, 8),
    ("An Atlas of Small Islands", "Peter Nakamura", "Pelican Lane", 2400, 3),
    ("The Clockmaker's Sister", "Ada Lindqvist", "Saltmarsh Press", 1199, 10),
    ("How to Fold a River", "Wen Zhao", "Lantern House", 899, 6),
    ("Winter Timetables", "Owen Pryce", "Pelican Lane", 1050, 4),
    ("The Beekeeper's Index", "Leila Haddad", "Saltmarsh Press", 1599, 11),
    ("Songs from the Sorting Office", "Dermot Kane", "Lantern House", 1150, 7),
    ("Nine Ways Home", "Greta Solberg", "Pelican Lane", 1299, 9),
    (NOVEL, "Edith Marchmont", "Lantern House", 1299, 0),
    ("The Cartographer's Cat", "Hugo Bellamy", "Pelican Lane", 1399, 90),
]
BUYERS = ["R. Patel", "M. Jones", "S. Nowak", "A. Dubois", "K. Murphy", "L. Rossi", "T. Berg", "J. Cohen", "P. Silva"]


@dataclass(frozen=True)
class Stage:
    """The books as they stand before the evening, in the order of the rows that will hold them."""

    books: list[Book]

    def of_row(self, row: int) -> Book:
        """Rows 1 to 12 hold a book each, rows 13 and 14 the novel's two copies."""
        return self.books[min(row, 13) - 1]

    @property
    def bestseller(self) -> Book:
        return self.books[13]


def isbn_of(place: int) -> str:
    """A well-formed ISBN-13 for the place-th book of the catalogue; its registrant element is made up."""
    twelve = f"97800000{place:04d}"
    return twelve + check_digit(twelve)


def furnish(until: datetime) -> Stage:
    """Fill an empty shop with its books, and some trade of the days before. Same shop every time."""
    chance = random.Random("a wet January")  # noqa: S311  figures for show, the same each time
    publishers = {name: Publisher.objects.create(name=name) for name in sorted({line[2] for line in CATALOGUE})}
    books = []
    for place, (title, author, publisher, price, spare) in enumerate(CATALOGUE, start=1):
        held = 2 if title == NOVEL else 1
        book = Book.objects.create(
            isbn=isbn_of(place),
            title=title,
            author=author,
            publisher=publishers[publisher],
            price_minor=price,
            stock=spare + held,
        )
        books.append(book)
        sold = chance.randint(1, 4)
        _receive(book, spare + held + sold, until - timedelta(days=20, minutes=place))
        for copy in range(sold):
            _sell_and_ship(book, until - timedelta(days=2 + copy, minutes=7 * place), f"J-{place:02d}{copy:02d}")
        StockCount.objects.create(
            book=book, copies=spare + held, counted_by="the founder", at=until - timedelta(hours=30)
        )
    return Stage(books)


def seed_rows(stage: Stage) -> list[Order]:
    """The fourteen pending orders of 21:50:00, each held by the checkout's own first half at its own moment."""
    return [
        hold(
            stage.of_row(row),
            BUYERS[row % len(BUYERS)],
            StandingClock(FIRST_ROW + (row - 1) * ROW_EVERY),
            key=f"wednesday-row-{row:02d}",
            reference=f"W-{row:02d}",
        )
        for row in range(1, ROWS + 1)
    ]


def provider_control(start: datetime) -> dict[str, Any]:
    """How the provider behaves from `start` on: every fifth charge and every question too slow, then just inside."""
    slow = {"mode": "slow", "latency": ANSWER_SLOW}
    if start == START:
        return {"default": JUST_INSIDE}
    return {
        "default": {"mode": "fast"},
        "charge": {**slow, "every": 5, "first": 3},
        "lookup": slow,
        "cancel": slow,
        "schedule": [{"at": START.isoformat(), "default": JUST_INSIDE}],
    }


def evening_orders(stage: Stage) -> Iterator[tuple[datetime, Book, str, str]]:
    """(when, book, buyer, reference) of every checkout from 20:50:00 on, one each fifty seconds, without an end.

    Every fifth is the one that will time out; those hold the books of the seeded rows, in the same order.
    """
    place, row = 0, 0
    while True:
        when = START_OF_EVENING + timedelta(seconds=ORDER_EVERY * place)
        timing_out = place % 5 == 3
        row += timing_out
        book = stage.of_row(row) if timing_out and row <= ROWS else stage.bestseller
        yield when, book, BUYERS[place % len(BUYERS)], f"W-{row:02d}" if timing_out else f"E-{place:03d}"
        place += 1


def _receive(book: Book, copies: int, at: datetime) -> None:
    StockMovement.objects.create(book=book, kind=StockMovement.Kind.RECEIVED, copies=copies, at=at)


def _sell_and_ship(book: Book, at: datetime, reference: str) -> None:
    """An order of the days before, long done: written as it then stood."""
    settled, shipped = at + timedelta(seconds=1), at + timedelta(hours=14)
    order = Order.objects.create(
        reference=reference,
        key=f"earlier-{reference}",
        book=book,
        buyer="an earlier reader",
        amount_minor=book.price_minor,
        status=Order.Status.DISPATCHED,
        created_at=at,
        settled_at=settled,
        settled_by_box="web",
        dispatched_at=shipped,
        dispatched_by="the founder",
    )
    Settlement.objects.create(
        order=order, outcome=Settlement.Outcome.COMPLETED, form="guarded", box="web", at=settled
    )
    StockMovement.objects.create(book=book, kind=StockMovement.Kind.DISPATCHED, copies=1, order=order, at=shipped)
