"""What the sweeper writes down: who was elected for a slot, who ran, and what happened."""

from django.db import models

from sweeper import events


class JobRun(models.Model):
    """An election: whoever's row lands for a job's slot runs it. There is no clock in the unique constraint."""

    job_name = models.CharField(max_length=80)
    run_slot = models.BigIntegerField()
    box = models.CharField(max_length=40)
    run = models.UUIDField()
    at = models.DateTimeField()

    class Meta:
        ordering = ["-run_slot"]
        constraints = [models.UniqueConstraint(fields=["job_name", "run_slot"], name="one_run_a_slot")]

    def __str__(self) -> str:
        return f"{self.job_name} {self.run_slot}"


class SweepRun(models.Model):
    """One sweep: from the message that asked for it to its end, however it ended.

    `message` is the Celery message's id: unique, so a message delivered twice cannot become two runs.
    """

    class State(models.TextChoices):
        RUNNING = "running"
        REFUSED = "refused"
        FINISHED = "finished"
        STOPPED = "stopped", "stopped (lease lost)"
        DIED = "died"

    run = models.UUIDField(primary_key=True)
    message = models.CharField(max_length=80, unique=True)
    box = models.CharField(max_length=40)
    lock = models.CharField(max_length=24)
    settle = models.CharField(max_length=24)
    question = models.CharField(max_length=12)
    state = models.CharField(max_length=12, choices=State, default=State.RUNNING)
    started_at = models.DateTimeField()
    acquired_at = models.DateTimeField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    token = models.BigIntegerField(null=True, blank=True)
    rows = models.PositiveIntegerField(null=True, blank=True, help_text="Orders on its list.")
    settled = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-started_at", "box"]

    def __str__(self) -> str:
        return f"{self.box}, {self.started_at:%H:%M:%S}"


class Event(models.Model):
    """One line of the journal. Append only."""

    KINDS = [(kind.value, kind.value.replace("_", " ")) for kind in events.Kind]

    uid = models.UUIDField(unique=True, help_text="Written twice, it is kept once.")
    run = models.ForeignKey(SweepRun, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField(help_text="Virtual time, by the box's own clock.")
    real_at = models.DateTimeField()
    box = models.CharField(max_length=40)
    kind = models.CharField(max_length=16, choices=KINDS)
    order = models.CharField(max_length=24, blank=True, help_text="The order's reference.")
    answer = models.CharField(max_length=12, blank=True)
    token = models.BigIntegerField(null=True, blank=True)
    data = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["real_at", "id"]
        indexes = [models.Index(fields=["order", "real_at"], name="event_by_order")]

    def __str__(self) -> str:
        return f"{self.kind} {self.order}".strip()
