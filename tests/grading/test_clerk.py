"""The clerk and its desk: whatever becomes of the desk, every judging reaches an end, and no failure is a verdict."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from exercises.handed.checks import Evidence, Outcome
from grading import clerk as clerks
from grading import desk, queue
from grading.clerk import Clerk
from grading.handin import hand_in
from grading.models import Attempt, CheckResult, Judge, Judging, State
from grading.sandbox import trial
from grading.talk import Desk, DeskFailed, parse
from marlow.clock import real_now
from tests.grading.planted import forget, planted
from tests.grading.school import NOON, School

pytestmark = pytest.mark.django_db
Start = Callable[..., Clerk]


@pytest.fixture
def start(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """A clerk whose desks know the exercise `acting`; retries come at once."""
    settings.STATE_DIR, settings.LAB_DATABASE_URL = tmp_path, settings.DATABASE_URL
    monkeypatch.setattr(queue, "FIRST_DELAY", 0.0)
    made: list[Clerk] = []

    def start(desk: list[str] | None = None) -> Clerk:
        made.append(Clerk("box-a", desk or command))
        return made[-1]

    with planted(tmp_path) as command:
        yield start
        for clerk in made:
            clerk.close()


def acting(does: str, school: School | None = None) -> Attempt:
    school = school or School(rules={"exercise": "acting"})
    return hand_in(school.student, school.assignment, {"does": does}, now=NOON, through="form")


def judging_of(attempt: Attempt) -> Judging:
    return attempt.judgings.get(regrade=None)


def results(attempt: Attempt) -> dict[str, CheckResult]:
    return {one.name: one for one in judging_of(attempt).results.all()}


def test_each_check_is_run_at_the_desk_and_its_results_are_written(start: Start) -> None:
    """With what decided: the checks' version, the digest of the project's code, and the seed."""
    attempt = acting("well")
    assert start().work() == 1
    judging = judging_of(attempt)
    assert (judging.state, judging.tries, judging.box, judging.doing) == (State.DONE, 1, "box-a", "")
    assert {name: (one.outcome, one.points) for name, one in results(attempt).items()} == {
        "act": (Outcome.PASSED, 3),
        "after": (Outcome.PASSED, 2),
    }
    assert (judging.checks_version, judging.marlow) == (4, clerks.marlow())
    assert judging.seed == int(attempt.sha256[:7], 16)


def test_the_same_answers_get_the_same_evidence_from_another_desk(start: Start) -> None:
    """Whatever a check leaves to chance is drawn from the attempt's own seed."""
    school = School(rules={"exercise": "acting"})
    told = []
    for _ in range(2):
        attempt = acting("well", school)
        clerk = start()
        clerk.work()
        clerk.close()
        told.append(results(attempt)["act"].evidence["text"])
    assert told[0] == told[1]
    other = acting("as well", school)
    start().work()
    assert results(other)["act"].evidence["text"] != told[0]


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("die", "ended in the middle"),
        ("leave a child and die", "ended in the middle"),
        ("take all memory", "MemoryError"),
        ("say what is no JSON", "no JSON"),
        ("could not decide", "The lights are out."),
    ],
)
def test_a_judging_that_fails_each_time_is_parked_after_three_tries(start: Start, does: str, says: str) -> None:
    """A poison job ends, costs no attempt, is no zero, and holds up nobody: what comes after it is judged."""
    attempt = acting(does)
    clerk = start()
    assert clerk.work() == 3
    judging = judging_of(attempt)
    assert (judging.state, judging.tries) == (State.PARKED, 3)
    assert "The act" in judging.failed
    assert Attempt.objects.get(pk=attempt.pk).costs is False
    act, after = results(attempt)["act"], results(attempt)["after"]
    assert (act.outcome, act.points) == (Outcome.UNDECIDED, 0)
    assert says in act.sentence
    assert after.outcome == Outcome.PASSED, "with the last try the rest is judged too, by another desk if need be"
    assert clerk.work() == 0, "it is not tried for ever"
    next_one = acting("well", School("Thursday", rules={"exercise": "acting"}))
    assert clerk.work() == 1
    assert judging_of(next_one).state == State.DONE


def test_what_a_desk_leaves_behind_is_ended_with_it(start: Start) -> None:
    """The whole tree, not only the process that a clerk talks with."""
    acting("leave a child and die")
    clerk = start()
    clerk.work()
    clerk.close()
    assert not [
        one for one in psutil.process_iter(["cmdline"]) if "# left behind" in " ".join(one.info["cmdline"] or [])
    ]


