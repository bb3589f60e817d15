"""A pytest plugin with one fixture, `trial`: what must hold in every order in which functions can meet.

    pytest_plugins = ["exercises.lab.fixture"]  # in the project's topmost conftest.py

    def test_nobody_loses_a_count(trial):
        trial(set_up, {"a": count_one_up, "b": count_one_up}, wrong=one_was_lost).holds_in_every_order()

A failure shows the sentence, the order and a text, and `pytest --lab-replay TEXT` plays that one order again. It
stands on pytest-django and has a test database of its own, since rows are committed there: `lab_` before the name of
the project's, so each worker of pytest-xdist has one, kept and made anew as --reuse-db and --create-db say.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.backends.base.creation import BaseDatabaseCreation
from psycopg import IsolationLevel
from pytest_django import DjangoDbBlocker

from exercises.lab.database import Database
from exercises.lab.engine.base import DatabaseWrapper
from exercises.lab.scheduler import LabError
from exercises.lab.trial import Errors, Failure, Result, Trial

Described = dict[str, Any]  # one database, as Django's DATABASES has it
Wrong = Callable[[Errors], str | None]
OUTSIDE = ""  # the name under which a Database keeps the session of whoever is in no fibre


class NoLevel(LabError):
    """There is no such isolation level."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("the laboratory").addoption(
        "--lab-replay", metavar="TEXT", help="let `trial` play this one order again; name the one test as well"
    )


# --- The database -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def trial_database(
    django_db_blocker: DjangoDbBlocker,
    django_db_modify_db_settings: None,
    django_db_use_migrations: bool,
    django_db_keepdb: bool,
    django_db_createdb: bool,
) -> Iterator[Described]:
    """DATABASES["default"] with a test database of the laboratory's own, made and dropped as Django does it."""
    described = _described(django_db_use_migrations)
    with django_db_blocker.unblock(), _creation(described) as creation:
        described["NAME"] = creation.create_test_db(
            verbosity=0, autoclobber=True, serialize=False, keepdb=django_db_keepdb and not django_db_createdb
        )
    yield described
    if not django_db_keepdb:
        with django_db_blocker.unblock(), _creation(described) as creation:
            creation.destroy_test_db(verbosity=0)


def _described(migrations: bool) -> Described:
    """Where it is no Postgres, whoever asks for it fails."""
    vendor = connections[DEFAULT_DB_ALIAS].vendor
    if vendor != "postgresql":
        pytest.fail(f"The laboratory needs a real Postgres; DATABASES['default'] is {vendor}.", pytrace=False)
    default: Any = connections.settings[DEFAULT_DB_ALIAS]
    name = default["TEST"]["NAME"] or default["NAME"] or ""
    test = {**default["TEST"], "NAME": f"lab_test_{name.removeprefix('test_')}"}
    if not migrations:
        test["MIGRATE"] = False
    pooled = {option: value for option, value in default["OPTIONS"].items() if option != "pool"}
    return {**default, "TEST": test, "OPTIONS": pooled}


@contextmanager
def _creation(described: Described) -> Iterator[BaseDatabaseCreation]:
    """Django's own way to make and drop this database, which nobody has opened. The name that this writes into the
    settings is taken back: everybody else would find it there too.
    """
    default: Any = connections.settings[DEFAULT_DB_ALIAS]
    name, database = default["NAME"], Database(described)
    unopened = database.sessions[OUTSIDE] = DatabaseWrapper(database.described, DEFAULT_DB_ALIAS)
    try:
        with database.lent():
            yield unopened.creation
    finally:
        default["NAME"] = name


