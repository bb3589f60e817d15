"""The queue of judgings: rows of the database, moved by guarded updates. A message is only a nudge.

    waiting --claim--> running --finish--> done
       ^                  |
       +---give_back------+--third time--> parked

Arbiter: a claim locks the row (`skip locked`: two never wait for one another) and writes a token and a lease;
whatever comes after asks for that very token, under the row's lock. Once the lease is over anybody may give it back.
"""

import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q

from exercises.handed.checks import Check, Outcome, Result
from grading import grade, nudge
from grading.models import Attempt, CheckResult, Judging, Regrade, State

GIVEN_BACK = 3  # attempts of one submission that cost nothing because the judge failed; further ones an instructor's
FIRST_DELAY = 5.0  # real seconds before a second try; each further one waits twice as long
NOT_DROPPED = Q(regrade=None) | Q(regrade__dropped_at=None)


def ask(attempt: Attempt, now: datetime, regrade: Regrade | None = None) -> Judging:
    """Into the queue, within the caller's transaction; after its commit a worker is nudged."""
    judging = Judging.objects.create(
        attempt=attempt, regrade=regrade, counts=regrade is None, asked_at=now, not_before=now
    )
    nudge.after_commit()
    return judging


# What was handed in, then regrades, each the oldest first.
ORDER = "judging.regrade_id is not null, judging.asked_at, judging.id"

# In: a judging's number, twice, null for all of them. Out: number and place of those that wait. A claim gives way to
# students with fewer running besides, which nobody can tell beforehand.
PLACES = f"""
select id, place from (
    select judging.id, row_number() over (order by {ORDER}) as place
    from grading_judging judging
    left join grading_regrade regrade on regrade.id = judging.regrade_id
    where judging.state = 'waiting' and regrade.dropped_at is null
) waiting
where %s::bigint is null or id = %s
order by place
"""  # noqa: S608  a constant


def position(judging: Judging) -> int | None:
    """How many of those that wait come before it, and itself; None where it does not wait."""
    return places(judging.pk).get(judging.pk) if judging.state == State.WAITING else None


def places(of: int | None = None) -> dict[int, int]:
    """By judging, the first one first: of everything that waits, or of one."""
    with connection.cursor() as cursor:
        cursor.execute(PLACES, [of, of])
        return dict(cursor.fetchall())


def anything(now: datetime) -> bool:
    """Whether something may be waiting for a worker: a claim says for certain."""
    return Judging.objects.filter(NOT_DROPPED, state=State.WAITING, not_before__lte=now).exists()


# In: now, now, cap of a student. Out: the judging to take, locked: of the students with the fewest running the one
# who has waited longest. Rows that somebody else is claiming just now are passed over.
NEXT = f"""
select judging.id
from grading_judging judging
join grading_attempt attempt on attempt.id = judging.attempt_id
join grading_submission submission on submission.id = attempt.submission_id
left join grading_regrade regrade on regrade.id = judging.regrade_id
cross join lateral (
    select count(*) as many from grading_judging other
    join grading_attempt theirs on theirs.id = other.attempt_id
    join grading_submission whose on whose.id = theirs.submission_id
    where other.state = 'running' and other.lease_until > %s and whose.student_id = submission.student_id
) running
where judging.state = 'waiting' and judging.not_before <= %s and regrade.dropped_at is null and running.many < %s
order by running.many, {ORDER}
limit 1
for update of judging skip locked
"""  # noqa: S608  a constant
CLAIMS = 0x677261  # the advisory lock that lets claims count a student's running judgings one after another


def claim(box: str, now: datetime) -> Judging | None:
    """The next one, with a token and a lease; None where nothing may be taken just now."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("select pg_advisory_xact_lock(%s)", [CLAIMS])
            cursor.execute(NEXT, [now, now, settings.GRADING_CAP])
            row = cursor.fetchone()
        if row is None:
            return None
        Judging.objects.filter(pk=row[0]).update(
            state=State.RUNNING,
            token=uuid.uuid4(),
            lease_until=_lease(now),
            tries=F("tries") + 1,
            box=box[:60],
            began_at=now,
            doing="",
        )
        return Judging.objects.select_related("attempt__submission__assignment").get(pk=row[0])


def last_try(judging: Judging) -> bool:
    """Whether it is parked if the judge fails this time too."""
    return bool(judging.tries >= settings.GRADING_TRIES)


def renew(judging: Judging, now: datetime, doing: str | None = None) -> bool:
    """A longer lease, and what is being done just now. False: it is somebody else's by now, so stop."""
    words = {} if doing is None else {"doing": doing[:120]}
    return bool(_own(judging).update(lease_until=_lease(now), **words))


