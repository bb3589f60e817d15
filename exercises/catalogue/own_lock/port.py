"""What a lock may ask: a Redis in the laboratory, a clock, and chance. The statement lists the same."""

import hashlib
from collections.abc import Callable
from typing import Any

from exercises.catalogue.own_lock.watch import Watch
from exercises.handed.checks import Json, TheirsFailed
from exercises.lab.fibre import current
from exercises.lab.scheduler import LabError, at
from exercises.lab.servers.machine import EPOCH, MILLISECOND
from exercises.lab.steps import Mode, Step, Touch, touching
from exercises.scenarios.ports import RedisPort
from sweeper.locks.ports import Ports

DAY = 24 * 60 * 60 * 1000  # milliseconds, of an expiry at the most
FOR_EVER = 1000 * DAY  # what the laboratory's Redis is given for a key that has none; see `playing`
LONGEST = 200  # characters of a key, and of a value
# The first question of a release touches who holds, beside its key, so that every two let go in both orders. Two that
# lock by different keys meet in one of them: whoever waits to let go while another does all of its run held on.
HOLDING = "holding"
READS = ("get",)
# What each is called, and what it is given; the milliseconds of those in MAY_STAY may be left out.
QUESTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "set_if_absent": ("SET NX", ("key", "value", "milliseconds")),
    "set": ("SET", ("key", "value", "milliseconds")),
    "get": ("GET", ("key",)),
    "delete": ("DEL", ("key",)),
    "delete_if_equal": ("compare-and-delete", ("key", "value")),
    "expire_if_equal": ("compare-and-expire", ("key", "value", "milliseconds")),
}
MAY_STAY = ("set_if_absent", "set")
BESIDES = ("new_value", "now")  # asked of no server, so that nobody goes in between


class Asking:
    """One run's questions of one call. `letting_go` is called when the first of a release is about to be carried out.
    `removed`: whose key was removed, "ours" or "another’s"; empty, where none was.
    """

    def __init__(self, run: str, ports: Ports, watch: Watch, letting_go: Callable[[], None] | None = None) -> None:
        if not isinstance(ports.redis, RedisPort):
            raise LabError("A lock that was handed in is played in the laboratory alone.")
        self.run, self.ports, self.watch, self.letting_go = run, ports, watch, letting_go
        self.redis = ports.redis.server
        self.asked, self.removed = 0, ""

    def __call__(self, name: str, given: list[Json]) -> Json:
        """Raises TheirsFailed."""
        if name in BESIDES:
            _demand(name, given, ())
            return self._new_value() if name == "new_value" else self._time()
        if name not in QUESTIONS:
            raise TheirsFailed(f"Your lock asked {name[:40]!r}: a port has {', '.join((*QUESTIONS, *BESIDES))}.")
        command, takes = QUESTIONS[name]
        if name in MAY_STAY and len(given) == len(takes) - 1:
            given = [*given, None]
        _demand(name, given, takes)
        self._wait(f"redis {command} {given[0]}", given[0], Mode.READ if name in READS else Mode.WRITE)
        carried_out: Callable[..., Json] = getattr(self, f"_{name}")
        return carried_out(*given)

    def ends(self) -> None:
        """A release that asked nothing ends here, in a step of its own."""
        if not self.asked:
            self._wait("lets go, and asks nothing")

    def _wait(self, label: str, key: str = "", mode: Mode = Mode.READ) -> None:
        """For one's turn."""
        lets_go = self.letting_go is not None and not self.asked
        touched = touching([f"redis:{key}"] if key else [], mode)
        at(Step(label, touched | touching([HOLDING] if lets_go else [], Mode.WRITE)))
        self.asked += 1
        if self.letting_go is not None and lets_go:
            self.letting_go()

    # --- What each comes to ---

    def _set_if_absent(self, key: str, value: str, milliseconds: int | None = None) -> bool:
        done = self.redis.set_if_absent(key, value, milliseconds or FOR_EVER)
        if done:
            self.watch.writes(self.run, key)
        return done

    def _set(self, key: str, value: str, milliseconds: int | None = None) -> None:
        """One event: what was there goes in the step in which the new one comes."""
        self._meddles(key, self._there(key))
        self.redis.delete(key)
        self._set_if_absent(key, value, milliseconds)

    def _get(self, key: str) -> str | None:
        return self.redis.get(key)

    def _delete(self, key: str) -> bool:
        there = self._there(key)
        foreign = self._meddles(key, there)
        if there:
            self.removed = "another’s" if foreign else "ours"
        return self.redis.delete(key)

    def _delete_if_equal(self, key: str, value: str) -> bool:
        return self.redis.get(key) == value and self._delete(key)

    def _expire_if_equal(self, key: str, value: str, milliseconds: int) -> bool:
        self._meddles(key, self.redis.get(key) == value)
        return self.redis.expire_if_equal(key, value, milliseconds)

    def _meddles(self, key: str, there: bool) -> bool:
        """Whether it is somebody else's. Then it matters whether that one holds, which nobody knew before."""
        foreign = self.watch.meddles(self.run, key, there, self.ports.clock.now())
        if foreign and (fibre := current()) and fibre.next:
            fibre.next.besides.add(Touch(HOLDING, Mode.READ))
        return foreign

    def _there(self, key: str) -> bool:
        return self.redis.get(key) is not None

    def _new_value(self) -> str:
        """The same in every order, and no other run's."""
        return hashlib.sha256(f"{self.run} {self.ports.new_value()}".encode()).hexdigest()[:16]

    def _time(self) -> int:
        return (self.ports.clock.now() - EPOCH) // MILLISECOND


def _demand(name: str, given: list[Json], takes: tuple[str, ...]) -> None:
    """Raises TheirsFailed."""
    if len(given) != len(takes):
        raise TheirsFailed(f"Your lock asked {name} with {len(given)} values: it takes {', '.join(takes) or 'none'}.")
    for what, value in zip(takes, given, strict=True):
        if what == "milliseconds" and not _is_expiry(value, none=name in MAY_STAY):
            raise TheirsFailed(
                f"Your lock asked {name} with an expiry that is none: take whole milliseconds, a day at the most."
            )
        if what != "milliseconds" and not _is_text(value):
            raise TheirsFailed(
                f"Your lock asked {name} with a {what} that is none: take a text of 1 to {LONGEST} characters that "
                "can be printed."
            )


def _is_expiry(value: Any, none: bool) -> bool:
    """`none`: whether there may be none."""
    return (value is None and none) or (type(value) is int and 1 <= value <= DAY)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= LONGEST and value.isprintable()
