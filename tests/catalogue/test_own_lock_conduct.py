"""What a program does is learnt from it: each conversation once, and none that was not held."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from exercises.catalogue.own_lock import claims
from exercises.catalogue.own_lock.conduct import MOST, NOT_THE_SAME, TOO_MANY, Conduct, Copy
from exercises.catalogue.own_lock.orders import Failure, first_failure, without_turns
from exercises.catalogue.own_lock.playing import Went, known, play
from exercises.handed.checks import CouldNotDecide, Json, Port, Talk, TheirsFailed
from exercises.lab.policies import Staying
from exercises.lab.schedule import Schedule


class Asking:
    """As the sandbox's: what is asked of it is asked of whoever listens now."""

    port: Port

    def __getattr__(self, name: str) -> Any:
        return lambda *given: self.port(name, list(given))


class InProcess:
    """A program that is a class of this process."""

    def __init__(self, made: Any) -> None:
        self.made, self.started, self.open = made, 0, 0

    @contextmanager
    def start(self) -> Iterator[Talk]:
        self.started += 1
        self.open += 1
        port = Asking()
        instance = self.made(port)

        class Here:
            def call(self, name: str, arguments: Sequence[Json], asked: Port) -> Json:
                port.port = asked
                return getattr(instance, name)(*arguments)

        try:
            yield Here()
        finally:
            self.open -= 1


class Right:
    def __init__(self, port: Any) -> None:
        self.port = port

    def acquire(self, name: str, milliseconds: int) -> bool:
        self.value = self.port.new_value()
        return bool(self.port.set_if_absent(name, self.value, milliseconds))

    def release(self, name: str) -> None:
        self.port.delete_if_equal(name, self.value)


def answering(*answers: Json) -> tuple[list[tuple[str, list[Json]]], Port]:
    asked: list[tuple[str, list[Json]]] = []
    left = iter(answers)

    def port(name: str, given: list[Json]) -> Json:
        asked.append((name, given))
        return next(left)

    return asked, port


def test_a_copy_asks_what_its_program_asks_and_returns_what_it_returns() -> None:
    copy = Copy(Conduct(InProcess(Right)))
    asked, port = answering("v1", True, True)
    assert copy.call("acquire", ["sweeper", 9], port) is True
    assert copy.call("release", ["sweeper"], port) is None
    assert asked == [
        ("new_value", []),
        ("set_if_absent", ["sweeper", "v1", 9]),
        ("delete_if_equal", ["sweeper", "v1"]),
    ]


def test_what_was_said_once_is_not_asked_of_the_program_again() -> None:
    program = InProcess(Right)
    conduct = Conduct(program)
    for _ in range(3):
        copy = Copy(conduct)
        copy.call("acquire", ["sweeper", 9], answering("v1", False)[1])
    assert program.started == 3  # a question, another, and the answer
    Copy(conduct).call("acquire", ["sweeper", 9], answering("v2", False)[1])
    assert program.started == 5
    assert not program.open


def test_thousands_of_orders_take_a_few_conversations() -> None:
    program = InProcess(Right)
    with known():
        assert first_failure([claims.STILL], claims.foreign, Conduct(program)) is None
    assert program.started < 200
    assert not program.open


def test_one_that_does_not_do_the_same_twice_has_failed() -> None:
    class Counting(Right):
        times = 0

        def acquire(self, name: str, milliseconds: int) -> bool:
            Counting.times += 1
            return bool(self.port.set_if_absent(name, str(Counting.times), milliseconds))

    with pytest.raises(TheirsFailed) as failed:
        Copy(Conduct(InProcess(Counting))).call("acquire", ["sweeper", 9], answering(True)[1])
    assert str(failed.value) == NOT_THE_SAME


def test_one_that_returns_where_it_asked_before_has_failed() -> None:
    class Tiring(Right):
        times = 0

        def acquire(self, name: str, milliseconds: int) -> bool:
            Tiring.times += 1
            return Tiring.times == 1 and bool(self.port.get(name))

    with pytest.raises(TheirsFailed) as failed:
        Copy(Conduct(InProcess(Tiring))).call("acquire", ["sweeper", 9], answering("x")[1])
    assert str(failed.value) == NOT_THE_SAME


def test_one_whose_yes_is_a_no_the_next_time_has_failed() -> None:
    class Wavering(Right):
        times = 0

        def acquire(self, name: str, milliseconds: int) -> bool:
            Wavering.times += 1
            return Wavering.times == 1

    copy = Copy(Conduct(InProcess(Wavering)))
    assert copy.call("acquire", ["sweeper", 9], answering()[1]) is True
    with pytest.raises(TheirsFailed) as failed:
        copy.call("release", ["sweeper"], answering()[1])
    assert str(failed.value) == NOT_THE_SAME


def test_a_call_that_asks_for_ever_ends_after_so_many_questions() -> None:
    class Endless(Right):
        def acquire(self, name: str, milliseconds: int) -> bool:
            while True:
                self.port.get(name)

    asked, port = answering(*[None] * (MOST + 1))
    with pytest.raises(TheirsFailed) as failed:
        Copy(Conduct(InProcess(Endless))).call("acquire", ["sweeper", 9], port)
    assert str(failed.value) == TOO_MANY
    assert len(asked) == MOST


def test_what_the_judge_fails_of_is_not_remembered_as_the_programs() -> None:
    class Away(InProcess):
        away = True

        @contextmanager
        def start(self) -> Iterator[Talk]:
            if self.away:
                raise CouldNotDecide("No sandbox just now.")
            with super().start() as talk:
                yield talk

    program = Away(Right)
    conduct = Conduct(program)
    with pytest.raises(CouldNotDecide):
        Copy(conduct).call("acquire", ["sweeper", 9], answering("v1", True)[1])
    program.away = False
    assert Copy(conduct).call("acquire", ["sweeper", 9], answering("v1", True)[1]) is True


def first_to_set(went: Went) -> str:
    return next(step.option.who for step in went.played.taken if "SET NX" in step.option.step.label)


def turns_of(went: Went) -> tuple[tuple[int, str], ...]:
    return Schedule.of(went.played.taken).turns


def test_of_the_orders_that_fail_the_shortest_is_shown() -> None:
    lengths: list[tuple[int, int]] = []

    class Looking(Right):
        def acquire(self, name: str, milliseconds: int) -> bool:
            return not self.port.get(name) and super().acquire(name, milliseconds)

    def turned(went: Went) -> list[str]:
        """What fails in an order of this length fails in none of another."""
        length = len(turns_of(went)), len(went.played.taken)
        lengths.append(length)
        return [f"turned: {length}"] if length[0] > 1 else []

    with known():
        failure = first_failure([claims.STILL], turned, Conduct(InProcess(Looking)))
    turned_at = [length for length in lengths if length[0] > 1]
    assert failure is not None
    assert failure.wrong == (f"turned: {min(turned_at)}",)
    assert turned_at[0] > min(turned_at)


def test_a_turn_that_a_failure_does_not_need_is_left_out() -> None:
    conduct = Conduct(InProcess(Right))

    def wrong(went: Went) -> list[str]:
        return ["box B set first"] if first_to_set(went) == "box-b/1" else []

    with known():
        went = play(claims.CALM, conduct, Staying({0: "box-b/1", 2: "box-a/1"}), ())
        assert len(turns_of(went)) == 2
        shorter = without_turns(Failure(claims.CALM, (), went, ("box B set first",)), conduct, wrong)
    assert turns_of(shorter.went) == ((0, "box-b/1"),)
    assert shorter.wrong == ("box B set first",)
