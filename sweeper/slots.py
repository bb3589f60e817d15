"""Election by a unique row: `job_runs(job_name, run_slot)`."""

from datetime import datetime

from sweeper.locks.ports import Postgres

# In: job, slot, box, run, time. A row comes back for the elected run alone; committed by itself, for a second insert
# waits on an uncommitted first one.
ELECT = """
    insert into sweeper_jobrun (job_name, run_slot, box, run, at) values (%s, %s, %s, %s, %s)
    on conflict (job_name, run_slot) do nothing returning id
"""
# In: job, slot. Out: the box that was elected.
ELECTED = "select box from sweeper_jobrun where job_name = %s and run_slot = %s"


def slot_of(now: datetime, every: float) -> int:
    """The number of the slot (of `every` virtual seconds) that `now` falls into; rises by one a slot."""
    return int(now.timestamp() // every)


def elect(postgres: Postgres, job: str, slot: int, *, box: str, run: str, at: datetime) -> str | None:
    """None if this run is elected for the slot, else the box that was."""
    if postgres.row(ELECT, (job, slot, box, run, at)):
        return None
    elected = postgres.row(ELECTED, (job, slot))
    return elected[0] if elected else ""
