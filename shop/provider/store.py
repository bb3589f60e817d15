"""The provider's memory: one SQLite file that outlives the process.

A charge is one row under its key, and the key is the primary key: whatever arrives together, one row decides. A row
is landed, declined or barred for good; a pending one (its money moves later) becomes one of the three.

WAL with synchronous=NORMAL: a commit survives the death of the process at any moment (kill -9); a power cut may take
the last ones. A simulator on one machine can live with that, and a commit then costs well under a millisecond. What
costs tens of them is the fsync of a checkpoint, so SQLite does none by itself: see `Store.checkpoint`.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from shop.provider.modes import Control, read_control


class Refused(Exception):
    """The store says no; its sentence says why. Nothing was changed. `code` is what the API answers."""

    code = "refused"


class AmountDiffers(Refused):
    """The key was used before, for another amount."""

    code = "amount_differs"


class KeyBarred(Refused):
    """The key was cancelled: no charge will ever land under it."""

    code = "key_barred"


class CardDeclined(Refused):
    """The card was declined, and stays declined under this key."""

    code = "card_declined"


class NoSuchCharge(Refused):
    """No money has moved under this key."""

    code = "no_such_charge"


class NothingToRefund(Refused):
    """More would go back than was charged."""

    code = "nothing_to_refund"


class RefundDiffers(Refused):
    """The refund's key was used before, for another charge or another amount."""

    code = "refund_differs"


@dataclass(frozen=True)
class Charge:
    """Money that moved, once. `refunded_minor` is how much of it has moved back."""

    key: str
    amount_minor: int
    reference: str
    landed_at: datetime
    refunded_minor: int = 0


@dataclass(frozen=True)
class Refund:
    """Money that moved back, once."""

    key: str
    charge_key: str
    amount_minor: int
    refunded_at: datetime


SCHEMA = """
create table if not exists charges (
    key text primary key,
    status text not null check (status in ('pending', 'landed', 'declined', 'barred')),
    amount_minor integer check (amount_minor > 0),
    reference text not null default '',
    due_at text check ((due_at is not null) = (status = 'pending')),
    landed_at text check ((landed_at is not null) = (status = 'landed')),
    check (status != 'landed' or amount_minor is not null)
) strict;
create index if not exists charges_due on charges (due_at) where status = 'pending';
create index if not exists charges_landed on charges (landed_at) where status = 'landed';
create table if not exists refunds (
    key text primary key,
    charge_key text not null references charges (key),
    amount_minor integer not null check (amount_minor > 0),
    refunded_at text not null
) strict;
create index if not exists refunds_charge on refunds (charge_key);
create table if not exists control (id integer primary key check (id = 1), body text not null) strict;
create table if not exists counts (
    phase integer not null,
    operation text not null,
    requests integer not null,
    primary key (phase, operation)
) strict;
"""

# In: key, amount, reference, status, due, landed. Writes the row if the key is new or still pending; no row back
# means that another status stands there for good and was left alone.
WRITE_CHARGE = """
insert into charges (key, amount_minor, reference, status, due_at, landed_at)
values (:key, :amount, :reference, :status, :due, :landed)
on conflict (key) do update set status = :status, due_at = :due, landed_at = :landed
where charges.status = 'pending' and :status != 'pending'
"""
# In: key. The row as it stands, or none for a key never seen.
READ_CHARGE = "select status, amount_minor from charges where key = :key"
# In: now. Lands every pending charge whose time has come; the row count says how many. `landed_at` is now and not the
# time it was due: after a crash, a landing dated back would be missed by a reader of `since` who is past that time.
LAND_DUE = """
update charges set status = 'landed', landed_at = :now, due_at = null where status = 'pending' and due_at <= :now
"""
# In: key. Bars a key that is new, pending or declined; a landed one is left alone.
BAR = """
insert into charges (key, status) values (:key, 'barred')
on conflict (key) do update set status = 'barred', due_at = null where charges.status in ('pending', 'declined')
"""
# In: key or null, since or null. Landed charges, oldest first, each with what has moved back.
LANDED = """
select key, amount_minor, reference, landed_at,
    (select coalesce(sum(amount_minor), 0) from refunds where charge_key = charges.key)
from charges
where status = 'landed' and (:key is null or key = :key) and (:since is null or landed_at >= :since)
order by landed_at, rowid
"""
# In: refund key. The refund as it was made, or none.
READ_REFUND = "select key, charge_key, amount_minor, refunded_at from refunds where key = :key"
# In: refund key, charge key, amount, now.
WRITE_REFUND = "insert into refunds values (:key, :charge_key, :amount, :now)"
# In: phase, operation. Counts one request; how many came before it.
COUNT = """
insert into counts values (:phase, :operation, 1)
on conflict (phase, operation) do update set requests = requests + 1
returning requests - 1
"""


