"""One failure at a time of the evening: what it does to the sweep under each lock, and how long nobody swept."""

import json
from contextlib import nullcontext
from datetime import timedelta
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from exercises.lab.database import Database
from exercises.scenarios import stop
from exercises.scenarios.boxes import Setting
from exercises.scenarios.mishap import LASTS, STRIKES_A_BOX, Mishap, What
from exercises.scenarios.replay import Outcome, play
from exercises.scenarios.wednesday import AFTERMATH, START
from sweeper.events import Event, Kind

ADVISORY, NAIVE = Setting("postgres-advisory"), Setting("redis-naive")
SECOND = timedelta(seconds=1)


def evening(database: Database, text: str, setting: Setting = ADVISORY) -> Outcome:
    return play(database, setting, mishap=Mishap.read(text))


def second(outcome: Outcome) -> str:
    """Who got the lock after the holder of 21:50:00, and when."""
    got = [event for event in outcome.events if event.kind is Kind.ACQUIRED]
    assert (got[0].box, got[0].at) == ("box-b", START)
    return f"{got[1].box} {got[1].at:%H:%M:%S}" if len(got) > 1 else "nobody"


@pytest.mark.parametrize(
    ("text", "then"),
    [
        ("power:box-b:60@21:50:30", "box-a 21:52:00"),
        ("power:box-b:120@21:50:30", "box-a 21:54:00"),
        ("power:box-b:7875@21:50:30", "nobody"),
        ("freeze:box-b:100@21:50:30", "box-b 21:54:00"),
        ("freeze:box-b:220@21:50:30", "box-b 21:56:00"),
        ("kill:box-b@21:50:30", "box-b 21:52:00"),
        ("session:box-b@21:50:30", "box-b 21:52:00"),
        ("failover@21:50:30", "box-b 21:54:00"),
        ("dark:60@21:50:30", "box-b 21:54:00"),
    ],
)
def test_who_gets_the_advisory_lock_after_it(database: Database, text: str, then: str) -> None:
    assert second(evening(database, text)) == then


@pytest.mark.parametrize("text", ["power:box-b:7875@21:50:30", "freeze:box-b:1200@21:50:30", "kill:box-b@21:50:30"])
def test_under_redis_the_key_runs_out_whatever_became_of_its_holder(database: Database, text: str) -> None:
    assert second(evening(database, text, NAIVE)) == "box-a 21:52:00"


def test_redis_without_its_keys_lets_a_second_in(database: Database) -> None:
    """Box B works, and its own next message is told yes, at the very moment at which the lease is still alive."""
    assert second(evening(database, "failover@21:51:59", NAIVE)) == "box-b 21:52:00"


def test_what_is_due_in_that_second_comes_before_it(database: Database) -> None:
    """B has its sixth answer at 21:51:00, settles that row and asks for the next."""
    events = evening(database, "power:box-b:60@21:51:00").events
    last = [event for event in events if event.box == "box-b"][-1]
    assert (last.kind, last.order, f"{last.at:%H:%M:%S}") == (Kind.ASKED, "W-07", "21:51:00")


@pytest.mark.parametrize("what", ["kill", "session"])
def test_a_process_whose_session_ended_has_a_new_one_for_its_next_run(database: Database, what: str) -> None:
    """Both processes of the box are used again until 22:10, and no later run dies of it."""
    outcome = evening(database, f"{what}:box-b@21:50:30")
    finished = [event for event in outcome.events if event.kind is Kind.FINISHED and event.box == "box-b"]
    assert len(finished) == 10
    assert set(outcome.errors) <= {"box-b/1"}


def test_a_provider_that_went_dark_answers_again(database: Database) -> None:
    outcome = evening(database, "dark:60@21:50:30")
    vain = [event.at for event in outcome.events if event.kind is Kind.ANSWERED and event.answer == "unknown"]
    assert (vain[0], vain[-1]) == (START + 50 * SECOND, START + 100 * SECOND)
    assert outcome.verdict["phantom"] == 0


def test_the_same_failure_is_the_same_evening(database: Database) -> None:
    first, again = (evening(database, "freeze:box-b:600@21:51:07") for _ in range(2))
    assert first.events == again.events
    choices = [
        [(taken.at, taken.option.who, taken.option.step.label) for taken in one.taken] for one in (first, again)
    ]
    assert choices[0] == choices[1]


