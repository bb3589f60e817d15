"""The hour from 20:50 in virtual time: its customers, its provider, and the command that plays it."""

import json
from collections import Counter
from contextlib import nullcontext
from datetime import datetime, timedelta

import pytest
from django.core.management import call_command

from exercises.lab.database import Database
from exercises.scenarios.boxes import Setting
from exercises.scenarios.hour import Pace, without_vain_questions
from exercises.scenarios.provider import ProviderPort, VirtualProvider
from exercises.scenarios.replay import Outcome, play
from marlow.clock import StandingClock
from shop.provider.answers import Verdict
from sweeper.events import Kind

START = datetime.fromisoformat("2026-02-11T20:50:00+00:00")


@pytest.fixture(scope="module")
def shipped(database: Database) -> Outcome:
    """As the shop shipped it."""
    return play(database, Setting(), start=START)


def test_the_rows_come_about_by_checkouts(shipped: Outcome) -> None:
    """The shop's own, one each fifty seconds; every fifth is given up after ten, and its money never moves."""
    prefix = "provider charge evening-"
    charged = [step for step in shipped.taken if step.option.step.label.startswith(prefix)]
    assert [step.at for step in charged] == [START + timedelta(seconds=50 * place) for place in range(77)]
    settled = [event for event in shipped.events if event.kind is Kind.SETTLED]
    assert {event.order for event in settled} == {f"W-{row:02d}" for row in range(1, 15)}
    assert {event.data["outcome"] for event in settled} == {"released"}


def test_it_is_the_same_to_the_letter_when_played_again(database: Database, shipped: Outcome) -> None:
    """The journal and the choices."""
    again = play(database, Setting(), start=START)
    assert again.events == shipped.events
    choices = [
        [(taken.at, taken.option.who, taken.option.step.label) for taken in outcome.taken]
        for outcome in (shipped, again)
    ]
    assert choices[0] == choices[1]


class TestProvider:
    def test_every_fifth_charge_and_every_question_takes_fourteen_seconds_until_21_50(self) -> None:
        """The third of each five from 20:50 on; from 21:50:00 on whatever is asked takes ten."""
        clock = StandingClock(START)
        pace = Pace(clock.now, START)
        assert [pace("charge") for _ in range(10)] == [0, 0, 0, 14, 0, 0, 0, 0, 14, 0]
        assert [pace("lookup"), pace("cancel"), pace("lookup")] == [14, 14, 14]
        clock.sleep(3599.999)
        assert pace("lookup") == 14
        clock.sleep(0.001)
        assert [pace(question) for question in ("charge",) * 5 + ("lookup", "cancel")] == [10] * 7

    @pytest.mark.parametrize("pace", [10.0, 10.001])
    def test_what_is_asked_for_in_vain_is_not_done(self, pace: float) -> None:
        """Ten seconds are just in time; after a moment more nobody waits, no money moves, and no key is barred."""
        provider, clock = VirtualProvider(pace=lambda question: pace), StandingClock(START)
        port = ProviderPort(provider, clock, lambda label, names, writes: None)
        in_time = pace <= 10
        assert port.charge("paid", 999).verdict is (Verdict.YES if in_time else Verdict.UNKNOWN)
        assert port.cancel("barred").verdict is (Verdict.NO if in_time else Verdict.UNKNOWN)
        assert clock.now() == START + timedelta(seconds=20)
        assert (set(provider.charges), provider.barred) == (({"paid"}, {"barred"}) if in_time else (set(), set()))


@pytest.fixture
def lent(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """`manage.py lab` plays on the tests' database."""
    monkeypatch.setattr("marlow.management.commands.lab.laboratory", lambda: nullcontext(database))


@pytest.mark.usefixtures("lent")
class TestCommand:
    def test_its_verdict_has_the_keys_of_any_other(
        self, capsys: pytest.CaptureFixture[str], shipped: Outcome
    ) -> None:
        """On the last line."""
        with pytest.raises(SystemExit, match="0"):
            call_command("lab", "wednesday", "--from", "20:50", "--json")
        told = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert told == shipped.verdict
        keys = "lock settle question phantom lost double_settles foreign_deletes overlaps events schedule"
        assert set(told) == set(keys.split())

    def test_for_people_it_leaves_out_what_was_asked_in_vain(
        self, capsys: pytest.CaptureFixture[str], shipped: Outcome
    ) -> None:
        """The runs of the hour, and every question that was answered."""
        with pytest.raises(SystemExit, match="0"):
            call_command("lab", "wednesday", "--from", "20:50")
        said = capsys.readouterr().out
        assert "phantom 2" in said
        assert "20:56:00" in said
        told, every = without_vain_questions(shipped.verdict["events"]), shipped.verdict["events"]
        asked, answered = (
            [event["order"] for event in told if event["kind"] == kind] for kind in ("asked", "answered")
        )
        assert (
            sorted(asked)
            == sorted(answered)
            == sorted(event["order"] for event in told if event["kind"] == "settled")
        )
        gone = Counter(event["kind"] for event in every if event not in told)
        assert set(gone) == {"asked", "answered", "skipped"}
        assert gone["asked"] == gone["answered"] == gone["skipped"] > 100
