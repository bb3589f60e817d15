"""Every order in which fibres can meet, or as many as there is time for.

`Reduced` tries them all, but for those that differ only in the order of steps that do not depend on each other
(dynamic partial-order reduction with sleep sets: Flanagan and Godefroid, POPL 2005; Godefroid, 1996). `plain` tries
them one after another, first those without a preemption, then those with one (iterated as in CHESS: Musuvathi and
Qadeer, PLDI 2007).
Both run the thing itself, from its beginning, once for each order.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from exercises.lab.policies import stay
from exercises.lab.scheduler import BrokenOff, LabError, Option, Policy, Taken
from exercises.lab.steps import Step


class Pruned(BrokenOff):
    """Whatever goes next, this order is like one that was tried."""


# Plays the thing under a policy and returns what was done; whatever it found is its own business.
Play = Callable[[Policy], Sequence[Taken]]


@dataclass(frozen=True)
class Branch:
    """One choice on the way into the tree of orders. `tried`: who had been opened there before, and is somebody
    else's to follow.
    """

    who: str
    tried: tuple[str, ...] = ()


Path = tuple[Branch, ...]


@dataclass(frozen=True)
class Fork:
    """A point in the tree, reached by `path`, at which these have been opened and those are still to be followed."""

    path: Path
    opened: tuple[str, ...]
    pending: tuple[str, ...]


@dataclass
class Node:
    """A point at which somebody had to go next."""

    options: dict[str, Step]
    sleeping: dict[str, Step]  # who need not go: what follows was tried
    chosen: str = ""
    done: dict[str, Step] = field(default_factory=dict)
    wanted: set[str] = field(default_factory=set)  # who must have gone here too

    @property
    def left(self) -> list[str]:
        """Who is still to go here."""
        over = {*self.done, *self.sleeping, self.chosen}
        return [who for who in self.options if who in self.wanted and who not in over]


class Reduced:
    """Every order behind `start`, but for those that differ only in the order of steps that do not depend on each
    other (dynamic partial-order reduction with sleep sets). From the beginning of the tree that is all there are.

    `runs` may be left at any element, and `left` then says what is still to be followed, each by anybody: the tree is
    split. `wanted_before` are choices on the way to `start` that ought to be followed as well, if nobody does.
    """

    def __init__(self, play: Play, start: Path = ()) -> None:
        self.play, self.start = play, start
        self.nodes: list[Node] = []
        self.wanted_before: list[tuple[Path, str]] = []

    def runs(self) -> Iterator[bool]:
        """One run for each element: whether it came to its end (True), or was like another one (False).

        When this ends by itself, the space is exhausted: as far as `Step.touches` tell which steps depend on each
        other.
        """
        while True:
            fresh = max(len(self.nodes) - 1, 0)  # up to here the last run went the same way
            try:
                taken, ended = self.play(_Following(self.nodes, self.start)), True
            except Pruned as pruned:
                taken, ended = pruned.taken, False
            self._want_races(taken, fresh)
            yield ended
            if not self._next():
                return

    def left(self) -> list[Fork]:
        """What is still to be followed behind `start`; nothing once `runs` has ended."""
        path, forks = list(self.start), []
        for node in self.nodes[len(self.start) :]:
            done = tuple(who for who in node.done if who != node.chosen)
            if node.left:
                forks.append(Fork(tuple(path), (*done, node.chosen), tuple(node.left)))
            path.append(Branch(node.chosen, done))
        return forks

    def _next(self) -> bool:
        """Go back to the last node at which somebody is still to go."""
        while len(self.nodes) > len(self.start):
            node = self.nodes[-1]
            left, node.done[node.chosen] = node.left, node.options[node.chosen]
            if left:
                node.chosen = left[0]
                return True
            self.nodes.pop()
        return False

    def _want_races(self, taken: Sequence[Taken], fresh: int) -> None:
        """Where two steps that depend on each other could have come the other way round, want that to be tried: by
        one of those who can begin what leads there (source sets: Abdulla et al., POPL 2014).
        """
        for place, beginners in _races(taken, fresh):
            node = self.nodes[place]
            able = [who for who in beginners if who in node.options]
            if not able:
                able = list(node.options)
            elif {*node.wanted, *node.sleeping}.intersection(able):
                continue
            else:
                able = able[:1]
            if place < len(self.start):
                unseen = [who for who in able if who not in node.wanted and who not in node.sleeping]
                self.wanted_before += [(self.start[:place], who) for who in unseen]
            node.wanted.update(able)


class _Following:
    """Goes along the nodes there are, and makes new ones behind them."""

    def __init__(self, nodes: list[Node], start: Path) -> None:
        self.nodes, self.start, self.depth, self.last = nodes, start, 0, ""

    def choose(self, options: Sequence[Option]) -> int:
        if self.depth == len(self.nodes):
            self.nodes.append(self._node({option.who: option.step for option in options}))
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

    def _node(self, options: dict[str, Step]) -> Node:
        sleeping = _asleep_behind(self.nodes[-1]) if self.nodes else {}
        if self.depth < len(self.start):
            branch = self.start[self.depth]
            done = {who: options[who] for who in branch.tried if who in options}
            return Node(options, sleeping, branch.who, done, wanted={branch.who, *branch.tried})
        awake = [Option(who, step) for who, step in options.items() if who not in sleeping]
        if not awake:
            raise Pruned("Everybody here has been tried.")
        chosen = awake[stay(awake, self.last)].who
        return Node(options, sleeping, chosen, wanted={chosen})


def _asleep_behind(node: Node) -> dict[str, Step]:
    step = node.options[node.chosen]
    tried = {**node.sleeping, **{who: done for who, done in node.done.items() if who != node.chosen}}
    return {who: other for who, other in tried.items() if who in node.options and not other.depends_on(step)}


def every_order(play: Play) -> Iterator[bool]:
    """`Reduced(play).runs()`: all there are."""
    return Reduced(play).runs()


def _races(taken: Sequence[Taken], fresh: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Each place whose step could have come behind a later one that depends on it, and who could then begin there.
    Of later steps only those from `fresh` on.
    """
    clocks: list[dict[str, int]] = []  # of each step: how many steps of everybody come before it, or are it
    before: dict[str, dict[str, int]] = {}  # of each fibre: the clock of its last step
    numbers: list[int] = []  # of each step: which of its fibre's it is
    for place, step in enumerate(taken):
        who = step.option.who
        clock = dict(before.get(who, {}))
        if step.freed_by is not None:
            _join(clock, clocks[step.freed_by])
        races = []
        for earlier in range(place - 1, -1, -1):
            other = taken[earlier]
            if other.option.who == who or not other.option.step.depends_on(step.option.step):
                continue
            if numbers[earlier] > clock.get(other.option.who, 0) and other.at == step.at:
                races.append(earlier)
            _join(clock, clocks[earlier])
        clock[who] = clock.get(who, 0) + 1
        numbers.append(clock[who])
        clocks.append(clock)
        before[who] = clock
        if place >= fresh:
            for earlier in races:
                yield earlier, _beginners(taken, clocks, numbers, earlier, place)