def test_a_check_that_takes_too_long_by_the_clock_is_not_decided(start: Start, settings: Any) -> None:
    """Ended with everything it started; what it was to say is never a fail."""
    settings.GRADING_CHECK_LIMIT, settings.GRADING_TRIES = 4.0, 1
    attempt = acting("never end")
    start().work()
    assert judging_of(attempt).state == State.PARKED
    assert results(attempt)["act"].outcome == Outcome.UNDECIDED
    assert "stopped after 4 s" in results(attempt)["act"].sentence
    assert results(attempt)["after"].outcome == Outcome.PASSED


def test_what_a_check_prints_is_no_result(start: Start) -> None:
    """Standard output of a desk is its log's."""
    attempt = acting("print")
    start().work()
    assert results(attempt)["act"].sentence == "Well."


def test_what_postgres_would_not_keep_is_left_out_of_a_result(start: Start) -> None:
    """A NUL or half a character in what a program said must not cost a judging."""
    attempt = acting("say what Postgres keeps not")
    start().work()
    assert judging_of(attempt).state == State.DONE
    assert results(attempt)["act"].sentence == "a�b?c"


def test_a_desk_knows_no_secret_of_the_shop(start: Start, tmp_path: Path, settings: Any) -> None:
    """It is given the laboratory's address and a key of its own; the shop's are not in its environment."""
    told = clerks.environment(tmp_path, "postgres://lab@lab/lab")
    secrets = {settings.SECRET_KEY, settings.DATABASE_URL, settings.CELERY_BROKER_URL, settings.LOCK_REDIS_URL}
    assert not secrets & set(told.values())
    assert set(told) - set(settings.ANY_PROGRAM) == {
        "DJANGO_SETTINGS_MODULE",
        "MARLOW_DEMO",
        "SECRET_KEY",
        "DATABASE_URL",
        "LAB_DATABASE_URL",
        "MARLOW_STATE_DIR",
        "GRADING_MEMORY",
    }
    assert told["SECRET_KEY"] != clerks.environment(tmp_path, "")["SECRET_KEY"]


# --- Desks that say something else ----------------------------------------------------------------------------------


def printed(**otherwise: Any) -> str:
    """Says a result, of which one thing is wrong."""
    sound = {"outcome": "passed", "sentence": "", "points": 3, "evidence": {"text": "", "wrong": []}}
    return f"print({json.dumps({'result': sound | otherwise})!r})"


OPENS = "import sys; input(); print('{\"open\": true}', flush=True); input(); "


