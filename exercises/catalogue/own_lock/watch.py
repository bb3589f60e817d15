"""Who holds the lock, whose key is whose, and what must not be: kept on the judge's side, where no answer comes."""

from dataclasses import dataclass, field
from datetime import datetime

from exercises.handed.checks import CouldNotDecide

TOGETHER = "two runs held the lock at once, and the lease of neither was over"
AFTER_A_PAUSE = "two runs held the lock at once, for one had stood still for longer than its lease"
FOREIGN = "a run removed, overwrote or shortened the key of another, which held the lock"


@dataclass(frozen=True)
class Held:
    """The lock of this name, and until when its lease lasts."""

    name: str
    until: datetime


@dataclass
class Watch:
    """Of one playing. A run holds the lock from the yes that it is told until its release asks its first question:
    from then on it does nothing more under the lock. A lease runs from the moment at which it is asked for.
    """

    holders: dict[str, Held] = field(default_factory=dict)  # by run
    wrote: dict[str, str] = field(default_factory=dict)  # by key: whose run wrote it last
    wrong: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)  # sentences on what was the program's own failure
    undecided: str = ""

    def holds(self, run: str, name: str, now: datetime, until: datetime) -> None:
        """This run is told yes. Whoever holds a lock of another name is nobody's concern."""
        for held in self.holders.values():
            if held.name == name:
                self.wrong.append(TOGETHER if now <= min(held.until, until) else AFTER_A_PAUSE)
        self.holders[run] = Held(name, until)

    def lets_go(self, run: str) -> None:
        """Or is dead."""
        self.holders.pop(run, None)

    def writes(self, run: str, key: str) -> None:
        self.wrote[key] = run

    def meddles(self, run: str, key: str, there: bool, now: datetime) -> bool:
        """This run alters or removes this key, if it is there; whether it is somebody else's."""
        owner = self.wrote.get(key, run) if there else run
        if owner != run and owner in self.holders and now <= self.holders[owner].until:
            self.wrong.append(FOREIGN)
        return owner != run

    def demand_decided(self) -> None:
        """Raises CouldNotDecide: a sweep makes an error of its own of it, and this is where it comes up again."""
        if self.undecided:
            raise CouldNotDecide(self.undecided)
