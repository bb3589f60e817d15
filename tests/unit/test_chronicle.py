"""The live journal: at once, on its own connection, and not lost while the database is away."""

import json
import uuid
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connections, transaction

from sweeper.chronicle import Chronicle
from sweeper.events import Event, Kind
from sweeper.journal import AlreadyRun, Run
from sweeper.models import Event as EventRow
from sweeper.models import SweepRun
from tests.fakes import WEDNESDAY

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "journal"])


@pytest.fixture
def chronicle(tmp_path: Path) -> Chronicle:
    return Chronicle(tmp_path / "spool")


def new_run(message: str = "m-1", box: str = "box-b") -> Run:
    return Run(uuid.uuid4(), box, message, "redis-naive", "unguarded", "lookup")


def event(run: Run, kind: Kind, **data: object) -> Event:
    return Event(WEDNESDAY, run.box, run.run, kind, data=data)


def kinds() -> list[str]:
    return list(EventRow.objects.values_list("kind", flat=True))


def test_an_event_stays_when_the_settle_around_it_is_rolled_back(chronicle: Chronicle) -> None:
    """The story of a write that failed is the one worth having."""
    run = new_run()
    chronicle.begin(run, WEDNESDAY)
    with transaction.atomic():
        chronicle.write(event(run, Kind.SETTLING))
        transaction.set_rollback(True)
    assert kinds() == ["started", "settling"]


def test_a_run_s_row_follows_its_events(chronicle: Chronicle) -> None:
    """Who ran, what it got, how it ended."""
    run = new_run()
    chronicle.begin(run, WEDNESDAY)
    assert SweepRun.objects.get().state == "running"
    chronicle.write(event(run, Kind.ACQUIRED, deadline=WEDNESDAY.isoformat()))
    chronicle.write(event(run, Kind.LISTED, rows=14, orders=[]))
    chronicle.write(event(run, Kind.FINISHED, settled=13))
    row = SweepRun.objects.get()
    assert (row.state, row.rows, row.settled, row.acquired_at) == ("finished", 14, 13, WEDNESDAY)


def test_a_message_that_comes_twice_is_one_run_and_a_journalled_refusal(chronicle: Chronicle) -> None:
    """The unique message is the arbiter; the second delivery is on the first run's record."""
    chronicle.begin(new_run("m-1"), WEDNESDAY)
    with pytest.raises(AlreadyRun):
        chronicle.begin(new_run("m-1"), WEDNESDAY)
    assert SweepRun.objects.count() == 1
    assert kinds() == ["started", "redelivered"]
    assert SweepRun.objects.get().state == "running", "its worker may be alive: a lost connection redelivers too"


def test_a_message_that_comes_again_after_its_run_ended_changes_nothing_in_it(chronicle: Chronicle) -> None:
    """Late acknowledgement: the work was done, the acknowledgement lost."""
    run = new_run("m-1")
    chronicle.begin(run, WEDNESDAY)
    chronicle.write(event(run, Kind.FINISHED, settled=2))
    with pytest.raises(AlreadyRun):
        chronicle.begin(new_run("m-1"), WEDNESDAY)
    assert (SweepRun.objects.get().state, kinds()[-1]) == ("finished", "redelivered")


def test_a_run_older_than_its_time_limit_is_closed_by_the_next_one(chronicle: Chronicle) -> None:
    """Ended by force, or killed with nobody left to say so: no worker can still be at it."""
    chronicle.begin(new_run("m-1"), WEDNESDAY)
    chronicle.begin(new_run("m-2"), WEDNESDAY + timedelta(minutes=15))
    assert [run.state for run in SweepRun.objects.order_by("started_at")] == ["running", "running"]
    chronicle.begin(new_run("m-3"), WEDNESDAY + timedelta(minutes=17))
    assert [run.state for run in SweepRun.objects.order_by("started_at")] == ["died", "running", "running"]


