"""The lock that was handed in, as one of the sweeper's strategies: its program asks, and this box's Redis answers.

What a run did to the keys is watched here, on the judge's side: whose key a run deleted, nothing of theirs can say.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

from exercises.handed.checks import CouldNotDecide, Json, Program, Room, Talk, TheirsFailed
from exercises.lab.database import Database
from exercises.scenarios.boxes import ALL_LOCKS
from sweeper.locks.base import Lease, Lock, Refusal, Release, Released
from sweeper.locks.ports import Ports

NAME = "yours"
LONGEST = 200  # characters of a key or a value
PATIENT = 20  # questions of one call
EXPIRY = 86_400_000  # milliseconds, at the most: a day
# What each question is given, in order.
QUESTIONS: dict[str, tuple[str, ...]] = {
    "set_if_absent": ("key", "value", "milliseconds"),
    "set": ("key", "value", "milliseconds"),
    "get": ("key",),
    "delete": ("key",),
    "delete_if_equal": ("key", "value"),
    "expire_if_equal": ("key", "value", "milliseconds"),
    "box": (),
    "new_value": (),
}


class Watch:
    """Of one play after another: who set each key last, what was deleted by another, what a program failed of."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.begin()
        self._talks: dict[str, ExitStack] = {}

    def begin(self) -> None:
        """Nothing has happened yet."""
        self.setters: dict[str, str] = {}
        self.foreign = 0
        self.failed: list[str] = []
        self.undecided = ""

    def talk(self, run: str) -> Talk:
        """A new copy of the program; one that an abandoned run of this name left is ended."""
        self.end(run)
        self._talks[run] = stack = ExitStack()
        return stack.enter_context(self.program.start())

    def end(self, run: str) -> None:
        if stack := self._talks.pop(run, None):
            stack.close()

    def close(self) -> None:
        for run in list(self._talks):
            self.end(run)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """What a program fails of is the run's end, and is told by the check."""
        try:
            yield
        except TheirsFailed as failed:
            self.failed.append(str(failed))
            raise
        except CouldNotDecide as undecided:
            self.undecided = self.undecided or str(undecided)
            raise


class TheirPort:
    """One run's way to its box's Redis. Raises TheirsFailed for what is no question."""

    def __init__(self, ports: Ports, watch: Watch) -> None:
        self.ports, self.watch = ports, watch
        self.deleted = self.foreign = False
        self.asked = 0

    def ask(self, name: str, given: list[Json]) -> Json:
        self.asked += 1
        if self.asked > PATIENT:
            raise TheirsFailed(f"Your lock asked more than {PATIENT} questions in one call: try once, and say no.")
        wanted = QUESTIONS.get(name)
        if wanted is None:
            raise TheirsFailed(f"Your lock asked {name[:40]!r}: a port has {', '.join(QUESTIONS)}.")
        if len(given) != len(wanted):
            raise TheirsFailed(
                f"Your lock asked {name} with {len(given)} values: it takes {', '.join(wanted) or 'none'}."
            )
        for what, value in zip(wanted, given, strict=True):
            _demand(name, what, value)
        answer: Json = getattr(self, f"_{name}")(*given)
        return answer

    def _set_if_absent(self, key: str, value: str, milliseconds: int) -> bool:
        done = self.ports.redis.set_if_absent(key, value, milliseconds / 1000)
        if done:
            self.watch.setters[key] = self.ports.run
        return done

    def _set(self, key: str, value: str, milliseconds: int) -> None:
        """One event: the key that was there goes in the same step in which the new one comes."""
        redis: Any = self.ports.redis
        redis.server.delete(key) if redis.server.up else None
        self._set_if_absent(key, value, milliseconds)

    def _get(self, key: str) -> str | None:
        return self.ports.redis.get(key)

    def _delete(self, key: str) -> bool:
        return self._gone(key, self.ports.redis.delete(key))

    def _delete_if_equal(self, key: str, value: str) -> bool:
        return self._gone(key, self.ports.redis.delete_if_equal(key, value))

    def _expire_if_equal(self, key: str, value: str, milliseconds: int) -> bool:
        return self.ports.redis.expire_if_equal(key, value, milliseconds / 1000)

    def _box(self) -> str:
        return self.ports.box

    def _new_value(self) -> str:
        return f"{self.ports.box}:{self.ports.new_value()}"

    def _gone(self, key: str, deleted: bool) -> bool:
        if deleted:
            self.deleted = True
            if self.watch.setters.pop(key, self.ports.run) != self.ports.run:
                self.foreign = True
                self.watch.foreign += 1
        return deleted


def _demand(name: str, what: str, value: Json) -> None:
    """Raises TheirsFailed."""
    if what == "milliseconds":
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= EXPIRY:
            raise TheirsFailed(
                f"Your lock asked {name} with an expiry that is none: take whole milliseconds, a day at the most."
            )
    elif not isinstance(value, str) or not 0 < len(value) <= LONGEST:
        raise TheirsFailed(
            f"Your lock asked {name} with a {what} that is none: take a text of 1 to {LONGEST} characters."
        )


class TheirLease(Lease):
    def __init__(self, ports: Ports, watch: Watch, name: str, talk: Talk, ttl: float) -> None:
        super().__init__(ports.box, clock=ports.clock, deadline=ports.clock.now() + timedelta(seconds=ttl))
        self.run, self.watch, self.name, self.talk = ports.run, watch, name, talk
        self.port = TheirPort(ports, watch)

    def let_go(self) -> Release:
        with self.watch.noting():
            self.talk.call("release", [self.name], self.port.ask)
        self.watch.end(self.run)
        if self.port.foreign:
            return Release(Released.UNKNOWN, deleted=True)
        return Release(Released.OURS if self.port.deleted else Released.NOT_OURS, deleted=self.port.deleted)


class TheirLock(Lock):
    """Promises whatever its author does. `watch` is set by whoever plays it."""

    name = NAME
    excludes = True
    mints_token = False
    expires = True
    outlives_holder = True
    server = "redis"
    watch: Watch

    def acquire(self, name: str, ttl: float) -> Lease | Refusal:
        watch, ports = self.watch, self.ports
        with watch.noting():
            talk = watch.talk(ports.run)
            said = talk.call("acquire", [name, int(ttl * 1000)], TheirPort(ports, watch).ask)
            if not isinstance(said, bool):
                raise TheirsFailed(f"Your acquire returned {str(said)[:40]!r}: return True or False.")
        if said:
            return TheirLease(ports, watch, name, talk, ttl)
        watch.end(ports.run)
        return Refusal()


@contextmanager
def playing(room: Room, source: str) -> Iterator[tuple[Database, Watch]]:
    """The laboratory, where the lock `yours` is this program. Raises TheirsFailed, CouldNotDecide."""
    with room.python(source, "Lock") as program, room.laboratory() as database:
        watch = Watch(program)
        ALL_LOCKS[NAME] = type("Yours", (TheirLock,), {"watch": watch})
        try:
            yield database, watch
        finally:
            del ALL_LOCKS[NAME]
            watch.close()


__all__: Sequence[str] = ["NAME", "Watch", "playing"]
