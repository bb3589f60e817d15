"""The Wednesday is played under the advisory lock, and what was expected is held against it. Then it is played with
the failure that was named, under this lock and under Redis.

What did not hold is told by where to look, never by what is right there: that is for the student to find, in the run.
"""

from datetime import timedelta

from exercises.catalogue.advisory.answers import Answers
from exercises.catalogue.advisory.failure import Played, named
from exercises.handed.checks import Check, Evidence, Result, Room
from exercises.scenarios import oracles
from exercises.scenarios.boxes import Setting
from exercises.scenarios.keep import of_wednesday
from exercises.scenarios.replay import Outcome, play
from exercises.scenarios.wednesday import START
from sweeper.events import Event, Kind
from sweeper.verdict import ENDINGS

VERSION, PLACE = 2, 1
SETTING = Setting("postgres-advisory", "unguarded", "lookup")
REDIS = Setting("redis-naive", "unguarded", "lookup")
MOMENT = START + timedelta(minutes=2)
AT_ONCE = timedelta(seconds=1)  # by then the messages of that moment have been dealt with
STARTS, WORKS, IDLE = "starts a run", "is in the middle of a run", "has nothing to do"


def boxes(answers: Answers, room: Room) -> Result:
    """What each box is doing."""
    outcome = _evening(room)
    seen = {box: state(outcome.events, box) for box in ("box-a", "box-b")}
    told = f"At 21:52:00 box A {seen['box-a']} and box B {seen['box-b']}."
    if {"box-a": answers.box_a, "box-b": answers.box_b} == seen:
        why = "The lock has no lease that could run out: it is B’s while B’s session lives and its run lasts."
        return BOXES.passed(f"{told} {why}", _evidence(told, outcome))
    look = (
        f"You say that box A {answers.box_a} and box B {answers.box_b}, and the journal has it otherwise. Look at "
        "what each box noted last by 21:52:01: which run has acquired the lock and not released it, and what did the "
        "lock say to whoever asked at that moment? Then ask what could take this lock from a run that still works."
    )
    return BOXES.failed(look, _evidence(told, outcome))


def refused(answers: Answers, room: Room) -> Result:
    """Whose message meets a lock that says no."""
    outcome = _evening(room)
    who = {event.box for event in outcome.events if event.kind is Kind.REFUSED and _then(event)}
    seen = {frozenset(): "nobody", frozenset({"box-a"}): "box A", frozenset({"box-b"}): "box B"}.get(
        frozenset(who), "both"
    )
    told = f"At 21:52:00 the lock refuses {seen}."
    if answers.refused == seen:
        why = "B’s run of 21:50:00 has two rows left, and B’s new message is one more stranger to its lock."
        return REFUSED.passed(f"{told} {why}", _evidence(told, outcome))
    look = (
        f"You say that the lock refuses {answers.refused}, and the journal has it otherwise. Both boxes have the "
        "same schedule: count the messages of 21:52:00, and ask of each in which session it asks for the lock, and "
        "which session has it."
    )
    return REFUSED.failed(look, _evidence(told, outcome))


def friday(answers: Answers, room: Room) -> Result:
    """The catalogue and the shelf after two were ordered."""
    outcome = _evening(room)
    catalogue, shelf = outcome.novel
    told = f"On the Friday the catalogue promises {catalogue} of the novel, and the shelf holds {shelf}."
    if (answers.catalogue, answers.shelf) == (catalogue, shelf):
        why = "Each held copy went back once: two were for sale, two were shipped, and nothing is promised any more."
        return FRIDAY.passed(f"{told} {why}", _evidence(told, outcome))
    look = (
        f"You have {answers.catalogue} in the catalogue and {answers.shelf} on the shelf, and the shop has it "
        "otherwise. Count in the journal how often rows 13 and 14 are settled: so often does a held copy go back for "
        "sale. Then take from the catalogue what is ordered on the Friday, and from the shelf what is shipped."
    )
    return FRIDAY.failed(look, _evidence(told, outcome))


def failure(answers: Answers, room: Room) -> Result:
    """The one that stops the sweep for longer than Redis's lease would, and does not under Redis."""
    with room.laboratory() as database:
        played = Played(database, SETTING, REDIS, named(answers))
    under_redis = of_wednesday(REDIS, START, played.redis)["again"]
    text = f"{played.told}\nThe evening under Redis again: manage.py {under_redis}"
    evidence = _evidence(text, played.advisory)
    return (FAILURE.passed if played.is_new else FAILURE.failed)(played.sentence, evidence)


def state(events: list[Event], box: str) -> str:
    """What this box is doing once the messages of that moment have been dealt with."""
    holding: set[object] = set()
    started = False
    for event in events:
        if event.box != box or event.at > MOMENT + AT_ONCE:
            continue
        if event.kind is Kind.ACQUIRED:
            holding.add(event.run)
            started = started or _then(event)
        elif event.kind in ENDINGS:
            holding.discard(event.run)
    return STARTS if started else WORKS if holding else IDLE


def _then(event: Event) -> bool:
    return MOMENT <= event.at <= MOMENT + AT_ONCE


def _evening(room: Room) -> Outcome:
    with room.laboratory() as database:
        return play(database, SETTING)


def _evidence(told: str, outcome: Outcome) -> Evidence:
    """The run under the advisory lock. `told`: what is to be seen in it."""
    kept = of_wednesday(SETTING, START, outcome)
    wrong = oracles.copies(outcome.verdict)
    return Evidence(told, kept["again"], wrong=wrong, verdict=kept["verdict"], steps=kept["steps"])


BOXES = Check("boxes", "What each box is doing at 21:52:00", 3, boxes)
REFUSED = Check("refused", "Who is refused at 21:52:00", 2, refused)
FRIDAY = Check("friday", "Friday’s catalogue and shelf", 3, friday)
FAILURE = Check("failure", "The one new failure", 4, failure)
CHECKS = [BOXES, REFUSED, FRIDAY, FAILURE]