def keep(judging: Judging, so_far: dict[str, Any], now: datetime) -> bool:
    """What its checks have said until now, for whoever goes on with it if this worker is lost. A try that got
    further is the first one again: a poison check is parked all the same, and a long judging outlives many a worker.
    False: it is somebody else's by now.
    """
    ours = bool(_own(judging).update(so_far=so_far, tries=1, lease_until=_lease(now)))
    judging.tries = 1
    return ours


def finish(
    judging: Judging, results: Iterable[tuple[Check, Result]], versions: dict[str, Any], now: datetime
) -> bool:
    """Its results, if it is still ours: one transaction, with the attempt's history. Results that decide nothing
    send it back for another try, and are kept with the last one, for an instructor. False: not ours any more.

    `versions`: checks_version, digest, marlow, seed.
    """
    told = list(results)
    open_ = [check.title for check, result in told if result.outcome is Outcome.UNDECIDED]
    if open_ and not last_try(judging):
        why = "; ".join(f"{check.title}: {result.sentence}" for check, result in told if check.title in open_)
        return give_back(judging, why, now)
    with transaction.atomic():
        held = _own(judging).select_for_update(of=("self",)).first()
        if held is None:
            return False
        CheckResult.objects.bulk_create(_row(judging, *one, place) for place, one in enumerate(told))
        _own(judging).update(
            state=State.PARKED if open_ else State.DONE,
            failed=f"Could not decide: {', '.join(open_)}." if open_ else "",
            ended_at=now,
            token=None,
            lease_until=None,
            doing="",
            so_far={},
            **versions,
        )
        if open_:
            _costs_nothing(held)  # a regrade may count instead of it by now
        # Read anew: whoever called keeps the token for as long as this may still be rolled back.
        grade.judged(Judging.objects.get(pk=judging.pk), now)
    judging.refresh_from_db()
    return True


def give_back(judging: Judging, why: str, now: datetime) -> bool:
    """The judge failed: another try after a while, or parked where an instructor sees it; no attempt is used up then.
    False: not ours any more.
    """
    with transaction.atomic():
        held = _own(judging).select_for_update(of=("self",)).first()
        return held is not None and _back(held, why, now)


def reclaim(now: datetime) -> int:
    """Give back whatever a worker left behind: its lease is over. Returns how many."""
    with transaction.atomic():
        left = Judging.objects.select_for_update(of=("self",), skip_locked=True)
        held = list(left.filter(state=State.RUNNING, lease_until__lte=now))
        return sum(_back(one, f"The worker on {one.box} stopped before the end.", now) for one in held)


def unpark(judging: Judging, now: datetime) -> bool:
    """Try again from the beginning; results that decided nothing are replaced. For instructors."""
    with transaction.atomic():
        held = Judging.objects.select_for_update(of=("self",)).filter(pk=judging.pk, state=State.PARKED).first()
        if held is None:
            return False
        held.results.all().delete()
        Judging.objects.filter(pk=held.pk).update(state=State.WAITING, tries=0, not_before=now, failed="", so_far={})
        if held.counts:
            Attempt.objects.filter(pk=held.attempt_id).update(costs=True)
        nudge.after_commit()
    return True


def _back(held: Judging, why: str, now: datetime) -> bool:
    """Of a row that is locked."""
    last = last_try(held)
    if last:
        _costs_nothing(held)
    wait = timedelta(seconds=FIRST_DELAY * 2 ** (held.tries - 1))
    return bool(
        Judging.objects.filter(pk=held.pk).update(
            state=State.PARKED if last else State.WAITING,
            failed=why[:2000],
            token=None,
            lease_until=None,
            doing="",
            not_before=now + wait,
            ended_at=now if last else None,
        )
    )


def _costs_nothing(judging: Judging) -> None:
    """So often and no more: a program that keeps the judge waiting could ask the other checks for ever otherwise."""
    if not judging.counts:
        return
    made = judging.attempt.submission.made.exclude(pk=judging.attempt_id)
    if made.filter(costs=False).count() < GIVEN_BACK:
        Attempt.objects.filter(pk=judging.attempt_id).update(costs=False)


def _own(judging: Judging) -> Any:
    return Judging.objects.filter(pk=judging.pk, state=State.RUNNING, token=judging.token)


def _lease(now: datetime) -> datetime:
    return now + timedelta(seconds=settings.GRADING_LEASE)


def _row(judging: Judging, check: Check, result: Result, place: int) -> CheckResult:
    return CheckResult(
        judging=judging,
        place=place,
        name=check.name,
        title=check.title,
        outcome=result.outcome.value,
        points=result.points,
        of=check.points,
        sentence=result.sentence,
        shown=check.shown.value,
        evidence=result.evidence.as_json(),
    )