class Store:
    """Charges, refunds and the control. Made and used in one thread; several stores may share one file.

    A method that writes is one transaction that takes the file's write lock first, so a charge and a cancel of one
    key come one after the other. Times are timezone-aware and virtual.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.db = sqlite3.connect(path, isolation_level=None, timeout=5.0)
        self.db.execute("pragma journal_mode = wal")
        self.db.execute("pragma synchronous = normal")
        self.db.execute("pragma wal_autocheckpoint = 0")
        self.db.execute("pragma foreign_keys = on")
        self.db.executescript(SCHEMA)

    def close(self) -> None:
        self.db.close()

    def changes(self) -> int:
        """How many rows this store has written so far."""
        return self.db.total_changes

    def checkpoint(self) -> None:
        """Fold the write-ahead log into the file without holding anybody up. From any thread."""
        with closing(sqlite3.connect(self.path, isolation_level=None, timeout=5.0)) as apart:
            apart.execute("pragma wal_checkpoint(passive)")

    def charge(self, key: str, amount_minor: int, reference: str, now: datetime) -> Charge:
        """Move the money once. Raise AmountDiffers, KeyBarred or CardDeclined."""
        with self._transaction():
            self._write(key, amount_minor, reference, "landed", landed=_text(now))
            return self._landed(key)

    def decline(self, key: str, amount_minor: int, reference: str) -> Charge:
        """Decline for good and raise CardDeclined; the charge, where the money had moved before."""
        with self._transaction(keep=CardDeclined):
            self._write(key, amount_minor, reference, "declined")
            return self._landed(key)

    def promise(self, key: str, amount_minor: int, reference: str, due: datetime) -> None:
        """Let the money move at `due`, unless a cancel comes first. Raise as `charge` does."""
        with self._transaction():
            self._write(key, amount_minor, reference, "pending", due=_text(due))

    def land_due(self, now: datetime) -> int:
        """Move the money of every promise whose time has come; how many there were."""
        with self._transaction():
            return self.db.execute(LAND_DUE, {"now": _text(now)}).rowcount

    def next_due(self) -> datetime | None:
        """When the next promise falls due; None where there is none."""
        [[due]] = self.db.execute("select min(due_at) from charges where status = 'pending'")
        return due and datetime.fromisoformat(due)

    def find(self, key: str) -> Charge:
        """Raise NoSuchCharge unless money has moved under this key."""
        return self._landed(key)

    def cancel(self, key: str) -> Charge | None:
        """The charge, where money had moved; None: the key is barred, and none ever will."""
        with self._transaction():
            self.db.execute(BAR, {"key": key})
            [[status, _]] = self.db.execute(READ_CHARGE, {"key": key})
            return self._landed(key) if status == "landed" else None

    def refund(self, charge_key: str, refund_key: str, amount_minor: int, now: datetime) -> Refund:
        """Move money back once for the refund's key. Raise NoSuchCharge, NothingToRefund or RefundDiffers."""
        with self._transaction():
            found = self.db.execute(READ_REFUND, {"key": refund_key}).fetchone()
            if found is None:
                self._check_refund(self._landed(charge_key), amount_minor)
                wanted = {"key": refund_key, "charge_key": charge_key, "amount": amount_minor, "now": _text(now)}
                self.db.execute(WRITE_REFUND, wanted)
                found = (refund_key, charge_key, amount_minor, _text(now))
        key, charged, amount, at = found
        refund = Refund(key, charged, amount, datetime.fromisoformat(at))
        if (refund.charge_key, refund.amount_minor) != (charge_key, amount_minor):
            raise RefundDiffers(f"Refund {refund_key} was made for another charge or another amount.")
        return refund

    def since(self, moment: datetime) -> list[Charge]:
        """Every charge landed at or after this time, oldest first."""
        rows = self.db.execute(LANDED, {"key": None, "since": _text(moment)})
        return [_charge(row) for row in rows]

    def control(self) -> Control:
        row = self.db.execute("select body from control").fetchone()
        return read_control(json.loads(row[0])) if row else Control()

    def set_control(self, control: Control) -> None:
        """Keep the control and start counting requests afresh."""
        with self._transaction():
            self.db.execute("insert or replace into control values (1, ?)", [json.dumps(control.body())])
            self.db.execute("delete from counts")

    def count(self, phase: int, operation: str) -> int:
        """Count one request of this phase; its number, from 0."""
        with self._transaction():
            [[number]] = self.db.execute(COUNT, {"phase": phase, "operation": operation})
            return int(number)

    def _write(self, key: str, amount: int, reference: str, status: str, due: str = "", landed: str = "") -> None:
        """Write the charge unless its key has been decided; raise for a key that can't land for this amount."""
        row = self.db.execute(READ_CHARGE, {"key": key}).fetchone()
        if row and row[0] == "barred":
            raise KeyBarred(f"Charge {key} was cancelled and will never land.")
        if row and row[1] != amount:
            raise AmountDiffers(f"Charge {key} was asked for {row[1]} before, not {amount}.")
        wanted = {"key": key, "amount": amount, "reference": reference, "status": status}
        self.db.execute(WRITE_CHARGE, {**wanted, "due": due or None, "landed": landed or None})
        [[stands, _]] = self.db.execute(READ_CHARGE, {"key": key})
        if stands == "declined":
            raise CardDeclined(f"The card was declined for charge {key}.")

    def _landed(self, key: str) -> Charge:
        row = self.db.execute(LANDED, {"key": key, "since": None}).fetchone()
        if row is None:
            raise NoSuchCharge(f"No such charge: {key}.")
        return _charge(row)

    def _check_refund(self, charge: Charge, amount: int) -> None:
        left = charge.amount_minor - charge.refunded_minor
        if amount > left:
            raise NothingToRefund(f"Of charge {charge.key} {left} is left, less than {amount}.")

    @contextmanager
    def _transaction(self, keep: type[Refused] | None = None) -> Iterator[None]:
        """Commit at the end; roll back for an exception, except `keep`, which is an outcome to remember."""
        self.db.execute("begin immediate")
        try:
            yield
        except BaseException as error:
            self.db.execute("commit" if keep and isinstance(error, keep) else "rollback")
            raise
        self.db.execute("commit")


def _charge(row: tuple[str, int, str, str, int]) -> Charge:
    key, amount, reference, landed_at, refunded = row
    return Charge(key, amount, reference, datetime.fromisoformat(landed_at), refunded)


def _text(moment: datetime) -> str:
    """Times in the store are UTC and of one width, so that they sort as text."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
