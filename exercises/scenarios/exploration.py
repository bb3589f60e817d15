"""Trying a corner in every order, with faults at every place, until it is exhausted or somebody says stop."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from exercises.lab.database import Database
from exercises.scenarios.corner import Corner
from exercises.scenarios.faults import Kind
from exercises.scenarios.menu import kinds
from exercises.scenarios.part import POLICIES, Bounds, Enough, Frontier, Part, Tally, explore
from exercises.scenarios.shorter import shorter
from exercises.scenarios.written import CannotReplay, read, replay, written
from marlow.clock import monotonic

__all__ = ["POLICIES", "Bounds", "CannotReplay", "Exploration", "Found", "read", "replay", "written"]


@dataclass(kw_only=True)
class Found(Tally):
    """What came of it, and within which bounds."""

    corner: Corner
    bounds: Bounds
    exhausted: bool = False
    stopped: str = ""  # why it ended before its end
    began: float = field(default_factory=monotonic)
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        setting = self.corner.setting
        shortest = self.shortest and {"schedule": self.shortest[0], "timeline": self.shortest[1].verdict["events"]}
        return {
            "lock": setting.lock,
            "settle": setting.settle,
            "schedules": self.schedules,
            "exhausted": self.exhausted,
            "bounds": self.told_bounds(),
            "failures": [{"what": list(what), "schedules": number} for what, number in self.failures.items()],
            "shortest": shortest,
            "seconds": round(self.seconds, 2),
        }

    def told_bounds(self) -> dict[str, Any]:
        """Within which the word "exhausted" holds, where it is said."""
        return {
            "boxes": self.corner.boxes,
            "orders": self.corner.orders,
            "messages": self.corner.messages,
            "latency": self.corner.latency,
            "lease": self.corner.setting.ttl,
            "question": self.corner.setting.question,
            "faults": self.bounds.faults,
            "menu": [str(kind) for kind in self._menu()],
            "policy": self.bounds.policy,
            "preemptions": self.bounds.preemptions,
            "stopped": self.stopped or None,
        }

    def _menu(self) -> list[Kind]:
        """The kinds that were tried, or were to be."""
        able = kinds(self.corner, missed=self.bounds.faults > 1) if self.bounds.faults else []
        return [kind for kind in able if kind in self.bounds.kinds]

    def conclude(self, stopped: str = "") -> None:
        if not stopped and self.bounds.faults and set(self.bounds.kinds) != set(Kind):
            stopped = "the menu has more faults than those that were asked for"
        self.stopped, self.exhausted = stopped, self.bounds.whole and not stopped
        self.seconds = monotonic() - self.began

    def demand_time(self) -> None:
        """Raises Enough where a ceiling is reached."""
        bounds = self.bounds
        if bounds.runs is not None and self.schedules >= bounds.runs and bounds.policy in ("all", "plain"):
            raise Enough(f"the ceiling of {bounds.runs} schedules was reached{self._so_far()}")
        if bounds.seconds is not None and monotonic() - self.began > bounds.seconds:
            raise Enough(f"the ceiling of {bounds.seconds:g} s was reached{self._so_far()}")

    def _so_far(self) -> str:
        """Of a search by preemptions, which of them it is through with."""
        if self.bounds.policy != "plain" or not self.preemptions:
            return ""
        return f"; every order with fewer than {self.preemptions} preemptions was tried"


class Exploration:
    """One exploration; `progress` is called after every run, and `stop` ends it after the next one."""

    def __init__(
        self, database: Database, corner: Corner, bounds: Bounds, progress: Callable[[Found], None] = lambda _: None
    ) -> None:
        self.database, self.corner, self.bounds, self.progress = database, corner, bounds, progress
        self.found = Found(corner=corner, bounds=bounds)
        self.frontier = Frontier()
        self.stopping = False

    def stop(self) -> None:
        """What was found so far is what `go` then returns."""
        self.stopping = True

    def go(self) -> Found:
        try:
            while part := self.frontier.take():
                self._explore(part)
            self.found.conclude()
        except Enough as stopped:
            self.found.conclude(str(stopped))
        if self.found.shortest:
            self.found.shortest = shorter(self.database, self.found.shortest)
        return self.found

    def _explore(self, part: Part) -> None:
        self.frontier.learn(part, explore(self.database, self.corner, self.bounds, part, self.found, self._look))

    def _look(self) -> None:
        self.progress(self.found)
        if self.stopping:
            raise Enough("it was stopped by hand")
        self.found.demand_time()
