"""Which stretch of time a timeline shows, and how one moves along it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sweeper.findings import DOUBLE, FOREIGN, TOGETHER, Finding, Span
from sweeper.telling import LONDON

LONGEST = timedelta(hours=6)
YEARS = range(1970, 9999)  # beyond them there is no room to move
QUIET = timedelta(minutes=10)  # what is shown where nothing went wrong
BEFORE, AFTER = timedelta(seconds=15), timedelta(seconds=65)  # room for the words to the right of the last mark


@dataclass(frozen=True)
class Window:
    start: datetime
    end: datetime

    @property
    def length(self) -> timedelta:
        return self.end - self.start

    def moved(self, share: float) -> "Window":
        """Later by this share of its length; earlier for a negative one."""
        return Window(self.start + self.length * share, self.end + self.length * share)

    def grown(self, factor: float) -> "Window":
        """`factor` times as long, about the same middle; never shorter than 20 s or longer than LONGEST."""
        half = max(min(self.length * factor, LONGEST), timedelta(seconds=20)) / 2
        middle = self.start + self.length / 2
        return Window(middle - half, middle + half)


def asked_for(start: str, end: str) -> Window | None:
    """The window of two ISO times (London's where they name no zone); None unless both can be read, in order."""
    try:
        one, other = (datetime.fromisoformat(text) for text in (start, end))
        one, other = (moment if moment.tzinfo else moment.replace(tzinfo=LONDON) for moment in (one, other))
        one, other = one.astimezone(UTC), other.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    if not (one < other and one.year in YEARS and other.year in YEARS):
        return None
    return Window(one, min(other, one + LONGEST))


def around(spans: Sequence[Span], after: timedelta = AFTER) -> Window:
    """Just these runs (at least one), with room for words."""
    start = min(span.start for span in spans) - BEFORE
    end = max(max(span.end or span.start, span.start) for span in spans) + after
    return Window(start, min(end, start + LONGEST))


def closely(spans: Sequence[Span]) -> Window:
    """Just these runs (at least one) where they take seconds, not minutes: their length and a fifth of it."""
    start = min(span.start for span in spans)
    end = max(max(span.end or span.start, span.start) for span in spans)
    length = min(max(end - start, timedelta(seconds=1)), LONGEST)
    return Window(start - length * 0.05, start + length * 1.15)


def focus(spans: Sequence[Span], findings: Sequence[Finding]) -> Window | None:
    """Where one should look first: the runs that settled an order again, else that met, else the last ten minutes."""
    for kind in (DOUBLE, FOREIGN, TOGETHER):
        runs = {run for finding in findings if finding.kind == kind for run in finding.runs}
        if runs:
            return around(_met(spans, runs))
    if not spans:
        return None
    end = max(span.end or span.start for span in spans) + BEFORE
    return Window(max(end - QUIET, min(span.start for span in spans) - BEFORE), end)


def _met(spans: Sequence[Span], runs: Collection[UUID]) -> list[Span]:
    """The last of these runs and every run that was at work at the same time."""
    last = max((span for span in spans if span.run in runs), key=lambda span: span.start)
    return [
        span
        for span in spans
        if span.held and span.start <= (last.end or span.start) and (span.end is None or span.end >= last.start)
    ]