# --- The fixture --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """What a test says of some functions. Each of its words fails the test where it is not so, and else returns what
    was tried. Where one order is to be replayed, only that one is.
    """

    room: "Room"
    set_up: Callable[[], object]
    boxes: Mapping[str, Callable[[], object]]
    wrong: Wrong
    isolation: str | None
    replay: str | None

    def holds_in_every_order(self, *, reduced: bool = True, twice: bool = False) -> Result:
        """Not `reduced`: try also orders that differ only in steps that do not depend on each other. `twice`: play
        each again, and fail where anything reads time or chance by itself.
        """
        __tracebackhide__ = True
        return self._holds(None, reduced, twice)

    def holds_in(self, most: int, *, reduced: bool = True, twice: bool = False) -> Result:
        """In the first `most` orders: where there are more than there is time for."""
        __tracebackhide__ = True
        return self._holds(most, reduced, twice)

    def fails_in_some_order(self, most: int | None = None, *, reduced: bool = True, twice: bool = False) -> Result:
        """Of those first `most`, or of all: for the guard that must be there, taken away."""
        __tracebackhide__ = True
        result = self._tried(most, reduced, twice)
        if result.holds:
            pytest.fail("This order was to fail, and it holds." if self.replay else f"Fails nowhere. {result.told}")
        return result

    def _holds(self, most: int | None, reduced: bool, twice: bool) -> Result:
        __tracebackhide__ = True
        result = self._tried(most, reduced, twice)
        if failure := result.shortest:
            told = result.told if self.replay is None else f"{failure.why}\nin this order:\n\n{failure.told}"
            pytest.fail(f"{told}\n{self.room.again(failure)}")
        return result

    def _tried(self, most: int | None, reduced: bool, twice: bool) -> Result:
        __tracebackhide__ = True

        def tried(trial: Trial) -> Result:
            if self.replay is None:
                return trial.explore(most=most, reduced=reduced, twice=twice)
            failure = trial.replay(self.replay)
            return Result(schedules=1, failures=int(failure is not None), shortest=failure)

        return self.room.work(self, tried)


@dataclass(frozen=True)
class Room:
    """The laboratory, as one test has it: calling it is what the fixture is for."""

    described: Described = field(repr=False)  # a password is in it, and pytest shows what a test was given
    blocker: DjangoDbBlocker = field(repr=False)
    test: str  # its name for pytest
    replay: str | None
    untried: list[Claim] = field(default_factory=list, repr=False)

    def __call__(
        self,
        set_up: Callable[[], object],
        boxes: Mapping[str, Callable[[], object]],
        wrong: Wrong,
        *,
        isolation: str | None = None,
        may_raise: tuple[type[BaseException], ...] = (),
        replay: str | None = None,
    ) -> Claim:
        """`wrong` returns why an order ended badly, or asserts that it did not. An order also ends badly where a
        function raised what is no error of the database's and none of `may_raise`. `isolation`: "read committed",
        "repeatable read", "serializable"; else as the settings have it. `replay`: this one order only.
        """
        claim = Claim(self, set_up, boxes, _judge(wrong, may_raise), isolation, self.replay or replay)
        self.untried.append(claim)
        return claim

    def work(self, claim: Claim, tried: Callable[[Trial], Result]) -> Result:
        """With the database emptied and lent. The laboratory's errors fail the test with their sentence; others are
        the test's own and keep their traceback, but for the laboratory's part of it.
        """
        __tracebackhide__ = True
        self.untried[:] = [other for other in self.untried if other is not claim]
        try:
            database = Database(_at_level(self.described, claim.isolation))
            with self.blocker.unblock(), database.lent():
                call_command("flush", verbosity=0, interactive=False)
                return tried(Trial(database, claim.set_up, claim.boxes, claim.wrong))
        except LabError as error:
            failed: BaseException = pytest.fail.Exception(str(error))
        except Exception as error:
            failed = error.with_traceback(_without_ours(error.__traceback__))
        raise failed

    def again(self, failure: Failure) -> str:
        return f"again:  pytest {shlex.quote(self.test)} --lab-replay {shlex.quote(str(failure.schedule))}"


@pytest.fixture
def trial(
    request: pytest.FixtureRequest, trial_database: Described, django_db_blocker: DjangoDbBlocker
) -> Iterator[Room]:
    """`trial(set_up, {"a": one, "b": another}, wrong=why).holds_in_every_order()`."""
    replay = request.config.getoption("--lab-replay", default=None)
    room, failed = Room(trial_database, django_db_blocker, request.node.nodeid, replay), request.session.testsfailed
    yield room
    if room.untried and request.session.testsfailed == failed:
        pytest.fail("A trial was made and nothing claimed of it: say .holds_in_every_order() of it.", pytrace=False)


def _judge(wrong: Wrong, may_raise: tuple[type[BaseException], ...]) -> Wrong:
    def why(errors: Errors) -> str | None:
        try:
            found = wrong(errors)
        except AssertionError as broken:
            return str(broken) or "an assertion does not hold"
        died = (
            f"{name} ended with {type(error).__name__}: {error}"
            for name, error in errors.items()
            if not isinstance(error, (Error, *may_raise))
        )
        return found or next(died, None)

    return why


def _at_level(described: Described, name: str | None) -> Described:
    """Raises NoLevel."""
    if name is None:
        return described
    levels = {level.name.lower().replace("_", " "): level for level in IsolationLevel}
    if name not in levels:
        raise NoLevel(f"There is no isolation level {name!r}: take one of {', '.join(levels)}.")
    return {**described, "OPTIONS": {**described["OPTIONS"], "isolation_level": levels[name]}}


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    if trace is None:
        return None
    rest = _without_ours(trace.tb_next)
    if str(trace.tb_frame.f_globals.get("__name__")).startswith(f"{__package__}."):
        return rest
    return TracebackType(rest, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
