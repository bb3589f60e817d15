"""What is looked for in an order, in which world, and what is said of a claim."""

from collections.abc import Sequence
from datetime import timedelta

from exercises.catalogue.own_lock.orders import Wrong
from exercises.catalogue.own_lock.playing import Went, World
from exercises.catalogue.own_lock.watch import AFTER_A_PAUSE, FOREIGN, TOGETHER
from exercises.scenarios.faults import Kind
from sweeper.events import Event
from sweeper.events import Kind as Happened

# A second message comes a millisecond before the leases of the first ones are over, or a millisecond after. Box A has
# one alone: it is the one that stands still or dies, and a second run of its own would be one more stranger.
EARLY = 0.002
LONE = World((2,), early=EARLY)
CALM = World((1, 1))
APART = World((1, 1), apart=True)
JUST_BEFORE = World(early=EARLY, strikes=(Kind.PAUSE,))
STILL = World(strikes=(Kind.PAUSE,))
KILLED = World(strikes=(Kind.CRASH,))

REFUSED_ALONE = "a run was told no, though nobody had the lock"
NOT_FREE = "a run was told no, though the one before had let go"
MIXED_UP = "a run was told no, though nobody had the lock that it asked for, but another one of another name"
STUCK = "a run was told no, though whoever had had the lock was dead and its lease was over"


def together(went: Went) -> Sequence[str]:
    return _seen(went, TOGETHER)


def after_a_pause(went: Went) -> Sequence[str]:
    return _seen(went, AFTER_A_PAUSE)


def foreign(went: Went) -> Sequence[str]:
    return _seen(went, FOREIGN)


def idle(went: Went) -> Sequence[str]:
    """Nobody but this box is there, so each of its runs is to be told yes."""
    events = went.played.events
    refused = [event.run for event in events if event.kind is Happened.REFUSED]
    return [REFUSED_ALONE if run == events[0].run else NOT_FREE for run in refused[:1]]


def mixed_up(went: Went) -> Sequence[str]:
    """Each box asks for a lock of its own, once."""
    return [MIXED_UP for event in went.played.events if event.kind is Happened.REFUSED]


def stuck(went: Went) -> Sequence[str]:
    """Whoever is told no, and no other run has begun within a lease, is told so for the sake of one that is over."""
    events = went.played.events
    begun = [event for event in events if event.kind is Happened.STARTED]
    lease = timedelta(seconds=went.world.terms.lease)
    return [STUCK for event in events if event.kind is Happened.REFUSED and not _somebody(event, begun, lease)]


def _somebody(refused: Event, begun: Sequence[Event], lease: timedelta) -> bool:
    return any(one.run != refused.run and refused.at - lease <= one.at <= refused.at for one in begun)


def _seen(went: Went, what: str) -> Sequence[str]:
    return [wrong for wrong in went.watch.wrong if wrong == what]


# What is looked for: in which worlds of the statement, in which others besides, and what is wrong there.
SOUGHT: Sequence[tuple[Sequence[World], Sequence[World], Wrong]] = (
    ([LONE], [], idle),
    ([], [APART], mixed_up),
    ([CALM, JUST_BEFORE], [], together),
    ([CALM, STILL], [], foreign),
    ([KILLED], [], stuck),
)

# --- What is left ---------------------------------------------------------------------------------------------------

PAUSE, CRASH, FOREIGN_DELETE = "two-holders-after-a-pause", "stuck-after-a-crash", "foreign-delete"
SHOWN: dict[str, tuple[Sequence[World], Wrong]] = {
    PAUSE: ([STILL], after_a_pause),
    CRASH: ([KILLED], stuck),
    FOREIGN_DELETE: ([CALM, STILL], foreign),
}
NEVER = {
    PAUSE: "In no order do two runs hold your lock after a pause. Then look at what a crash leaves of it.",
    FOREIGN_DELETE: "In no order does your lock lay hands on the key of another: that is prevented, and something "
    "else is left.",
    CRASH: "In no order is your lock taken for longer than its lease after a crash: that is prevented, and "
    "something else is left.",
    "nothing": "Something is left, of every lock over a Redis: think of the holder that stands still, and of the one "
    "that is dead.",
}
MEND = {
    FOREIGN_DELETE: "set a value of its own for every run, and compare and delete in one question",
    CRASH: "give the key its expiry in the question that sets it, and none that is longer than the lease",
}
WHY = {
    PAUSE: "No lock with a lease prevents it, for a holder does not feel that it stood still: what it writes has to "
    "be refused where it is written.",
    CRASH: "No lock without a lease prevents it, for nobody can tell a dead holder from a slow one.",
}
