"""Classes, what was handed in, what became of it, and who changed what. Times are real ones, stored in UTC.

Arbiters: attempts are numbered under their submission's row lock and unique by constraint; a judging is claimed by a
guarded update with a token and a lease, and its results are written in the transaction that finds the token still its
own; only one judging of an attempt counts, by a partial unique index; only one release of an assignment stands.
"""

import uuid
from typing import Any
from zoneinfo import available_timezones

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q

from shop.words import count

PERSON = settings.AUTH_USER_MODEL
BIGGEST = 2**63 - 1  # what a key of the database holds


def demand_zone(name: str) -> None:
    """Raises ValidationError for what is no time zone of the IANA database."""
    if name not in available_timezones():
        raise ValidationError(f"{name!r} is no time zone: write one like Europe/London.")


class Class(models.Model):
    """A group that is taught together. Its zone is the one in which days of lateness are counted."""

    name = models.CharField(max_length=80, unique=True)
    zone = models.CharField(max_length=40, default="Europe/London", validators=[demand_zone])
    instructors: Any = models.ManyToManyField(PERSON, related_name="classes_taught", blank=True)
    students: Any = models.ManyToManyField(PERSON, through="Enrolment", related_name="classes_attended")

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "classes"

    def __str__(self) -> str:
        return self.name


class Enrolment(models.Model):
    """A student in a class; the same student may be in several."""

    of = models.ForeignKey(Class, on_delete=models.PROTECT, related_name="enrolments", verbose_name="class")
    student = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="enrolments")
    since = models.DateTimeField()

    class Meta:
        ordering = ["of__name", "student__username"]
        constraints = [models.UniqueConstraint(fields=["of", "student"], name="enrolled_once")]

    def __str__(self) -> str:
        return f"{self.student} in {self.of}"


class Counts(models.TextChoices):
    """Which attempt's points are the grade."""

    BEST = "best", "the best attempt"
    LAST = "last", "the last attempt"


class Assignment(models.Model):
    """An exercise given to a class, and the rules of handing it in."""

    of = models.ForeignKey(Class, on_delete=models.PROTECT, related_name="assignments", verbose_name="class")
    exercise = models.CharField(max_length=40, help_text="As its folder is named.")
    opens_at = models.DateTimeField()
    due_at = models.DateTimeField()
    late_days = models.PositiveSmallIntegerField(
        default=0, help_text="Days after the deadline that still count; 0: none."
    )
    late_percent = models.PositiveSmallIntegerField(
        default=10, validators=[MaxValueValidator(100)], help_text="Of the points, taken off for each day begun."
    )
    attempts = models.PositiveSmallIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)], help_text="How many at the most; empty: any number."
    )
    cooldown = models.PositiveIntegerField(default=0, help_text="Seconds between two attempts.")
    counts = models.CharField(max_length=4, choices=Counts.choices, default=Counts.BEST)
    checks_before_due = models.BooleanField(
        default=True,
        help_text="Whether what the checks said is shown while attempts are taken; hidden ones never.",
    )

    class Meta:
        ordering = ["due_at", "exercise"]
        constraints = [
            models.UniqueConstraint(fields=["of", "exercise"], name="an_exercise_is_given_once"),
            models.CheckConstraint(condition=Q(due_at__gt=F("opens_at")), name="due_after_it_opens"),
        ]

    def __str__(self) -> str:
        return f"{self.exercise}, {self.of}"


class Extension(models.Model):
    """More time or more attempts for one student."""

    assignment = models.ForeignKey(Assignment, on_delete=models.PROTECT, related_name="extensions")
    student = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="extensions")
    days = models.PositiveSmallIntegerField(default=0, help_text="Added to the deadline, in the class's zone.")
    attempts = models.PositiveSmallIntegerField(default=0, help_text="Added to the number of attempts.")
    why = models.CharField(max_length=200)
    given_by = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField()

    class Meta:
        ordering = ["-at"]
        constraints = [models.UniqueConstraint(fields=["assignment", "student"], name="extended_once")]

    def __str__(self) -> str:
        more = f"{count(self.days, 'day')} and {count(self.attempts, 'attempt')} more"
        return f"{self.student}, {self.assignment}: {more}"


class Submission(models.Model):
    """One student's work on one assignment. Its row is locked while an attempt is numbered."""

    assignment = models.ForeignKey(Assignment, on_delete=models.PROTECT, related_name="submissions")
    student = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="submissions")

    class Meta:
        ordering = ["assignment", "student__username"]
        constraints = [models.UniqueConstraint(fields=["assignment", "student"], name="a_submission_each")]

    def __str__(self) -> str:
        return f"{self.student}: {self.assignment}"


