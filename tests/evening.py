"""A Wednesday made by hand: the rows that the shop that shipped leaves behind, put in through the models.

Two boxes, `redis-naive` and `unguarded`, from 21:50:00 with fourteen rows; box A's clock is read as being three
seconds late, so its second run starts at 21:52:03. On Friday the two phantom copies are sold and somebody counts.
"""

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from exercises.models import Performance
from shop.isbn import check_digit
from shop.models import Book, Order, Publisher, Settlement, StockCount, StockMovement
from sweeper import verdict
from sweeper.models import Event, SweepRun

START = datetime(2026, 2, 11, 21, 50, tzinfo=UTC)
FRIDAY = datetime(2026, 2, 13, 9, 0, tzinfo=UTC)
CURTAIN = datetime(2026, 12, 1, 19, 0, tzinfo=UTC)  # when it was played, in real time, at twenty times its speed
NOVEL = "The Salt Road North"
SHELF = [
    ("A Field Guide to Weather", "Ilse Brandt"),
    ("Bread for Two", "Tomasz Wilk"),
    ("Clockmakers of the Fen", "Harriet Obi"),
    ("Dust and Ordnance", "R. J. Pell"),
    ("Eleven Harbours", "Mina Castellano"),
    ("Fugue for Small Hands", "Ewan Strand"),
    ("Gardens Without Water", "Lucía Prado"),
    ("Half the Orchard", "Benedikt Aas"),
    ("In the Margins", "Yara Haddad"),
    ("Juniper and Rye", "Colm Devane"),
    ("Kestrels at Dusk", "Anneke Vries"),
    ("Letters to a Cartographer", "Samuel Ito"),
]


@dataclass
class Wednesday:
    """What was made, by name."""

    novel: Book
    orders: list[Order] = field(default_factory=list)
    runs: dict[str, SweepRun] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    settlements: list[Settlement] = field(default_factory=list)
    performance: Performance | None = None

    def tell(self, run: SweepRun, *what: object, **data: object) -> None:
        self.events.append(told(run, *what, **data))

    def save(self) -> None:
        """Write the journal and the settlements, all at once."""
        Event.objects.bulk_create(self.events)
        Settlement.objects.bulk_create(self.settlements)


def isbn(number: int) -> str:
    twelve = f"978{number:09d}"
    return twelve + check_digit(twelve)


def at(clock: str) -> datetime:
    """A time of that evening: `21:52:03`."""
    return datetime.fromisoformat(f"2026-02-11T{clock}+00:00")


def real(moment: datetime) -> datetime:
    return CURTAIN + (moment - START) / 20


def books(number: int, first: int = 1000) -> list[Book]:
    """So many books whose shelf agrees with the catalogue: three copies received, three in stock."""
    house, _ = Publisher.objects.get_or_create(name="Quayside Press")
    made = Book.objects.bulk_create(
        Book(
            isbn=isbn(first + n),
            title=SHELF[n][0] if n < len(SHELF) else f"Collected Proceedings, volume {n}",
            author=SHELF[n][1] if n < len(SHELF) else "The Society",
            publisher=house,
            price_minor=899 + 50 * (n % 40),
            stock=3,
        )
        for n in range(number)
    )
    StockMovement.objects.bulk_create(
        StockMovement(book=book, kind="received", copies=3, at=START - timedelta(days=30)) for book in made
    )
    return made


def play(others: int = 12, title: str = NOVEL, lost: bool = False) -> Wednesday:
    """The whole evening, and Friday. `others` (at least 12) are books that agree; `lost` takes a copy from one."""
    house, _ = Publisher.objects.get_or_create(name="Lantern & Finch")
    novel = Book.objects.create(
        isbn=isbn(1), title=title, author="Oona Marchetti", publisher=house, price_minor=1299, stock=2
    )
    StockMovement.objects.create(book=novel, kind="received", copies=2, at=START - timedelta(days=20))
    evening = Wednesday(novel)
    stocked = books(others)
    _hold(evening, stocked)
    _box_b(evening)
    _box_a(evening)
    _afterwards(evening)
    _friday(evening)
    evening.save()
    evening.performance = Performance.objects.create(
        scenario="wednesday",
        lock="redis-naive",
        settle="unguarded",
        question="lookup",
        began_at=START,
        ended_at=at("21:58:00"),
        real_at=CURTAIN,
        verdict=verdict.read(lock="redis-naive", settle="unguarded", question="lookup"),
    )
    if lost:
        Book.objects.filter(pk=stocked[-1].pk).update(stock=2)
    return evening


def _hold(evening: Wednesday, stocked: list[Book]) -> None:
    """Fourteen orders, one every 250 s from 20:52:30; the last two are the novel."""
    for row in range(1, 15):
        book = stocked[row - 1] if row <= 12 else evening.novel
        settled = START + timedelta(seconds=10 * row)
        evening.orders.append(
            Order(
                reference=f"WED-{row:02d}",
                key=f"key-{uuid.uuid5(uuid.NAMESPACE_URL, f'wed{row}')}",
                book=book,
                buyer=f"Buyer {row}",
                amount_minor=book.price_minor,
                status="abandoned",
                created_at=at("20:52:30") + timedelta(seconds=250 * (row - 1)),
                settled_at=settled if row <= 12 else settled + timedelta(seconds=3),
                settled_by_box="box-b" if row <= 12 else "box-a",
            )
        )
    Order.objects.bulk_create(evening.orders)