class TestText:
    @pytest.mark.parametrize("what", What)
    def test_it_reads_what_it_writes(self, what: What) -> None:
        written = Mishap(what, START.time(), "box-a" * (what in STRIKES_A_BOX), 30 * (what in LASTS))
        assert Mishap.read(str(written)) == written

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("power", "it looks like power:box-b:7875@21:51:00"),
            ("flood@21:51:00", "flood"),
            ("power:7875@21:51:00", "name one"),
            ("failover:box-a@21:51:00", "name none"),
            ("freeze:box-a@21:51:00", "for how many seconds"),
            ("kill:box-a:9@21:51:00", "leave the seconds out"),
            ("dark:90000@21:51:00", "more than a day"),
            ("dark:9@21:61:00", "minute"),
        ],
    )
    def test_what_is_none_is_refused_with_a_sentence(self, text: str, said: str) -> None:
        with pytest.raises(ValueError, match=said):
            Mishap.read(text)


class TestStop:
    def test_it_counts_from_the_failure_and_to_the_end_of_the_evening(self) -> None:
        found = stop.longest(
            [told(0, Kind.ACQUIRED), told(10, Kind.ASKED)], START + 15 * SECOND, START + 300 * SECOND
        )
        assert (found.begins, found.ends, found.over) == (START + 15 * SECOND, START + 300 * SECOND, False)
        assert found.seconds == "285"

    def test_only_what_a_run_with_the_lock_does_is_a_sweep(self) -> None:
        """Another's run that starts and is refused is none, and neither is what it does once it has let go."""
        events = [
            told(0, Kind.ACQUIRED),
            told(50, Kind.STARTED, 2),
            told(60, Kind.REFUSED, 2),
            told(90, Kind.ASKED),
            told(91, Kind.RELEASED),
            told(200, Kind.FINISHED),
        ]
        found = stop.longest(events, START, START + 210 * SECOND)
        assert (found.begins, found.ends, found.over) == (START + 91 * SECOND, START + 210 * SECOND, False)
        first = stop.following(events, START + 20 * SECOND, START + 210 * SECOND)
        assert (first.seconds, first.over) == ("70", True)

    def test_who_has_the_lock_at_a_moment(self) -> None:
        events = [told(0, Kind.ACQUIRED), told(10, Kind.ACQUIRED, 2), told(20, Kind.RELEASED), told(30, Kind.DIED, 2)]
        seconds = (0, 10, 19, 20, 29, 30)
        held = [sorted(stop.holders(events, START + number * SECOND)) for number in seconds]
        assert held == [["box 1"], ["box 1", "box 2"], ["box 1", "box 2"], ["box 2"], ["box 2"], []]


def told(seconds: float, kind: Kind, run: int = 1) -> Event:
    return Event(START + timedelta(seconds=seconds), f"box {run}", UUID(int=run), kind)


@pytest.fixture
def lent(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """`manage.py lab` plays on the tests' database."""
    monkeypatch.setattr("marlow.management.commands.lab.laboratory", lambda: nullcontext(database))


@pytest.mark.usefixtures("lent")
class TestCommand:
    def test_it_plays_the_failure_and_says_how_long_nobody_swept(self, capsys: pytest.CaptureFixture[str]) -> None:
        words = ["--lock", "postgres-advisory", "--fault", "power:box-b:7875@21:51:00", "--json"]
        with pytest.raises(SystemExit):
            call_command("lab", "wednesday", *words)
        out, err = capsys.readouterr()
        events = json.loads(out.splitlines()[-1])["events"]
        assert events[-1]["at"] == (AFTERMATH + timedelta(milliseconds=1)).isoformat()
        said = "At 21:51:00 box-b loses its power. From then on nobody sweeps for 1140 s at the longest"
        assert said in " ".join(err.split())

    def test_what_is_no_failure_is_refused(self) -> None:
        with pytest.raises(CommandError, match="it looks like power:box-b:7875@21:51:00"):
            call_command("lab", "wednesday", "--fault", "power")