def _beginners(
    taken: Sequence[Taken], clocks: Sequence[dict[str, int]], numbers: Sequence[int], earlier: int, later: int
) -> list[str]:
    """Who can go first, of those who lead to the later step without the earlier one: whose first step among these
    comes behind none of the others.
    """
    names = [step.option.who for step in taken]
    without = [
        place
        for place in range(earlier + 1, later + 1)
        if place == later or clocks[place].get(names[earlier], 0) < numbers[earlier]
    ]
    firsts: dict[str, int] = {}
    for place in without:
        firsts.setdefault(names[place], place)
    return [
        who
        for who, first in firsts.items()
        if not any(place < first and clocks[first].get(names[place], 0) >= numbers[place] for place in without)
    ]


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
    """One run for each element: how many preemptions it had; those with none first, then those with one, and so on.
    None: no bound, and exhausted when this ends.
    """
    waiting: dict[int, list[tuple[Sequence[str], int, str]]] = {0: [((), 0, "")]}
    while waiting:
        spent = min(waiting)
        path, place, instead = waiting[spent].pop()
        if not waiting[spent]:
            del waiting[spent]
        prefix = [*path[:place], *([instead] if instead else [])]
        taken = play(_Prefix(prefix))
        yield spent
        path = [step.option.who for step in taken]
        for place in range(len(prefix), len(taken)):
            for who, cost in _others(taken, place):
                if preemptions is None or spent + cost <= preemptions:
                    waiting.setdefault(spent + cost, []).append((path, place, who))


def _others(taken: Sequence[Taken], place: int) -> Iterator[tuple[str, int]]:
    """Who else could have gone here, and whether that would have been a preemption."""
    last = taken[place - 1].option.who if place else ""
    names = [option.who for option in taken[place].options]
    for who in names:
        if who != taken[place].option.who:
            yield who, int(last in names and who != last)
