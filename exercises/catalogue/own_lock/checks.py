"""The lock is played in every order of two boxes: calm, with a pause, with a crash."""

from collections.abc import Callable

from exercises.catalogue.own_lock import orders
from exercises.catalogue.own_lock.answers import Answers
from exercises.catalogue.own_lock.lock import Watch, playing
from exercises.catalogue.own_lock.orders import CALM, KILLED, PAUSED, Failure, Looked, search
from exercises.handed.checks import Check, Evidence, Result, Room, TheirsFailed
from exercises.lab.database import Database
from exercises.scenarios.keep import of_replay
from exercises.scenarios.part import Bounds

VERSION, PLACE = 1, 3
Decided = Callable[[Database, Watch], Result]


def excludes(answers: Answers, room: Room) -> Result:
    """With nothing going wrong."""
    return _played(
        EXCLUDES,
        answers,
        room,
        orders.calm,
        CALM,
        "Where nothing goes wrong there is one holder at a time, and whoever comes when it is free gets it.",
    )


def own(answers: Answers, room: Room) -> Result:
    """With one box stopped anywhere, until just past a deadline."""
    return _played(
        OWN,
        answers,
        room,
        orders.foreign,
        PAUSED,
        "Wherever a box stands still, and however long: no run takes away another run’s key.",
    )


def dead(answers: Answers, room: Room) -> Result:
    """With one box killed anywhere."""
    return _played(
        DEAD,
        answers,
        room,
        orders.stuck,
        KILLED,
        "Wherever a box is killed: once the lease is over, the other box gets the lock.",
    )


def honest(answers: Answers, room: Room) -> Result:
    """What it can't prevent, seen in a run of this very lock."""
    claims = {
        "two-holders-after-a-pause": (orders.two, PAUSED),
        "foreign-delete": (orders.foreign, PAUSED),
        "stuck-after-a-crash": (orders.stuck, KILLED),
    }
    if answers.cannot_prevent not in claims:
        told = (
            "Something is left, of any lock with a lease: think of the box that is stopped while it holds the lock."
        )
        return HONEST.failed(told, Evidence(told))
    looked, bounds = claims[answers.cannot_prevent]

    def decide(database: Database, watch: Watch) -> Result:
        seen = search(database, watch, looked, bounds)
        if seen is None:
            told = (
                "This was looked for in every order, and your lock never shows it: what you call left is prevented."
            )
            return HONEST.failed(told, Evidence(told))
        if seen.theirs:
            return HONEST.failed(seen.what, _evidence(seen))
        if answers.cannot_prevent == "foreign-delete":
            told = "Your lock does delete another run’s key, and need not: compare and delete in one question."
            return HONEST.failed(told, _evidence(seen, told))
        told = f"Here it is: {seen.what}. No lock whose holder may stand still prevents it; what is written has to."
        return HONEST.passed(told, _evidence(seen, told))

    return _with(HONEST, answers, room, decide)


def _played(check: Check, answers: Answers, room: Room, looked: Looked, bounds: Bounds, well: str) -> Result:
    def decide(database: Database, watch: Watch) -> Result:
        failure = search(database, watch, looked, bounds)
        if failure is None:
            return check.passed(well, Evidence(well))
        return check.failed(_what_fails(failure), _evidence(failure))

    return _with(check, answers, room, decide)


def _with(check: Check, answers: Answers, room: Room, decide: Decided) -> Result:
    """A program that can't be read has failed whatever is asked of it. So has one that is no lock: whoever says yes
    to everybody, or to nobody, deletes no other's key and leaves nobody waiting.
    """
    try:
        with playing(room, answers.source) as (database, watch):
            failure = None if check is EXCLUDES else search(database, watch, orders.calm, CALM)
            if failure is None:
                return decide(database, watch)
            return check.failed(f"This is no lock yet. {_what_fails(failure)}", _evidence(failure))
    except TheirsFailed as failed:
        return check.failed(str(failed), Evidence(str(failed)))


def _what_fails(failure: Failure) -> str:
    if failure.theirs:
        return failure.what
    struck = sorted(
        f"{fault.box.replace('box-', 'box ').upper().replace('BOX', 'box')}" for fault in failure.played.met
    )
    how = (
        f"With {struck[0]} {'stopped' if failure.what != orders.STUCK else 'killed'}"
        if struck
        else "With nothing wrong"
    )
    return f"{how}, in one order of the two boxes: {failure.what}."


def _evidence(failure: Failure, told: str = "") -> Evidence:
    kept = of_replay(failure.schedule, failure.played)
    lines = [f"{step['who']}  {step['step']}" for step in kept["steps"]]
    text = "\n".join([told or _what_fails(failure), *lines, failure.schedule])
    return Evidence(text, "", failure.schedule, failure.played.wrong, verdict=kept["verdict"], steps=kept["steps"])


EXCLUDES = Check("excludes", "One holder at a time, in calm weather", 3, excludes)
OWN = Check("own", "It takes away nobody else’s key", 3, own)
DEAD = Check("dead", "A dead holder does not stop the shop", 2, dead)
HONEST = Check("honest", "What it can’t prevent", 2, honest)
CHECKS = [EXCLUDES, OWN, DEAD, HONEST]
