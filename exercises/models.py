"""What was played here."""

import uuid

from django.db import models


class Performance(models.Model):
    """One playing of a scenario on this shop, and the verdict that was read from it afterwards.

    It also marks a database as a stage: only a shop that was set up by a scenario is ever cleared by one.
    """

    scenario = models.CharField(max_length=40)
    lock = models.CharField(max_length=24)
    settle = models.CharField(max_length=24)
    question = models.CharField(max_length=12)
    began_at = models.DateTimeField(help_text="Virtual time at which the clock was started.")
    ended_at = models.DateTimeField(null=True, blank=True)
    real_at = models.DateTimeField()
    verdict = models.JSONField(null=True, blank=True)

    class Meta:
        ordering = ["-real_at"]

    def __str__(self) -> str:
        return f"{self.scenario}, {self.lock} + {self.settle}"


class Proof(models.Model):
    """One cell of the lock table, played once on real servers: what was expected, what was seen, and its journal."""

    batch = models.UUIDField(db_index=True, help_text="The same for all cells of one `manage.py prove`.")
    lock = models.CharField(max_length=24)
    fault = models.CharField(max_length=40)
    settle = models.CharField(max_length=24)
    stop_on_lost_lease = models.BooleanField()
    expected = models.JSONField()
    seen = models.JSONField(null=True, blank=True, help_text="The verdict, with the run's events; none if skipped.")
    agrees = models.BooleanField(null=True)
    skipped = models.TextField(blank=True, help_text="Why it could not be played there.")
    seconds = models.FloatField(help_text="Real seconds.")
    real_at = models.DateTimeField()

    class Meta:
        ordering = ["-real_at", "id"]

    def __str__(self) -> str:
        return f"{self.lock}, {self.fault}, {self.settle}"


class LabRun(models.Model):
    """One run of the laboratory that was kept, with the exploration that found it, where one did.

    Of an exploration that found nothing wrong no run is shown: verdict and steps are empty then.
    """

    scenario = models.CharField(max_length=40)
    lock = models.CharField(max_length=40)
    settle = models.CharField(max_length=40)
    question = models.CharField(max_length=12)
    schedule = models.TextField(blank=True, help_text="What `manage.py replay` takes; the Wednesday has none.")
    again = models.TextField(blank=True, help_text="What plays it again, behind `manage.py`.")
    wrong = models.JSONField(default=list, help_text="A sentence for each thing that went wrong.")
    verdict = models.JSONField(
        null=True, blank=True, help_text="With the run's events; `step` of each: how many steps came before it."
    )
    steps = models.JSONField(default=list, help_text="Every round trip: `at` in virtual time, `who`, `step`.")
    report = models.JSONField(null=True, blank=True, help_text="Of the exploration, as `lab explore --json` has it.")
    real_at = models.DateTimeField()

    class Meta:
        ordering = ["-real_at", "-id"]
        verbose_name = "laboratory run"

    def __str__(self) -> str:
        return f"{self.scenario}, {self.lock} + {self.settle}"


class Exploration(models.Model):
    """One search of the laboratory that many workers share; `turn` is of the one process that merges."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    corner = models.TextField(help_text="What is explored, as a schedule begins.")
    bounds = models.JSONField()
    turn = models.PositiveIntegerField(default=0)
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    stopped = models.TextField(blank=True, help_text="Why it ended before its end.")

    class Meta:
        ordering = ["-began_at"]

    def __str__(self) -> str:
        return self.corner


class ExplorationPart(models.Model):
    """A set of faults and a point in the tree of orders: what one worker explores in one go."""

    exploration = models.ForeignKey(Exploration, on_delete=models.CASCADE, related_name="parts")
    key = models.CharField(max_length=64)
    part = models.JSONField()
    tries = models.PositiveIntegerField(default=0, help_text="How often a worker could not explore it.")
    taken_at = models.DateTimeField(null=True, blank=True)
    done_at = models.DateTimeField(null=True, blank=True)
    tally = models.JSONField(null=True, blank=True)
    beyond = models.JSONField(null=True, blank=True, help_text="What it found out about other parts.")
    failed = models.TextField(blank=True)
    merged = models.PositiveIntegerField(null=True, blank=True, help_text="Its place among those that were merged.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["exploration", "key"], name="a_part_is_one_row"),
            models.UniqueConstraint(fields=["exploration", "merged"], name="parts_are_merged_one_by_one"),
        ]

    def __str__(self) -> str:
        return f"part {self.pk} of {self.exploration_id}"