@pytest.mark.parametrize(
    "says",
    [
        "print('grading in progress')",
        "print('[]')",
        "print('{}')",
        "print('{\"result\": {}}')",
        'print(\'{"result": {"outcome": "passed", "sentence": "", "points": 3}}\')',
        printed(outcome="well"),
        printed(points=99),
        printed(points="3"),
        printed(sentence=1),
        printed(evidence={"text": "", "wrong": [], "more": 1}),
        "print('[' * 100000)",
        "sys.stdout.write('x' * 20_000_000)",
    ],
)
def test_a_malformed_result_ends_in_a_retry(start: Start, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never “in progress” for ever, and never a verdict."""
    monkeypatch.setattr(queue, "FIRST_DELAY", 5.0)
    attempt = acting("well")
    assert start([sys.executable, "-c", f"{OPENS}{says}"]).work() == 1
    judging = judging_of(attempt)
    assert (judging.state, judging.tries) == (State.WAITING, 1)
    assert "The judging process said" in judging.failed
    assert judging.results.count() == 0


@pytest.mark.parametrize(
    ("desk", "says"),
    [
        ("raise SystemExit(3)", "ended"),
        ('input(); print(\'{"away": "No laboratory today."}\', flush=True); input()', "No laboratory today."),
    ],
)
def test_where_no_check_can_be_run_nothing_is_taken(start: Start, desk: str, says: str, caplog: Any) -> None:
    """A laboratory that is down for an hour costs nobody a try; it is not asked for over and over either."""
    attempt = acting("well")
    clerk = start([sys.executable, "-c", desk])
    assert clerk.work() == 0
    assert (judging_of(attempt).state, judging_of(attempt).tries) == (State.WAITING, 0)
    assert says in caplog.text
    caplog.clear()
    assert clerk.work() == 0
    assert caplog.text == "", "it was tried again at once"


def test_a_clerk_with_nothing_to_do_starts_no_desk(start: Start, tmp_path: Path) -> None:
    """Nor a server for a laboratory."""
    assert start().work() == 0
    assert not (tmp_path / "judging").exists()


# --- What its box can run -------------------------------------------------------------------------------------------


def test_a_clerk_tells_what_its_desk_found_of_the_sandbox(start: Start) -> None:
    """As the process that runs programs may, and once it has been opened; later looks only say when."""
    clerk = start()
    clerk.work()
    assert not Judge.objects.exists(), "nothing was opened yet"
    acting("well")
    clerk.work()
    found = Judge.objects.get()
    assert (found.box, found.lacking, found.together) == ("box-a", trial.starts(), trial.bounded_together())
    clerk.work()
    assert Judge.objects.get().seen_at > found.seen_at


def test_a_sandbox_that_does_not_start_is_told_and_stops_no_other_judging(start: Start) -> None:
    acting("well")
    opens = json.dumps({"open": True, "lacking": "No namespaces.", "together": False})
    start([sys.executable, "-c", f"import sys; input(); print({opens!r}, flush=True); input(); {printed()}"]).work()
    assert Judge.objects.values_list("box", "lacking", "together").get() == ("box-a", "No namespaces.", False)


def test_a_desk_that_can_not_try_the_sandbox_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> str:
        raise OSError("no pipe")

    monkeypatch.setattr(trial, "starts", away)
    assert desk._sandbox.__wrapped__() == {"lacking": "OSError: no pipe", "together": False}


# --- The lease ------------------------------------------------------------------------------------------------------


def test_progress_is_shown_and_the_lease_is_kept_while_a_check_runs(
    start: Start, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of the check, a few a second at the most, however much it says."""
    said: list[str | None] = []

    def renew(judging: Judging, now: Any, doing: str | None = None) -> bool:
        said.append(doing)
        return keep(judging, now, doing)

    keep = queue.renew
    monkeypatch.setattr(clerks.queue, "renew", renew)
    acting("talk")
    start().work()
    assert said[0] == "The act"
    assert any(words and words.startswith("the ") for words in said)
    assert len(said) < 20, "two hundred words were said"


def test_a_silent_check_keeps_its_lease(start: Start, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is renewed three times within its length, though nothing is said."""
    settings.GRADING_LEASE, settings.GRADING_CHECK_LIMIT, settings.GRADING_TRIES = 1.5, 2.2, 1
    leases = []

    def renew(judging: Judging, now: Any, doing: str | None = None) -> bool:
        leases.append(doing)
        return keep(judging, now, doing)

    keep = queue.renew
    monkeypatch.setattr(clerks.queue, "renew", renew)
    acting("never end")
    start().work()
    assert leases.count(None) >= 3


def test_a_judging_that_was_given_to_somebody_else_is_left_alone(start: Start, settings: Any) -> None:
    """The lease ran out behind the clerk's back: it writes nothing, and its desk does not go on with it."""
    settings.GRADING_LEASE = 0.9
    attempt = acting("never end")
    clerk = start()
    assert clerk.opened()
    taken = queue.claim("box-a", real_now())
    assert taken is not None
    queue.give_back(taken, "It was slow.", real_now())
    theirs = queue.claim("box-b", real_now())
    assert theirs is not None
    clerk.judge(taken)
    now = judging_of(attempt)
    assert (now.state, now.box, now.token) == (State.RUNNING, "box-b", theirs.token)


def test_results_that_cannot_be_written_are_the_judges_failure(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever Postgres says no to: it is tried again, and parked in the end."""
    from django.db import DataError

    def refuse(*_: Any) -> None:
        raise DataError("numeric field overflow")

    monkeypatch.setattr(queue.grade, "judged", refuse)
    attempt = acting("well")
    assert start().work() == 3
    assert (judging_of(attempt).state, judging_of(attempt).results.count()) == (State.PARKED, 0)
    assert "numeric field overflow" in judging_of(attempt).failed


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("import nothing_of_the_kind", "ModuleNotFoundError: No module named 'nothing_of_the_kind'"),
        ("VERSION = (", "SyntaxError: '(' was never closed"),
        ("VERSION, PLACE = 1, 901", "AttributeError: module 'exercises.catalogue.acting.checks' has no attribute"),
    ],
)
def test_an_exercise_that_can_not_be_read_is_an_instructors(
    start: Start, code: str, cause: str, tmp_path: Path
) -> None:
    """With the cause, and not by a lease that ends: the worker goes on with the next one, which is another's."""
    attempt, other = acting("well"), School("Thursday").hand_in()
    (tmp_path / "acting" / "checks.py").write_text(code)
    forget()
    assert start().work() == 4
    judging = judging_of(attempt)
    assert judging.state == State.PARKED
    assert f"The exercise 'acting' can't be read: {cause}" in judging.failed
    assert judging_of(other).state == State.DONE


def test_an_exercise_that_is_gone_is_an_instructors(start: Start) -> None:
    """Its folder was taken out of the catalogue after the attempt came."""
    school = School(rules={"exercise": "acting"})
    attempt = acting("well", school)
    clerk = start()
    school.assignment.exercise = "gone"
    school.assignment.save()
    assert clerk.work() == 3
    assert judging_of(attempt).state == State.PARKED
    assert "There is no exercise 'gone'" in judging_of(attempt).failed


# --- The talk -------------------------------------------------------------------------------------------------------


def test_a_desk_that_is_silent_is_not_waited_for_longer_than_was_said(tmp_path: Path) -> None:
    desk = Desk([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path / "desk.group", tmp_path, {})
    beats: list[str | None] = []
    with pytest.raises(DeskFailed, match=r"stopped after 0\.5 s"):
        desk.ask({"open": True}, 0.5, 0.1, beats.append)
    assert len(beats) >= 3
    desk.end()


def test_a_message_keeps_no_character_that_postgres_refuses() -> None:
    assert parse(b'{"say": ["a\\u0000", {"\\ud800": 1}]}') == {"say": ["a�", {"?": 1}]}
    assert parse(b'{"say": "\\\\u0000"}') == {"say": "\\u0000"}, (
        "six characters that look like one are left as they are"
    )


# --- What an earlier try decided ------------------------------------------------------------------------------------


def lost_after_the_first_check(attempt: Attempt, clerk: Clerk) -> Judging:
    """Its worker is gone once the first check is decided; the lease has ended."""

    class Gone(Exception):
        pass

    def gone(judging: Judging, *_: Any) -> bool:
        keep(judging, *_)
        raise Gone

    keep, queue.keep = queue.keep, gone
    try:
        with pytest.raises(Gone):
            clerk.work()
    finally:
        queue.keep = keep
    assert results(attempt) == {}, "nothing of it is a result yet"
    Judging.objects.filter(attempt=attempt).update(lease_until=NOON)
    return judging_of(attempt)


def test_whoever_goes_on_with_a_lost_judging_runs_no_check_again(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long judging outlives its workers: what one of them decided is kept, and its tries begin anew."""
    attempt = acting("well")
    lost = lost_after_the_first_check(attempt, start())
    assert (lost.state, lost.tries) == (State.RUNNING, 1)
    said = noted(monkeypatch)
    assert start().work() == 1
    assert said == ["after"]
    assert results(attempt)["act"].evidence["text"].startswith("drawn: ")
    assert (judging_of(attempt).state, judging_of(attempt).so_far) == (State.DONE, {})


def noted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The checks that are run from now on; each passes."""
    said: list[str] = []

    def passed(clerk: Clerk, judging: Judging, found: Any, check: Any) -> Any:
        said.append(check.name)
        return check.passed("Decided.", Evidence("decided"))

    monkeypatch.setattr(Clerk, "_decided", passed)
    return said


def test_what_other_code_decided_is_run_again(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks were changed between two tries: one set of results is of one version."""
    attempt = acting("well")
    lost_after_the_first_check(attempt, start())
    monkeypatch.setattr(clerks, "marlow", lambda: "another")
    said = noted(monkeypatch)
    start().work()
    assert said == ["act", "after"]
    assert judging_of(attempt).marlow == "another"


def test_a_worker_that_was_given_up_keeps_nothing_for_others() -> None:
    attempt = School().hand_in()
    stale = queue.claim("box-a", NOON)
    assert stale is not None
    queue.give_back(stale, "It was slow.", NOON)
    assert queue.keep(stale, {"said": {}}, NOON) is False
    assert judging_of(attempt).so_far == {}