def run(box: str, start: datetime, state: str = "finished", name: str = "", **values: object) -> SweepRun:
    """One run, without its events."""
    number = uuid.uuid5(uuid.NAMESPACE_URL, f"{box} {start.isoformat()} {name}")
    values = {"lock": "redis-naive", "settle": "unguarded", "question": "lookup", **values}
    return SweepRun.objects.create(
        run=number, message=f"message-{number}", box=box, started_at=start, state=state, **values
    )


def told(run: SweepRun, moment: datetime, kind: str, order: str = "", answer: str = "", **data: object) -> Event:
    """One line of the journal, not yet saved."""
    return Event(
        uid=uuid.uuid4(),
        run=run,
        at=moment,
        real_at=real(moment),
        box=run.box,
        kind=kind,
        order=order,
        answer=answer,
        data=data,
    )


def _started(evening: Wednesday, run: SweepRun) -> None:
    evening.tell(run, run.started_at, "started", message=run.message)


def _sweep(evening: Wednesday, run: SweepRun, rows: list[int]) -> None:
    """Ten seconds a row: asked, answered no, released."""
    moment = run.started_at
    listed = [evening.orders[row - 1].reference for row in rows]
    evening.tell(run, moment, "listed", rows=len(rows), orders=listed)
    for row in rows:
        order = evening.orders[row - 1]
        evening.tell(run, moment, "asked", order.reference, question="lookup")
        moment += timedelta(seconds=10)
        evening.tell(run, moment, "answered", order.reference, "no", why="no money has moved")
        evening.tell(run, moment, "settling", order.reference, outcome="released")
        evening.settlements.append(
            Settlement(
                order=order, outcome="released", form="unguarded", box=run.box, run=run.run, at=moment, copies_back=1
            )
        )
        evening.tell(run, moment, "settled", order.reference, outcome="released")
    Order.objects.filter(reference__in=listed).update(settled_by_run=run.run)


def _box_b(evening: Wednesday) -> None:
    long = run(
        "box-b",
        START,
        acquired_at=START,
        lease_until=START + timedelta(seconds=120),
        ended_at=at("21:52:20"),
        rows=14,
        settled=14,
    )
    evening.runs["b"] = long
    _started(evening, long)
    evening.tell(long, START, "acquired", holder="box-b", deadline=long.lease_until.isoformat())
    _sweep(evening, long, list(range(1, 15)))
    evening.tell(long, at("21:52:20"), "released", released="unknown", deleted=True)
    evening.tell(long, at("21:52:20"), "finished", settled=14)


def _refused(evening: Wednesday, box: str, moment: datetime, holder: str) -> SweepRun:
    turned_away = run(box, moment, "refused", ended_at=moment)
    _started(evening, turned_away)
    evening.tell(turned_away, moment, "refused", holder=holder)
    return turned_away


def _box_a(evening: Wednesday) -> None:
    evening.runs["a refused"] = _refused(evening, "box-a", at("21:50:03"), "box-b")
    start = at("21:52:03")
    second = run(
        "box-a",
        start,
        acquired_at=start,
        lease_until=start + timedelta(seconds=120),
        ended_at=at("21:52:23"),
        rows=2,
        settled=2,
    )
    evening.runs["a"] = second
    _started(evening, second)
    evening.tell(second, start, "acquired", holder="box-a", deadline=second.lease_until.isoformat())
    _sweep(evening, second, [13, 14])
    evening.tell(second, at("21:52:23"), "released", released="not_ours", deleted=False)
    evening.tell(second, at("21:52:23"), "finished", settled=2)
    evening.runs["b refused"] = _refused(evening, "box-b", at("21:52:00"), "box-b")


def _afterwards(evening: Wednesday) -> None:
    """Two quiet cycles: box B sweeps an empty list, box A is turned away."""
    for clock in ("21:54:00", "21:56:00"):
        moment = at(clock)
        until = moment + timedelta(seconds=120)
        quiet = run(
            "box-b", moment, acquired_at=moment, lease_until=until, ended_at=moment + timedelta(seconds=1), rows=0
        )
        _started(evening, quiet)
        evening.tell(quiet, moment, "acquired", holder="box-b", deadline=until.isoformat())
        evening.tell(quiet, moment, "listed", rows=0, orders=[])
        evening.tell(quiet, quiet.ended_at, "released", released="unknown", deleted=True)
        evening.tell(quiet, quiet.ended_at, "finished", settled=0)


def _friday(evening: Wednesday) -> None:
    """The two phantom copies' twins are sold and shipped; somebody looks at the shelf."""
    for number in (1, 2):
        sold = FRIDAY + timedelta(minutes=20 * number)
        order = Order.objects.create(
            reference=f"FRI-{number:02d}",
            key=f"key-friday-{number}",
            book=evening.novel,
            buyer=f"Friday's buyer {number}",
            amount_minor=evening.novel.price_minor,
            status="dispatched",
            created_at=sold,
            settled_at=sold + timedelta(seconds=1),
            settled_by_box="web",
            dispatched_at=sold + timedelta(hours=1),
            dispatched_by="packing staff",
        )
        evening.settlements.append(
            Settlement(order=order, outcome="completed", form="guarded", box="web", at=order.settled_at)
        )
        StockMovement.objects.create(
            book=evening.novel, kind="dispatched", copies=1, order=order, at=order.dispatched_at
        )
        evening.orders.append(order)
    StockCount.objects.create(
        book=evening.novel, copies=0, counted_by="Friday's shift", at=FRIDAY + timedelta(hours=2)
    )
