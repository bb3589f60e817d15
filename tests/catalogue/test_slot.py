"""The finer key: known answers, the sequence that is played, and the settle in every order."""

from contextlib import nullcontext
from typing import Any

import pytest

from exercises.catalogue.slot.answers import LENT, Answers
from exercises.catalogue.slot.orders import MOST
from exercises.catalogue.slot.settle import NAME, Settle
from exercises.handed.answers import NotAnswers, read
from exercises.handed.checks import CouldNotDecide, Outcome, Result
from exercises.handed.exercise import Known, exercise
from exercises.handed.sql import NotLent, taken
from exercises.lab.database import Database
from exercises.scenarios.boxes import ALL_FORMS
from grading.judge import decide, judge
from grading.room import JudgesRoom
from tests.lab.conftest import database

__all__ = ["database"]
KNOWN = {known.name: known for known in exercise("slot").known()}
RIGHT = KNOWN["right"].answers
CHECKS = {check.name: check for check in exercise("slot").checks}
MARK = "update shop_order set status = 'abandoned', settled_at = :now where id = :order"
GUARDED = f"{MARK} and status = 'pending'"
BACK = "update shop_book set stock = stock + 1 where id = :book"
PHANTOM = "the catalogue promises copies that no shelf holds (1)"
LOST = "the shelf holds copies that the catalogue does not know (1)"


def result(database: Database, check: str, **instead: Any) -> Result:
    room = JudgesRoom(lambda: nullcontext(database))
    return decide(CHECKS[check], read(Answers, {**RIGHT, **instead}), room)


def steps(*given: tuple[str, int, str]) -> list[dict[str, Any]]:
    return [dict(zip(("statement", "transaction", "on_zero_rows"), step, strict=True)) for step in given]


def happens(*given: str) -> list[dict[str, str]]:
    """`21:50:00 B starts`"""
    parts = [one.split(" ", 2) for one in given]
    return [{"at": at, "who": f"box {who}", "does": does} for at, who, does in parts]


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_known_answers_get_their_verdicts(known: Known, database: Database) -> None:
    found, room = exercise("slot"), JudgesRoom(lambda: nullcontext(database))
    given = {check.name: result for check, result in judge(found, read(found.answers, known.answers), room)}
    assert {name: (result.outcome.value, result.points) for name, result in given.items()} == known.expected


@pytest.mark.parametrize("name", ["right", "wrong_two_transactions", "wrong_looked_before"])
def test_the_same_answer_has_the_same_evidence(database: Database, name: str) -> None:
    found, room = exercise("slot"), JudgesRoom(lambda: nullcontext(database))
    answers = read(found.answers, KNOWN[name].answers)
    first, second = ([result for _, result in judge(found, answers, room)] for _ in range(2))
    assert first == second
    assert first[0].evidence.again == "lab wednesday --lock slot --settle unguarded --question lookup"


# --- The settle ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settle", "wrong", "killed"),
    [
        (steps((MARK, 1, "stop"), (BACK, 1, "stop")), PHANTOM, False),
        (steps((GUARDED, 1, "go on"), (BACK, 1, "stop")), PHANTOM, False),
        (steps((BACK, 1, "stop"), (GUARDED, 2, "stop")), PHANTOM, False),
        (steps((GUARDED, 1, "stop"), (BACK, 2, "stop")), LOST, True),
        (steps((GUARDED, 1, "stop")), LOST, False),
        (
            steps(("select 1 from shop_order where id = :order and status = 'pending'", 1, "stop"),
                  (MARK, 1, "stop"), (BACK, 1, "stop")),
            PHANTOM,
            False,
        ),
    ],
    ids=["unguarded", "not-stopped", "copy-first", "two-transactions", "never-back", "looked-before"],
)  # fmt: skip
def test_a_wrong_settle_is_shown_by_its_shortest_failing_order(
    database: Database, settle: list[dict[str, Any]], wrong: str, killed: bool
) -> None:
    found = result(database, "bears", settle=settle)
    assert (found.outcome, found.points) == (Outcome.FAILED, 0)
    assert found.evidence.wrong == (wrong,)
    assert ("box A killed" in found.sentence) == killed
    boxes = "1" if "of one box" in found.sentence else "2"
    assert found.evidence.schedule.startswith(f"corner;none;yours;lookup;{boxes};1;1;0;120;")
    assert found.evidence.schedule in found.evidence.text
    assert [f"{step['who']}  {step['step']}" for step in found.evidence.steps] == found.evidence.text.splitlines()[
        1:-1
    ]
    assert found.evidence.verdict is not None
    assert found.evidence.verdict["settle"] == NAME


