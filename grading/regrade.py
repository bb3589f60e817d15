"""Judging over again: rows are added, the difference is shown, and only then it counts. What people said stays.

Arbiters: the regrade's row lock (applied or dropped, once), and `one_judging_counts`. Of two regrades of an attempt
the one that was asked for later wins: an older one leaves that attempt out.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Prefetch

from grading import queue
from grading.grade import RESULTS, enter, given, otherwise, told
from grading.models import Attempt, Class, Judging, Regrade, ReviewItem, State
from grading.sight import demand_teaches


class NotARegrade(ValueError):
    """It can't be done now. Says why, and what to do."""


@dataclass(frozen=True)
class Difference:
    """One check of one attempt that would be otherwise. `drop`: the machine gives fewer points than before.
    `person`: points of a person, which stand whatever the machine says; `disagrees`: it says otherwise than when they
    were given. A check that is gone takes its points with it, a person's too.
    """

    attempt: Attempt
    check: str
    before: str
    after: str
    drop: bool
    person: int | None
    disagrees: bool


def begin(attempts: Iterable[Attempt], scope: str, why: str, *, by: Any, now: datetime) -> Regrade:
    """Of one class. Asked for twice, by the same person in the same words, it is begun once: under the class's row
    lock. Raises NotYours, NotARegrade.
    """
    chosen = sorted({attempt.pk: attempt for attempt in attempts}.values(), key=lambda one: one.pk)
    classes = {attempt.submission.assignment.of_id for attempt in chosen}
    if len(classes) != 1:
        raise NotARegrade("Choose attempts of one class, and at least one.")
    of = Class.objects.get(pk=classes.pop())
    demand_teaches(by, of)
    scope, why = (text.replace("\x00", "").strip() for text in (scope, why))
    if not why:
        raise NotARegrade("Say why: the history will show it.")
    with transaction.atomic():
        Class.objects.select_for_update(of=("self",), no_key=True).get(pk=of.pk)
        begun = Regrade(of=of, scope=scope[:120], why=why[:200], begun_by=by, begun_at=now)
        if (same := _same(begun, chosen)) is not None:
            return same
        begun.save()
        for attempt in chosen:
            queue.ask(attempt, now, begun)
    return begun


def _same(begun: Regrade, chosen: Sequence[Attempt]) -> Regrade | None:
    """One that is open, of the same person, words and attempts."""
    open_ = Regrade.objects.filter(of=begun.of, begun_by=begun.begun_by, applied_at=None, dropped_at=None)
    for one in open_.filter(scope=begun.scope, why=begun.why):
        if set(one.judgings.values_list("attempt_id", flat=True)) == {attempt.pk for attempt in chosen}:
            return one
    return None


def differences(regrade: Regrade) -> list[Difference]:
    """What applying would change, of what has been judged so far; the drops first."""
    items: dict[int, dict[str, ReviewItem]] = defaultdict(dict)
    for item in ReviewItem.objects.filter(review__attempt__judgings__regrade=regrade).select_related("review"):
        items[item.review.attempt_id][item.check_name] = item
    found = [one for new, old in _pairs(regrade) for one in _between(new, old, items[new.attempt_id])]
    return sorted(found, key=lambda one: not one.drop)


def waiting(regrade: Regrade) -> int:
    """Judgings of it that are still to come."""
    return regrade.judgings.filter(state__in=[State.WAITING, State.RUNNING]).count()


def parked(regrade: Regrade) -> int:
    """Judgings of it that the machine gave up: applying leaves those attempts as they are."""
    return regrade.judgings.filter(state=State.PARKED).count()


def apply(regrade: Regrade, *, by: Any, now: datetime) -> int:
    """Let the new results count; those that could not be judged, or were judged anew since, stay as they are.
    Returns how many attempts count anew. A second time does nothing. Raises NotYours, NotARegrade.
    """
    demand_teaches(by, regrade.of)
    with transaction.atomic():
        regrade = _locked(regrade)
        if regrade.applied_at:
            return 0
        if regrade.dropped_at:
            raise NotARegrade("This regrade was dropped: begin another.")
        if left := waiting(regrade):
            raise NotARegrade(f"{left} of it are still to be judged: apply it when they are done.")
        pairs = _pairs(regrade)
        for new, old in pairs:
            _swap(new, old, f"regrade: {regrade.why}", by, now)
        regrade.applied_by, regrade.applied_at = by, now
        regrade.save(update_fields=["applied_by", "applied_at"])
    return len(pairs)


def drop(regrade: Regrade, *, by: Any, now: datetime) -> None:
    """It will never count; what still waits is not judged. A second time does nothing. Raises NotYours,
    NotARegrade.
    """
    demand_teaches(by, regrade.of)
    with transaction.atomic():
        regrade = _locked(regrade)
        if regrade.applied_at:
            raise NotARegrade("This regrade has been applied: begin another, and apply that.")
        Regrade.objects.filter(pk=regrade.pk, dropped_at=None).update(dropped_at=now)


def _locked(regrade: Regrade) -> Regrade:
    """With the judgings of its attempts, in one order: a queue that finishes one of them, or an unpark, waits."""
    locked = Regrade.objects.select_for_update(of=("self",), no_key=True).get(pk=regrade.pk)
    attempts = regrade.judgings.values("attempt_id")
    list(Judging.objects.select_for_update(of=("self",), no_key=True).filter(attempt__in=attempts).order_by("pk"))
    return locked


def _swap(new: Judging, old: Judging | None, why: str, by: Any, now: datetime) -> None:
    Judging.objects.filter(attempt=new.attempt_id, counts=True).update(counts=False)
    Judging.objects.filter(pk=new.pk).update(counts=True)
    Attempt.objects.filter(pk=new.attempt_id).update(costs=True)  # it has a verdict, whatever it had before
    before = {one.name: told(one) for one in old.results.all()} if old else {}
    enter(new, before, why, by, now)


def _pairs(regrade: Regrade) -> list[tuple[Judging, Judging | None]]:
    """The new judging of each attempt, and the one that counts so far, where that was not asked for later."""
    rows = Judging.objects.defer("so_far").prefetch_related(Prefetch("results", RESULTS))
    counting = {one.attempt_id: one for one in rows.filter(counts=True, attempt__judgings__regrade=regrade)}
    done = rows.filter(regrade=regrade, state=State.DONE).select_related("attempt__submission__student")
    pairs = [(new, counting.get(new.attempt_id)) for new in done.defer("attempt__answers").order_by("pk")]
    return [(new, old) for new, old in pairs if old is None or old.pk < new.pk]


def _between(new: Judging, old: Judging | None, items: Mapping[str, ReviewItem]) -> Iterator[Difference]:
    before = {one.name: one for one in old.results.all()} if old else {}
    after = {one.name: one for one in new.results.all()}
    for name in dict.fromkeys([*before, *after]):
        was, will, item = before.get(name), after.get(name), items.get(name)
        if told(was) != told(will):
            yield Difference(
                new.attempt,
                name,
                told(was) or "nothing",
                told(will) or "nothing",
                drop=(will.points if will else 0) < (was.points if was else 0),
                person=given(will, item) if item and will else None,
                disagrees=item is not None and otherwise(item, will),
            )
