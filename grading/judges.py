"""What the judges of each box say of themselves: a row a box, for whoever looks after them."""

from datetime import datetime, timedelta

from django.db.models import Max, Min

from grading import queue
from grading.deadline import in_zone
from grading.models import Judge, Judging, State

SILENCE = timedelta(minutes=2)  # a judge looks for work every few seconds, and opens its laboratory within one


def opened(box: str, lacking: str, together: bool, now: datetime) -> None:
    """Its desk is open, and has found this. One statement: of two workers of a box the later one's word stands."""
    said = Judge(box=box[:60], seen_at=now, lacking=lacking[:2000], together=together)
    Judge.objects.bulk_create(
        [said],
        update_conflicts=True,
        unique_fields=["box"],
        update_fields=["seen_at", "lacking", "together"],
    )


def looked(box: str, now: datetime) -> None:
    """It has looked for work; a box whose desk was never opened has no row yet."""
    Judge.objects.filter(box=box[:60], seen_at__lt=now).update(seen_at=now)


def last_seen(now: datetime) -> datetime | None:
    """When any of them looked for work last; now, where one is at work. None: no desk was ever opened."""
    if Judging.objects.filter(state=State.RUNNING, lease_until__gt=now).exists():
        return now
    found: datetime | None = Judge.objects.aggregate(last=Max("seen_at"))["last"]
    return found


def last_word(now: datetime, zone: str = "UTC") -> str:
    """A sentence on it, for whoever waits."""
    seen = last_seen(now)
    if seen is None:
        return "No judge was seen yet."
    return f"A judge was last seen on {in_zone(seen, zone, seconds=True)}."


def missed(now: datetime) -> bool:
    """Whether something has waited for a while in which no judge was seen."""
    seen, since = last_seen(now), now - SILENCE
    if seen is not None and seen > since:
        return False
    waiting = Judging.objects.filter(queue.NOT_DROPPED, state=State.WAITING)
    first: datetime | None = waiting.aggregate(first=Min("asked_at"))["first"]
    return first is not None and first <= since