def test_a_run_that_dies_keeps_the_count_of_what_it_settled(chronicle: Chronicle) -> None:
    """A last event that says nothing of it changes nothing."""
    run = new_run()
    chronicle.begin(run, WEDNESDAY)
    chronicle.write(event(run, Kind.DIED, error="no light", settled=3))
    chronicle.write(event(run, Kind.DIED, error="found unfinished"))
    assert SweepRun.objects.get().settled == 3


def test_a_run_found_dead_is_credited_with_what_it_settled(chronicle: Chronicle) -> None:
    """It had no last word; its events are counted for it."""
    run = new_run("m-1", "box-a")
    chronicle.begin(run, WEDNESDAY)
    chronicle.write(event(run, Kind.SETTLED, outcome="released"))
    chronicle.write(event(run, Kind.SETTLED, outcome="released"))
    chronicle.bury("box-a", WEDNESDAY)
    assert SweepRun.objects.get().settled == 2


def test_runs_found_open_when_their_box_starts_are_closed(chronicle: Chronicle) -> None:
    """Killed without a word, the run gets its last event from the box's next start; other boxes' are left alone."""
    chronicle.begin(new_run("m-1", "box-a"), WEDNESDAY)
    chronicle.begin(new_run("m-2", "box-b"), WEDNESDAY)
    assert chronicle.bury("box-a", WEDNESDAY) == 1
    assert {run.box: run.state for run in SweepRun.objects.all()} == {"box-a": "died", "box-b": "running"}


def test_events_are_kept_in_a_file_while_the_database_is_gone_and_written_once_later(chronicle: Chronicle) -> None:
    """Nothing is lost, and writing it twice writes it once."""
    run = new_run()
    chronicle.begin(run, WEDNESDAY)
    with Gone():
        chronicle.write(event(run, Kind.ASKED))
        chronicle.write(event(run, Kind.DIED, error="the database went away"))
    [kept] = chronicle.spool.glob("*.kept*")
    lines = kept.read_text()
    assert kinds() == ["started"]
    chronicle.recover()
    assert kinds() == ["started", "asked", "died"]
    assert SweepRun.objects.get().state == "died"
    kept.write_text(lines)
    chronicle.recover()
    assert kinds() == ["started", "asked", "died"]
    assert not list(chronicle.spool.iterdir())


def test_a_file_of_a_run_nobody_knows_is_set_aside_and_keeps_nobody_from_starting(chronicle: Chronicle) -> None:
    """The shop was set up anew meanwhile: the story has no run any more."""
    stranger = new_run()
    with Gone():
        chronicle.write(event(stranger, Kind.ASKED))
    chronicle.begin(new_run("m-2"), WEDNESDAY)
    assert [file.suffix for file in chronicle.spool.iterdir()] == [".orphan"]


def test_a_half_written_line_in_the_file_does_not_keep_the_rest(chronicle: Chronicle) -> None:
    """The process died while it wrote; what stands there whole is written, the rest set aside."""
    run = new_run()
    chronicle.begin(run, WEDNESDAY)
    with Gone():
        chronicle.write(event(run, Kind.ASKED))
    [kept] = chronicle.spool.glob("*.kept*")
    kept.write_text(kept.read_text() + '{"uid": "brok')
    chronicle.recover()
    assert kinds() == ["started", "asked"]


def test_every_event_is_one_structured_log_line(chronicle: Chronicle, caplog: pytest.LogCaptureFixture) -> None:
    """With the same fields as the row."""
    run = new_run()
    with caplog.at_level("INFO", logger="journal"):
        chronicle.begin(run, WEDNESDAY)
    [line] = [json.loads(record.getMessage()) for record in caplog.records if record.name == "journal"]
    assert (line["kind"], line["run"], line["box"]) == ("started", str(run.run), "box-b")


class Gone:
    """The journal's database can't be reached: its connection is pointed where nobody listens."""

    def __enter__(self) -> None:
        connections["journal"].close()
        self.settings = connections["journal"].settings_dict
        self.port = self.settings["PORT"]
        self.settings["PORT"] = 1

    def __exit__(self, *error: object) -> None:
        self.settings["PORT"] = self.port
        connections["journal"].close()