@pytest.mark.parametrize(
    "settle",
    [
        steps((BACK, 1, "stop"), (GUARDED, 1, "stop")),
        steps(
            ("select 1 from shop_order where id = :order and status = 'pending' for update", 1, "stop"),
            (MARK, 1, "stop"),
            (BACK, 1, "stop"),
        ),
        steps(
            ("select 1 from shop_order where id = :order and status = 'pending' for update skip locked", 3, "stop"),
            (MARK, 3, "go on"),
            (BACK, 3, "go on"),
        ),
        steps(
            (
                "select o.id from shop_order o join shop_book b on b.id = o.book_id "
                "where o.id = :order and o.status = 'pending' for update of o",
                1,
                "stop",
            ),
            (MARK, 1, "stop"),
            (BACK, 1, "stop"),
        ),
    ],
    ids=["rolled back", "for update", "skip locked", "for update of an alias"],
)
def test_other_right_settles_are_right(database: Database, settle: list[dict[str, Any]]) -> None:
    """A copy that went back first is taken back where the settle stops; a row that is locked is somebody's."""
    assert result(database, "bears", settle=settle).outcome is Outcome.PASSED
    assert result(database, "puts-back", settle=settle).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (
            "update shop_book set stock = 7 where id = :book",
            "A pending row was released with nobody else about, and then stock of book 1 is 7, where it should be 4.",
        ),
        (
            "update shop_book set stock = stock + 1 where id <> :book",
            "A pending row was released with nobody else about, and then stock of book 2 is 3, where it should be 2.",
        ),
        (
            "update shop_order set status = 'abandoned', settled_at = :now where status = 'pending'",
            "A pending row was released with nobody else about, and then order 4 is abandoned, where it should be "
            "pending.",
        ),
        (
            "update shop_order set status = 'abandoned' where id = 2",
            "A pending row was released with nobody else about, and then order 2 is abandoned, where it should be "
            "paid.",
        ),
        (
            "update shop_order set status = 'abandoned' where id = :order",
            "Step 1 failed. Postgres says: new row for relation \"shop_order\" violates check constraint "
            '"order_settled_when_not_pending".',
        ),
        (
            "update shop_order set status = 1 where id = :now",
            "Step 1 failed. Postgres says: operator does not exist: bigint = timestamp with time zone.",
        ),
    ],
)  # fmt: skip
def test_what_a_settle_does_besides_is_told(database: Database, more: str, says: str) -> None:
    settle = steps((GUARDED, 2, "stop"), (BACK, 2, "stop"))
    first = "Step 1 failed" in says
    extra = steps((more, 1 if first else 2, "go on"))
    found = result(database, "puts-back", settle=extra + settle if first else settle + extra)
    assert (found.outcome, found.sentence) == (Outcome.FAILED, says)


def test_a_settle_that_two_boxes_wait_for_each_other_in_fails(database: Database) -> None:
    """Each takes the book and the rows in another order, by turns: Postgres ends one of them."""
    order = steps(
        ("select 1 from shop_order where id = :order for update", 1, "go on"),
        ("select 1 from shop_order where id <> :order for update", 1, "go on"),
        (GUARDED, 1, "stop"),
        (BACK, 1, "stop"),
    )
    found = result(database, "bears", settle=order)
    assert found.outcome is Outcome.FAILED
    assert "Postgres says: deadlock detected" in found.sentence


TOO_MANY = (
    "Two boxes can meet in more than 3 orders in your settle: write fewer steps or fewer transactions, and let each "
    "step name its one row."
)


