"""The reduction, tried on small programs of chance: the orders that differ are all there, and each once.

Without a database: fibres that read and write names, and take and free a few locks, which others wait for.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from exercises.lab.explore import Path, Reduced, plain
from exercises.lab.fibre import Waiting, current
from exercises.lab.scheduler import Policy, Scheduler, Stuck, Taken, at
from exercises.lab.steps import Mode, Step, Touch, step
from exercises.scenarios.part import Beyond, Frontier, Part

START = datetime(2026, 1, 1, tzinfo=UTC)
Program = Sequence[Sequence[tuple[str, str]]]  # of each fibre: what it does, and to what

reads_and_writes = some.tuples(some.sampled_from(["read", "write"]), some.sampled_from("xy"))
a_lock_around = some.builds(
    lambda inner, lock: [("lock", lock), *inner, ("free", lock)],
    some.lists(reads_and_writes, max_size=1),
    some.sampled_from("mn"),
)
a_fibre = some.one_of(some.lists(reads_and_writes, min_size=1, max_size=3), a_lock_around)
programs = some.lists(a_fibre, min_size=2, max_size=3).filter(lambda program: sum(map(len, program)) <= 7)
often = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
MODES = {"read": Mode.READ, "write": Mode.WRITE, "lock": Mode.LOCK, "free": Mode.COMMIT}


class World:
    """One program, played under policies; an order is told by who came when to each name: its trace."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.traces: list[tuple[object, ...]] = []

    def play(self, policy: Policy) -> Sequence[Taken]:
        scheduler, queues = Scheduler(policy, START), dict[str, list[str]]()
        for number, deeds in enumerate(self.program):
            name = f"fibre-{number}"
            scheduler.start(name, name, partial(self._do, deeds, queues, name))
        end = ""
        try:
            scheduler.run()
        except Stuck:
            end = "stuck"
        self.traces.append((end, *trace(scheduler.taken)))
        return scheduler.taken

    def _do(self, deeds: Sequence[tuple[str, str]], queues: dict[str, list[str]], name: str) -> None:
        """Who asks for a lock queues up for it, as at a row of Postgres: the first of those who wait is next."""
        for deed, what in deeds:
            at(step(f"{deed} {what}", Touch(what, MODES[deed])))
            queue = queues.setdefault(what, [])
            if deed == "lock":
                queue.append(name)
                if queue[0] != name:
                    fibre = current()
                    assert fibre is not None
                    turn = partial(lambda queue: queue[0] == name, queue)
                    fibre.blocked(Waiting(turn, f"waits for {what}"), Step(f"lock {what} goes on"))
            elif deed == "free":
                queue.remove(name)


def trace(taken: Sequence[Taken]) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Of each name: its writers in their order, and the readers between them in no order."""
    by_name: dict[str, list[tuple[str, str]]] = {}
    for done in taken:
        deed, what, *goes_on = done.option.step.label.split()
        if goes_on:
            continue
        by_name.setdefault(what, []).append((deed, done.option.who))
    for what, deeds in sorted(by_name.items()):
        stretches: list[object] = []
        readers: list[str] = []
        for deed, who in deeds:
            if deed == "read":
                readers.append(who)
            else:
                stretches += [tuple(sorted(readers)), (deed, who)]
                readers = []
        yield what, (*stretches, tuple(sorted(readers)))


@often
@given(programs)
def test_it_leaves_out_no_order_that_differs(program: Program) -> None:
    """And finishes: every trace that plain search has."""
    reduced, whole = World(program), World(program)
    list(Reduced(reduced.play).runs())
    list(plain(whole.play))
    assert set(reduced.traces) == set(whole.traces)
    assert len(reduced.traces) <= len(whole.traces)


@often
@given(programs, some.lists(some.integers(1, 3), min_size=1, max_size=5))
def test_split_anywhere_it_leaves_out_none_either(program: Program, budgets: Sequence[int]) -> None:
    """Whoever explores a part stops after a few orders and leaves the rest to others, in any order."""
    whole, split, frontier = World(program), World(program), Frontier()
    list(plain(whole.play))
    given_out = 0
    while part := frontier.take():
        given_out += 1
        frontier.learn(part, explored(split, part.path, budgets[given_out % len(budgets)]))
    assert set(split.traces) == set(whole.traces)


def explored(world: World, start: Path, most: int) -> Beyond:
    reduced = Reduced(world.play, start)
    for number, _ in enumerate(reduced.runs(), start=1):
        if number == most:
            break
    return Beyond((), tuple(reduced.left()), tuple(reduced.wanted_before))


def test_two_that_never_meet_have_one_order() -> None:
    world = World([[("write", "x"), ("write", "x")], [("write", "y"), ("read", "y")]])
    assert list(Reduced(world.play).runs()) == [True]


def test_a_part_says_nothing_of_what_others_have() -> None:
    """Parts are each given out once."""
    frontier = Frontier()
    beyond = Beyond(wanted=(((), "fibre-1"), ((), "fibre-1")))
    first = frontier.learn(Part(), beyond)
    assert [part.path[0].who for part in first] == ["fibre-1"]
    assert frontier.learn(Part(), beyond) == []
