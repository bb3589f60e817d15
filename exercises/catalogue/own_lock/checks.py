"""The lock is played in every order of two boxes: in calm weather, with a pause anywhere, with a crash anywhere."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from exercises.catalogue.own_lock import claims
from exercises.catalogue.own_lock.answers import Answers
from exercises.catalogue.own_lock.claims import CALM, CRASH, JUST_BEFORE, KILLED, LONE, PAUSE, STILL
from exercises.catalogue.own_lock.conduct import Conduct
from exercises.catalogue.own_lock.elsewhere import drawn
from exercises.catalogue.own_lock.orders import Failure, Wrong, first_failure
from exercises.catalogue.own_lock.playing import Terms, World, known
from exercises.handed.checks import Check, Evidence, Result, Room, Shown, TheirsFailed
from exercises.scenarios.keep import of_replay

VERSION, PLACE = 4, 3

ONLY_THERE = (
    "With the name, the lease and the time of the statement nothing of this kind happens: look for what the program "
    "knows of them that it was not told, a key, a number of milliseconds or a moment that is written down in it."
)


def excludes(answers: Answers, room: Room) -> Result:
    """Two boxes, and one of them may stand still while it holds the lock."""
    well = (
        "Alone it says yes, and is free again; and in no order do two runs hold it at once, while a box that stands "
        "still does so within its lease."
    )
    return _decided(EXCLUDES, answers, room, _sought(EXCLUDES, [JUST_BEFORE], claims.together, well))


def own(answers: Answers, room: Room) -> Result:
    """With one box that stands still anywhere, until just past a deadline."""
    well = "Wherever a box stands still, and until whichever deadline: no run lays hands on the key of another."
    return _decided(OWN, answers, room, _sought(OWN, [CALM, STILL], claims.foreign, well))


def dead(answers: Answers, room: Room) -> Result:
    """With one box killed anywhere."""
    well = "Wherever a box is killed: as soon as its lease is over, the other one is told yes."
    return _decided(DEAD, answers, room, _sought(DEAD, [KILLED], claims.stuck, well))


def honest(answers: Answers, room: Room) -> Result:
    """What is left, seen in a run of this very lock."""
    return _decided(HONEST, answers, room, lambda conduct: _claimed(answers.cannot_prevent, conduct))


def elsewhere(answers: Answers, room: Room) -> Result:
    """Under other names and figures nothing goes wrong that does not under those of the statement. What goes wrong
    there is the other checks' to charge.
    """
    return _decided(ELSEWHERE, answers, room, _elsewhere)


def _decided(check: Check, answers: Answers, room: Room, decide: Callable[[Conduct], Result]) -> Result:
    """Whoever says yes to nobody lays hands on nobody's key, and whoever says yes to everybody lets nobody wait: what
    is no lock is right in nothing. Nor is a program that can't be read, or that asks without end.
    """
    try:
        with room.python(answers.source, "Lock") as program, known():
            conduct = Conduct(program, answers.source)
            failure = first_failure([LONE], claims.idle, conduct)
            failure = failure or first_failure([CALM], claims.together, conduct)
            return decide(conduct) if failure is None else check.failed(_what_fails(failure), _evidence(failure))
    except TheirsFailed as failed:
        return check.failed(str(failed), Evidence(str(failed)))


def _sought(check: Check, worlds: Sequence[World], wrong: Wrong, well: str) -> Callable[[Conduct], Result]:
    def decide(conduct: Conduct) -> Result:
        failure = first_failure(worlds, wrong, conduct)
        if failure is None:
            return check.passed(well, Evidence(well))
        return check.failed(_what_fails(failure), _evidence(failure))

    return decide


def _claimed(claim: str, conduct: Conduct) -> Result:
    """Only one thing is left of a lock, however well it is written: the other ones are looked for where they are
    claimed. Raises TheirsFailed, CouldNotDecide.
    """
    shown = first_failure(*claims.SHOWN[claim], conduct) if claim in claims.SHOWN else None
    if shown is None:
        told = claims.NEVER[claim]
        return HONEST.failed(told, Evidence(told))
    if shown.failed:
        return HONEST.failed(_what_fails(shown), _evidence(shown))
    if claim == PAUSE or (claim == CRASH and first_failure(*claims.SHOWN[PAUSE], conduct) is None):
        told = f"Here it is. {_what_fails(shown)} {claims.WHY[claim]}"
        return HONEST.passed(told, _evidence(shown, told))
    told = f"This does happen to your lock, and need not: {claims.MEND[claim]}. {_what_fails(shown)}"
    return HONEST.failed(told, _evidence(shown, told))


def _elsewhere(conduct: Conduct) -> Result:
    """Raises TheirsFailed, CouldNotDecide."""
    other = Conduct(conduct.program, f"{conduct.salt} elsewhere")
    for worlds, besides, wrong in claims.SOUGHT:
        for terms in drawn(conduct.salt):
            failure = first_failure([replace(world, terms=terms) for world in (*worlds, *besides)], wrong, other)
            if failure and not first_failure(worlds, wrong, conduct):
                told = f"{_by(terms)}: {_what_fails(failure)} {ONLY_THERE}"
                return ELSEWHERE.failed(told, _evidence(failure, told))
    well = "With other names, other leases and at another time it does what it does with those of the statement."
    return ELSEWHERE.passed(well, Evidence(well))


# --- In words -----------------------------------------------------------------------------------------------------


def _what_fails(failure: Failure) -> str:
    """A sentence of the program's own failure is one already."""
    if failure.failed:
        return failure.wrong[0]
    return f"{_weather(failure)}: {'; '.join(failure.wrong)}."


def _by(terms: Terms) -> str:
    return f"Asked for {terms.name!r} with a lease of {terms.lease:g} s, from {terms.start:%d %B %Y, %H:%M} on"


def _weather(failure: Failure) -> str:
    if len(failure.world.messages) == 1:
        return "With one box, and nobody beside it"
    for fault in failure.went.played.met:
        what = {"pause": "stopped for a while", "crash": "killed"}[fault.kind.value]
        return f"With {fault.box.replace('box-a', 'box A')} {what}, in one order of two boxes"
    return "With nothing wrong, in one order of two boxes"


def _evidence(failure: Failure, told: str = "") -> Evidence:
    """Each step with the virtual seconds since the first message."""
    kept = of_replay(failure.schedule, failure.went.played)
    lines = [
        f"{(step.at - failure.world.terms.start).total_seconds():7.3f}  {step.option.who}  {step.option.step.label}"
        for step in failure.went.played.taken
    ]
    text = "\n".join([told or _what_fails(failure), *lines, failure.schedule])
    return Evidence(
        text, schedule=failure.schedule, wrong=failure.wrong, verdict=kept["verdict"], steps=kept["steps"]
    )


EXCLUDES = Check("excludes", "One holder at a time", 3, excludes)
OWN = Check("own", "It lays hands on nobody else’s key", 3, own)
DEAD = Check("dead", "A dead holder does not stop the shop", 2, dead)
HONEST = Check("honest", "What it can’t prevent", 2, honest)
ELSEWHERE = Check("elsewhere", "What it does, it does under other names and figures", 2, elsewhere, Shown.HIDDEN)
CHECKS = [EXCLUDES, OWN, DEAD, HONEST, ELSEWHERE]