class Attempt(models.Model):
    """One handing-in of answers; every one is kept, as it came. `receipt` is what the student was told."""

    submission = models.ForeignKey(Submission, on_delete=models.PROTECT, related_name="made")
    number = models.PositiveIntegerField()
    receipt = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    answers = models.JSONField()
    answers_version = models.PositiveSmallIntegerField()
    sha256 = models.CharField(max_length=64, help_text="Of the answers, as canonical JSON.")
    through = models.CharField(max_length=12, help_text="The form, the command line or the interface.")
    received_at = models.DateTimeField()
    late = models.PositiveSmallIntegerField(
        default=0, help_text="Days begun after the deadline when it was received, by the deadline as it is now."
    )
    costs = models.BooleanField(default=True, help_text="Not where the judge failed: it is given back then.")

    class Meta:
        ordering = ["-received_at", "-pk"]
        constraints = [models.UniqueConstraint(fields=["submission", "number"], name="attempts_are_numbered")]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.submission}"


class Regrade(models.Model):
    """Judging over again: an attempt's, an exercise's or a class's. Nothing counts until it is applied."""

    of = models.ForeignKey(Class, on_delete=models.PROTECT, related_name="regrades", verbose_name="class")
    scope = models.CharField(max_length=120, help_text="What is judged again, in words.")
    why = models.CharField(max_length=200)
    begun_by = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+")
    begun_at = models.DateTimeField()
    applied_by = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    applied_at = models.DateTimeField(null=True, blank=True)
    dropped_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-begun_at"]
        constraints = [
            models.CheckConstraint(
                condition=Q(applied_at=None) | Q(dropped_at=None), name="a_regrade_is_applied_or_dropped"
            )
        ]

    def __str__(self) -> str:
        return f"{self.scope}: {self.why}"


class State(models.TextChoices):
    """Of a judging. Only `done` has results; `parked` waits for an instructor."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    PARKED = "parked"


class Judging(models.Model):
    """One machine run over one attempt, from the queue to its results.

    waiting -> running by a claim: a token, a lease, one more try. running -> done, or waiting again, by whoever has
    the token; by anybody once the lease is over. At the third failure it is parked.
    """

    attempt = models.ForeignKey(Attempt, on_delete=models.PROTECT, related_name="judgings")
    regrade = models.ForeignKey(Regrade, on_delete=models.PROTECT, related_name="judgings", null=True, blank=True)
    state = models.CharField(max_length=8, choices=State.choices, default=State.WAITING)
    counts = models.BooleanField(default=True, help_text="Its results are the attempt's. One judging of each counts.")
    asked_at = models.DateTimeField()
    not_before = models.DateTimeField(help_text="A retry waits a little.")
    tries = models.PositiveSmallIntegerField(default=0, help_text="Since one of its checks was last decided.")
    token = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    box = models.CharField(max_length=60, blank=True)
    doing = models.CharField(max_length=120, blank=True, help_text="What is being done just now.")
    began_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    so_far = models.JSONField(
        default=dict,
        editable=False,
        help_text="What its checks said so far; empty once it has ended.",
    )
    failed = models.TextField(blank=True, help_text="Why it was tried again or parked. For instructors.")
    checks_version = models.PositiveIntegerField(null=True, blank=True)
    digest = models.CharField(max_length=16, blank=True, help_text="Of the exercise's code.")
    marlow = models.CharField(max_length=40, blank=True, help_text="The project's version.")
    seed = models.PositiveIntegerField(default=0, help_text="What chance was drawn from.")

    class Meta:
        ordering = ["-asked_at", "-pk"]
        indexes = [models.Index(fields=["state", "not_before", "asked_at"], name="the_queue")]
        constraints = [
            models.UniqueConstraint(fields=["attempt"], condition=Q(counts=True), name="one_judging_counts"),
            models.CheckConstraint(
                condition=~Q(state=State.RUNNING) | Q(token__isnull=False, lease_until__isnull=False),
                name="a_running_judging_is_somebodys",
            ),
        ]

    def __str__(self) -> str:
        return f"judging of {self.attempt}"


class Judge(models.Model):
    """Whoever judges on a box, and whether students' programs can be run there: as its desk found on opening."""

    box = models.CharField(max_length=60, unique=True)
    seen_at = models.DateTimeField(help_text="When it looked for work last.")
    lacking = models.TextField(blank=True, help_text="Why no sandbox starts there; empty where one does.")
    together = models.BooleanField(help_text="Whether the memory of a program's copies is bounded together.")

    class Meta:
        ordering = ["box"]

    def __str__(self) -> str:
        return f"judge on {self.box}"


