"""Every order in which fibres can meet, or as many as there is time for.

`every_order` tries them all, but for those that differ only in the order of steps that do not depend on each other
(dynamic partial-order reduction with sleep sets: Flanagan and Godefroid, POPL 2005; Godefroid, 1996). `plain` tries
them all one after another, with at most so many preemptions (iterated as in CHESS: Musuvathi and Qadeer, PLDI 2007).
Both run the thing itself, from its beginning, once for each order.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from exercises.lab.policies import stay
from exercises.lab.scheduler import LabError, Option, Policy, Taken
from exercises.lab.steps import Step


class Pruned(LabError):
    """Whatever goes next, this order is like one that was tried."""


# Plays the thing under a policy and returns what was done; whatever it found is its own business.
Play = Callable[[Policy], Sequence[Taken]]


@dataclass
class Node:
    """A point at which somebody had to go next."""

    options: dict[str, Step]
    sleeping: dict[str, Step]  # who need not go: what follows was tried
    chosen: str = ""
    done: dict[str, Step] = field(default_factory=dict)
    wanted: set[str] = field(default_factory=set)  # who must have gone here too


class _Following:
    """Goes along the nodes there are, and makes new ones behind them."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes, self.depth, self.last = nodes, 0, ""

    def choose(self, options: Sequence[Option]) -> int:
        if self.depth == len(self.nodes):
            self.nodes.append(self._node(options))
        node = self.nodes[self.depth]
        self.depth += 1
        for place, option in enumerate(options):
            if option.who == node.chosen:
                self.last = option.who
                return place
        raise LabError(
            f"At step {self.depth - 1} {node.chosen} could go on before, and now there are only "
            f"{', '.join(option.who for option in options)}: something here reads time or chance by itself."
        )

    def _node(self, options: Sequence[Option]) -> Node:
        sleeping = _asleep_behind(self.nodes[-1]) if self.nodes else {}
        awake = [option for option in options if option.who not in sleeping]
        if not awake:
            raise Pruned("Everybody here has been tried.")
        chosen = awake[stay(awake, self.last)].who
        return Node({option.who: option.step for option in options}, sleeping, chosen, wanted={chosen})


def _asleep_behind(node: Node) -> dict[str, Step]:
    step = node.options[node.chosen]
    tried = {**node.sleeping, **{who: done for who, done in node.done.items() if who != node.chosen}}
    return {who: other for who, other in tried.items() if who in node.options and not other.depends_on(step)}


def every_order(play: Play) -> Iterator[bool]:
    """One run for each element: whether it came to its end (True), or was like another one (False).

    When this ends by itself, the space is exhausted: as far as `Step.touches` tell which steps depend on each other.
    """
    nodes: list[Node] = []
    while True:
        try:
            _want_races(nodes, play(_Following(nodes)))
            ended = True
        except Pruned:
            ended = False
        yield ended
        if not _next(nodes):
            return


def _next(nodes: list[Node]) -> bool:
    """Go back to the last node at which somebody is still to go."""
    while nodes:
        node = nodes[-1]
        if node.chosen:
            node.done[node.chosen] = node.options[node.chosen]
        left = [who for who in node.options if who in node.wanted - set(node.done) - set(node.sleeping)]
        if left:
            node.chosen = left[0]
            return True
        nodes.pop()
    return False


def _want_races(nodes: list[Node], taken: Sequence[Taken]) -> None:
    """Where two steps that depend on each other could have come the other way round, want that to be tried."""
    clocks: list[dict[str, int]] = []  # of each step: how many steps of everybody come before it, or are it
    counts: dict[str, int] = {}
    before: dict[str, dict[str, int]] = {}  # of each fibre: the clock of its last step
    numbers: list[int] = []  # of each step: which of its fibre's it is
    for place, step in enumerate(taken):
        who = step.option.who
        clock = dict(before.get(who, {}))
        if step.freed_by is not None:
            _join(clock, clocks[step.freed_by])
        for earlier in range(place - 1, -1, -1):
            other = taken[earlier]
            if other.option.who == who or not other.option.step.depends_on(step.option.step):
                continue
            if numbers[earlier] > clock.get(other.option.who, 0) and other.at == step.at:
                _want(nodes[earlier], who)
            _join(clock, clocks[earlier])
        counts[who] = counts.get(who, 0) + 1
        clock[who] = counts[who]
        numbers.append(counts[who])
        clocks.append(clock)
        before[who] = clock


def _want(node: Node, who: str) -> None:
    node.wanted |= {who} if who in node.options else set(node.options)


def _join(clock: dict[str, int], other: dict[str, int]) -> None:
    for who, count in other.items():
        if count > clock.get(who, 0):
            clock[who] = count


class _Prefix:
    """Goes along these choices, and from there on stays with whoever went last."""

    def __init__(self, prefix: Sequence[str]) -> None:
        self.prefix, self.depth, self.last = prefix, 0, ""

    def choose(self, options: Sequence[Option]) -> int:
        place = stay(options, self.last)
        if self.depth < len(self.prefix):
            place = [option.who for option in options].index(self.prefix[self.depth])
        self.depth += 1
        self.last = options[place].who
        return place


def plain(play: Play, preemptions: int | None = None) -> Iterator[int]:
    """One run for each element: how many preemptions it had. None: no bound, and exhausted when this ends."""
    waiting: list[tuple[list[str], int]] = [([], 0)]
    while waiting:
        prefix, spent = waiting.pop()
        taken = play(_Prefix(prefix))
        yield spent
        path = [step.option.who for step in taken]
        for place in range(len(prefix), len(taken)):
            waiting += [
                ([*path[:place], who], spent + cost)
                for who, cost in _others(taken, place)
                if preemptions is None or spent + cost <= preemptions
            ]


def _others(taken: Sequence[Taken], place: int) -> Iterator[tuple[str, int]]:
    """Who else could have gone here, and whether that would have been a preemption."""
    last = taken[place - 1].option.who if place else ""
    names = [option.who for option in taken[place].options]
    for who in names:
        if who != taken[place].option.who:
            yield who, int(last in names and who != last)