def test_a_settle_in_too_many_orders_has_failed(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounded by their number, and never by seconds: a slow machine finds what a quick one finds."""
    monkeypatch.setattr("exercises.catalogue.slot.orders.MOST", 3)
    found = result(database, "bears")
    assert (found.outcome, found.points) == (Outcome.FAILED, 0)
    assert (found.sentence, found.evidence.text) == (TOO_MANY, TOO_MANY)


def test_an_order_that_is_wrong_is_shown_also_where_there_are_too_many(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exercises.catalogue.slot.orders.MOST", 5)  # of six
    found = result(database, "bears", settle=steps((MARK, 1, "stop"), (BACK, 1, "stop")))
    assert (found.outcome, found.evidence.wrong) == (Outcome.FAILED, (PHANTOM,))


def test_the_statement_says_in_how_many_orders_boxes_may_meet() -> None:
    assert f"more than {MOST} orders" in " ".join(exercise("slot").statement.split())


def test_the_form_is_gone_when_it_was_judged(database: Database) -> None:
    """Also where judging it broke off: no other answer is judged by this one's settle."""
    settle, room = Settle(read(Answers, RIGHT).settle), JudgesRoom(lambda: nullcontext(database))
    seen = []

    def break_off() -> None:
        with settle.ready(room):
            seen.append(NAME in ALL_FORMS)
            raise CouldNotDecide("The lamp went out.")

    with pytest.raises(CouldNotDecide):
        break_off()
    assert seen == [True]
    assert NAME not in ALL_FORMS
    assert database.guests == {}


# --- The sequence -------------------------------------------------------------------------------------------------

B_WORKS = ("21:50:00 B starts", "21:50:00 B is elected", "21:50:01 B lists", "21:50:02 B asks")


@pytest.mark.parametrize(
    ("events", "why"),
    [
        (
            ("21:51:00 B starts",),
            "Event 1 (21:51:00, box B starts) can’t happen: the schedule of both boxes fires at even minutes, to the "
            "second.",
        ),
        (
            ("21:50:00 B is elected",),
            "Event 1 (21:50:00, box B is elected) can’t happen: box B has not started a run.",
        ),
        (
            ("21:50:00 B starts", "21:50:00 B lists"),
            "Event 2 (21:50:00, box B lists) can’t happen: the next that box B’s run of 21:50:00 can do is another: "
            "it is elected or is refused.",
        ),
        (
            (*B_WORKS, "21:50:02 A starts", "21:50:03 A is elected"),
            "Event 5 (21:50:02, box A starts) can’t happen: the schedule of both boxes fires at even minutes, to the "
            "second.",
        ),
        (
            ("21:50:00 A starts", *B_WORKS, "21:51:59 A is elected"),
            "Event 6 (21:51:59, box A is elected) can’t happen: the slot of 21:50:00 has its run already, so box A "
            "is refused.",
        ),
        (
            ("21:50:00 A starts", *B_WORKS, "21:52:00 A is refused"),
            "Event 6 (21:52:00, box A is refused) can’t happen: nobody else was elected for the slot of 21:52:00, so "
            "box A is.",
        ),
        (
            (*B_WORKS, "21:52:00 B starts"),
            "Event 5 (21:52:00, box B starts) can’t happen: its one worker is still in the middle of its run of "
            "21:50:00.",
        ),
        (
            (*B_WORKS, "21:50:03 B puts back", "21:50:04 B puts back"),
            "Event 6 (21:50:04, box B puts back) can’t happen: box B’s run of 21:50:00 is over by then.",
        ),
        (
            ("21:50:00 A starts", "21:50:00 B starts", "21:50:00 A is elected", "21:50:00 B is refused",
             "21:50:00 B starts"),
            "Event 5 (21:50:00, box B starts) can’t happen: its schedule fires once at 21:50:00, and has.",
        ),
        (
            (*B_WORKS, "21:50:03 B puts back", "21:52:00 A starts", "21:52:00 A is elected", "21:52:00 A lists",
             "21:52:00 A asks"),
            "Event 9 (21:52:00, box A asks) can’t happen: box A’s run of 21:52:00 has listed no row: none is pending "
            "any more.",
        ),
    ],
)  # fmt: skip
def test_an_event_that_can_not_happen_is_named(database: Database, events: tuple[str, ...], why: str) -> None:
    found = result(database, "oversells", events=happens(*events))
    assert (found.outcome, found.points, found.sentence) == (Outcome.FAILED, 0, why)


def test_one_box_alone_oversells_as_well(database: Database) -> None:
    """Its first run is slow to ask for its slot: it gets the one of 21:52, and the other box had the one before."""
    found = result(
        database,
        "oversells",
        events=happens(
            "21:50:00 A starts",
            *B_WORKS,
            "21:53:59 A is elected",
            "21:53:59 A lists",
            "21:53:59 B puts back",
            "21:55:00 A asks",
            "22:00:00 A puts back",
        ),
    )
    assert found.outcome is Outcome.PASSED
    assert found.evidence.wrong == (PHANTOM, "a row was settled more than once (1)")
    assert found.sentence.startswith("2 runs elected, each for a slot of its own")


def test_a_sequence_that_is_broken_off_makes_nothing_up(database: Database) -> None:
    found = result(database, "oversells", events=happens(*B_WORKS))
    assert found.outcome is Outcome.FAILED
    assert found.sentence.startswith("All of it can happen, and every copy is accounted for")


# --- The form -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("instead", "field", "says"),
    [
        ({"together": "perhaps"}, "together", "This should be 'yes' or 'no'."),
        ({"events": []}, "events", "There are too few of these: add what is missing."),
        (
            {"events": happens("21:49:59 A starts")},
            "events.0.at",
            "The evening begins at 21:50:00: name a time from then on.",
        ),
        (
            {"events": happens("21:52:00 A starts", "21:50:00 B starts")},
            "events",
            "Event 2 (21:50:00) is earlier than the one above it (21:52:00).",
        ),
        ({"events": happens("21:52:00 C starts")}, "events.0.who", "This should be 'box A' or 'box B'."),
        (
            {"settle": steps((GUARDED, 2, "stop"), (BACK, 1, "stop"))},
            "settle",
            "Step 2 is of transaction 1, which is over by then: give it 2, or a higher number.",
        ),
        (
            {"settle": steps((GUARDED, 0, "stop"))},
            "settle.0.transaction",
            "This should be greater than or equal to 1.",
        ),
        ({"settle": steps((GUARDED, 1, "go"))}, "settle.0.on_zero_rows", "This should be 'stop' or 'go on'."),
        (
            {"settle": steps(*[(BACK, 1, "stop")] * 7)},
            "settle",
            "There are too many of these: leave some out.",
        ),
    ],
)  # fmt: skip
def test_what_can_be_no_answer_is_told_by_its_field(instead: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(NotAnswers) as refused:
        read(Answers, {**RIGHT, **instead})
    assert refused.value.problems == {field: says}


@pytest.mark.parametrize(
    ("statement", "runs"),
    [
        ("select 1 from shop_order where id=:order", "SELECT 1 FROM shop_order WHERE id = %(order)s"),
        ("select ':order', $$ :book $$ -- :now", "SELECT ':order', ' :book '"),
        ("select :order::int", "SELECT CAST(%(order)s AS integer)"),
        ("select 5 % :order, '%s'", "SELECT 5 %% %(order)s, '%%s'"),
        ("select '£ € 💷', :box /* '", None),
        ("select '£ € 💷', :box", "SELECT '£ € 💷', %(box)s"),
        ("select 1 from shop_order as o, shop_book b;", "SELECT 1 FROM shop_order AS o, shop_book AS b"),
        (
            "select 1 from shop_order o, shop_book for update of o, shop_book skip locked",
            "SELECT 1 FROM shop_order AS o, shop_book FOR UPDATE OF o, shop_book SKIP LOCKED",
        ),
    ],
)
def test_what_runs_is_what_was_read(statement: str, runs: str | None) -> None:
    """Parameters are found where Postgres' scanner finds them, and no comment reaches the server."""
    if runs is None:
        with pytest.raises(NotLent, match="unterminated"):
            taken(statement, LENT)
    else:
        assert taken(statement, LENT) == runs