class CheckResult(models.Model):
    """What one check of one judging said. The machine's points are here; a person's are in a review."""

    judging = models.ForeignKey(Judging, on_delete=models.PROTECT, related_name="results")
    place = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=40)
    title = models.CharField(max_length=120)
    outcome = models.CharField(max_length=20)
    points = models.PositiveSmallIntegerField()
    of = models.PositiveSmallIntegerField(help_text="Points that it could give.")
    sentence = models.TextField()
    shown = models.CharField(max_length=20, help_text="When a student sees what it said.")
    evidence = models.JSONField(help_text="The run that decided it.")

    class Meta:
        ordering = ["place"]
        constraints = [
            models.UniqueConstraint(fields=["judging", "name"], name="a_check_says_one_thing"),
            models.CheckConstraint(condition=Q(points__lte=F("of")), name="no_more_points_than_there_are"),
        ]

    def __str__(self) -> str:
        return f"{self.title}: {self.outcome}"


class Review(models.Model):
    """What a person makes of an attempt."""

    attempt = models.OneToOneField(Attempt, on_delete=models.PROTECT, related_name="review")
    comment = models.TextField(blank=True, help_text="For the student, with the release.")
    by = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField()

    class Meta:
        ordering = ["-at"]

    def __str__(self) -> str:
        return f"review of {self.attempt}"


class ReviewItem(models.Model):
    """A person's points for one check: instead of the machine's, or where the machine left it to them.

    `outcome` and `machine` are what the machine said then: a judging that says otherwise flags the item.
    """

    review = models.ForeignKey(Review, on_delete=models.PROTECT, related_name="items")
    check_name = models.CharField(max_length=40)
    points = models.PositiveSmallIntegerField()
    of = models.PositiveSmallIntegerField()
    reason = models.CharField(max_length=400)
    outcome = models.CharField(max_length=20)
    machine = models.PositiveSmallIntegerField()
    disagrees = models.BooleanField(default=False, help_text="The machine says otherwise since.")

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["review", "check_name"], name="reviewed_once_a_check"),
            models.CheckConstraint(condition=Q(points__lte=F("of")), name="no_more_given_than_there_is"),
        ]

    def __str__(self) -> str:
        return f"{self.check_name}: {self.points} of {self.of}"


class Release(models.Model):
    """From then on the students of the class see the grades of this assignment; until it is taken back."""

    assignment = models.ForeignKey(Assignment, on_delete=models.PROTECT, related_name="releases")
    by = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField()
    undone_at = models.DateTimeField(null=True, blank=True)
    undone_by = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+", null=True, blank=True)

    class Meta:
        ordering = ["-at"]
        constraints = [
            models.UniqueConstraint(fields=["assignment"], condition=Q(undone_at=None), name="released_once")
        ]

    def __str__(self) -> str:
        return f"release of {self.assignment}"


class GradeChange(models.Model):
    """The history of a grade: written in the transaction that changed it, and never altered. No `by`: the judge."""

    attempt = models.ForeignKey(Attempt, on_delete=models.PROTECT, related_name="changes")
    what = models.CharField(max_length=60, help_text="The check, or the attempt's points.")
    before = models.CharField(max_length=40, blank=True)
    after = models.CharField(max_length=40)
    why = models.CharField(max_length=400)
    by = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    at = models.DateTimeField()

    class Meta:
        ordering = ["-at", "-pk"]

    def __str__(self) -> str:
        return f"{self.what}: {self.before or 'nothing'} -> {self.after}"


class Thread(models.Model):
    """A student asks for a second look at a check, and is answered there."""

    attempt = models.ForeignKey(Attempt, on_delete=models.PROTECT, related_name="threads")
    check_name = models.CharField(max_length=40)
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_by = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+", null=True, blank=True)

    class Meta:
        ordering = ["-opened_at"]
        constraints = [models.UniqueConstraint(fields=["attempt", "check_name"], name="one_thread_a_check")]

    def __str__(self) -> str:
        return f"second look at {self.check_name}, {self.attempt}"

    @property
    def open(self) -> bool:
        return self.closed_at is None


class ThreadPost(models.Model):
    """One thing said."""

    thread = models.ForeignKey(Thread, on_delete=models.PROTECT, related_name="posts")
    by = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+")
    text = models.TextField(max_length=4000)
    at = models.DateTimeField()

    class Meta:
        ordering = ["at", "pk"]

    def __str__(self) -> str:
        return f"{self.by}: {self.text[:40]}"


class ApiToken(models.Model):
    """Lets a program hand in for its owner. Only its digest is kept: the token itself is shown once."""

    owner = models.ForeignKey(PERSON, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=60)
    sha256 = models.CharField(max_length=64, unique=True)
    made_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-made_at"]

    def __str__(self) -> str:
        return self.name

    @property
    def stands(self) -> bool:
        return self.revoked_at is None
