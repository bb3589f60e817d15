"""A run as a short text: where somebody else went than whoever had gone last, and a mark of what was done.

`9=box-a/1,14=box-b/1~5d2f91c0`: at the ninth decision (counted from 0) box-a/1 goes, at the fourteenth box-b/1, and
else whoever went last, for as long as it can. A mark that is another's says that the code has changed since.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from exercises.lab.policies import Diverged, Staying, stay
from exercises.lab.scheduler import LabError, Taken


class Unreadable(LabError):
    """This text is no schedule."""


@dataclass(frozen=True)
class Schedule:
    turns: tuple[tuple[int, str], ...] = ()
    mark: str = ""

    def __str__(self) -> str:
        return ",".join(f"{number}={who}" for number, who in self.turns) + f"~{self.mark}"

    @classmethod
    def read(cls, text: str) -> "Schedule":
        """Raises Unreadable."""
        turns, tilde, mark = text.strip().partition("~")
        try:
            pairs = [part.split("=", 1) for part in turns.split(",") if part]
            read = cls(tuple((int(number), who) for number, who in pairs), mark)
        except ValueError as error:
            raise Unreadable(f"{text!r} is no schedule: it looks like 9=box-a/1,14=box-b/1~5d2f91c0.") from error
        if not tilde:
            raise Unreadable(f"{text!r} has no mark behind a ~: copy the whole schedule.")
        return read

    @classmethod
    def of(cls, taken: Sequence[Taken]) -> "Schedule":
        turns, decision, last = [], 0, ""
        for step in taken:
            if len(step.options) > 1:
                if step.chosen != stay(step.options, last):
                    turns.append((decision, step.option.who))
                decision += 1
            last = step.option.who
        return cls(tuple(turns), mark_of(taken))

    def policy(self) -> Staying:
        return Staying(dict(self.turns))

    def demand(self, taken: Sequence[Taken]) -> None:
        """Raise Diverged unless this is what was done."""
        mark = mark_of(taken)
        if self.mark and mark != self.mark:
            raise Diverged(
                f"The schedule {self} was recorded of other steps than these (~{mark}): the code has changed since. "
                "Look at what it does now, and record the schedule anew."
            )


def mark_of(taken: Sequence[Taken]) -> str:
    told = "\n".join(f"{step.at.isoformat()} {step.option.who} {step.option.step.label}" for step in taken)
    return hashlib.sha256(told.encode()).hexdigest()[:8]
