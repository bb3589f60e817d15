"""The same failure in fewer boxes, rows, messages, faults and turns."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from exercises.lab.database import Database
from exercises.lab.explore import every_order
from exercises.lab.policies import Diverged, Staying
from exercises.lab.scheduler import Policy, Taken
from exercises.scenarios.corner import Corner, Played, play
from exercises.scenarios.faults import Fault
from exercises.scenarios.written import read, written

LOOKED_FOR = 200  # orders of a smaller corner in which the same failure is looked for


def shorter(database: Database, failure: tuple[str, Played]) -> tuple[str, Played]:
    """The same failure with fewer boxes, orders, messages, faults and turns, as far as one less at a time goes."""
    best = failure
    while smaller := next(_smaller(database, best), None):
        best = smaller
    return best


def _smaller(database: Database, failure: tuple[str, Played]) -> Iterator[tuple[str, Played]]:
    """A smaller corner is searched anew, for its orders are others; a fault or a turn is left out as it is."""
    corner, faults, schedule = read(failure[0])
    for name, least in (("boxes", 2), ("orders", 1), ("messages", 1)):
        if getattr(corner, name) > least:
            fewer = replace(corner, **{name: getattr(corner, name) - 1})
            yield from _in(database, fewer, faults, failure)
    for place in range(len(faults)):
        yield from _in(database, corner, faults[:place] + faults[place + 1 :], failure)
    for place in range(len(schedule.turns)):
        turns = schedule.turns[:place] + schedule.turns[place + 1 :]
        with suppress(Diverged):
            yield from _the_same(corner, faults, play(database, corner, Staying(dict(turns)), faults), failure)


def _in(
    database: Database, corner: Corner, faults: tuple[Fault, ...], failure: tuple[str, Played]
) -> Iterator[tuple[str, Played]]:
    """The first orders of this corner that fail in the same way."""
    found: list[tuple[str, Played]] = []

    def one(policy: Policy) -> Sequence[Taken]:
        played = play(database, corner, policy, faults)
        found.extend(_the_same(corner, faults, played, failure))
        return played.taken

    for _ in islice(every_order(one), LOOKED_FOR):
        if found:
            yield found[0]
            return


def _the_same(
    corner: Corner, faults: tuple[Fault, ...], played: Played, failure: tuple[str, Played]
) -> Iterator[tuple[str, Played]]:
    """This one, if it went wrong in every way in which the other did, however often."""
    kinds = {sentence.rpartition(" (")[0] for sentence in failure[1].wrong}
    if kinds <= {sentence.rpartition(" (")[0] for sentence in played.wrong}:
        yield written(corner, faults, played.taken), played
