"""The Wednesday is played under the advisory lock, and what was expected is held against it."""

from datetime import timedelta

from exercises.catalogue.advisory.answers import Answers
from exercises.handed.checks import Check, Evidence, Result, Room
from exercises.scenarios import oracles
from exercises.scenarios.boxes import Setting
from exercises.scenarios.keep import of_wednesday
from exercises.scenarios.replay import Outcome, play
from exercises.scenarios.wednesday import START
from sweeper.events import Event, Kind
from sweeper.verdict import ENDINGS

VERSION, PLACE = 1, 1
SETTING = Setting("postgres-advisory", "unguarded", "lookup")
MOMENT = START + timedelta(minutes=2)
AT_ONCE = timedelta(seconds=1)  # by then the messages of that moment have been dealt with
STARTS, WORKS, IDLE = "starts a run", "is in the middle of a run", "has nothing to do"


def boxes(answers: Answers, room: Room) -> Result:
    """What each box is doing."""
    outcome = _evening(room)
    seen = {box: state(outcome.events, box) for box in ("box-a", "box-b")}
    told = f"At 21:52:00 box A {seen['box-a']} and box B {seen['box-b']}."
    right = {"box-a": answers.box_a, "box-b": answers.box_b} == seen
    why = "The lock has no lease that could run out: it is B’s for as long as B’s session lives and its run lasts."
    return _decided(BOXES, right, f"{told} {why}", outcome)


def refused(answers: Answers, room: Room) -> Result:
    """Whose message meets a lock that says no."""
    outcome = _evening(room)
    who = {event.box for event in outcome.events if event.kind is Kind.REFUSED and _then(event)}
    seen = {frozenset(): "nobody", frozenset({"box-a"}): "box A", frozenset({"box-b"}): "box B"}.get(
        frozenset(who), "both"
    )
    told = f"At 21:52:00 the lock refuses {seen}."
    why = "B’s run of 21:50:00 still has two rows before it, and B’s new message is one more stranger to its lock."
    return _decided(REFUSED, answers.refused == seen, f"{told} {why}", outcome)


def friday(answers: Answers, room: Room) -> Result:
    """The catalogue and the shelf after two were ordered."""
    outcome = _evening(room)
    catalogue, shelf = outcome.novel
    told = f"On the Friday the catalogue promises {catalogue} of the novel, and the shelf holds {shelf}."
    why = "Each held copy went back once, so two were for sale, two were shipped, and nothing is promised after that."
    return _decided(FRIDAY, (answers.catalogue, answers.shelf) == (catalogue, shelf), f"{told} {why}", outcome)


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


def _decided(check: Check, right: bool, sentence: str, outcome: Outcome) -> Result:
    kept = of_wednesday(SETTING, START, outcome)
    wrong = oracles.copies(outcome.verdict)
    evidence = Evidence(sentence, kept["again"], wrong=wrong, verdict=kept["verdict"], steps=kept["steps"])
    return check.passed(sentence, evidence) if right else check.failed(sentence, evidence)


BOXES = Check("boxes", "What each box is doing at 21:52:00", 3, boxes)
REFUSED = Check("refused", "Who is refused at 21:52:00", 2, refused)
FRIDAY = Check("friday", "Friday’s catalogue and shelf", 3, friday)
CHECKS = [BOXES, REFUSED, FRIDAY]
