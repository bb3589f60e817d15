"""The demo's class: its student, its instructor, and every exercise of the catalogue given to it. Made by
`manage.py stage`, only where MARLOW_DEMO is set.
"""

from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db.models import F

from exercises.handed.exercise import catalogue
from grading.lateness import reckoned_anew
from grading.models import Assignment, Class, Enrolment

NAME = "The Wednesday class"
DUE = timedelta(days=14)
LATE_DAYS = 7


def furnish(now: datetime) -> Class:
    """Safe to call again: what is there stays. A deadline that is over is moved on where it stands as it was given
    here, DUE after the opening; one that somebody changed is theirs. Raises User.DoesNotExist where the demo's logins
    are not there yet.
    """
    of, _ = Class.objects.get_or_create(name=NAME)
    instructor = User.objects.get(username="instructor")
    of.instructors.add(instructor)
    Enrolment.objects.get_or_create(of=of, student=User.objects.get(username="student"), defaults={"since": now})
    rules = {"opens_at": now, "due_at": now + DUE, "late_days": LATE_DAYS}
    for slug in catalogue():
        Assignment.objects.get_or_create(of=of, exercise=slug, defaults=rules)
    untouched = of.assignments.filter(due_at__lte=now, due_at=F("opens_at") + DUE)
    over = Assignment.objects.filter(pk__in=[one.pk for one in untouched])
    with reckoned_anew(over, why="the demo was staged anew", by=instructor, now=now):
        over.update(opens_at=now, due_at=now + DUE)
    return of
