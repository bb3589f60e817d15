"""The interface for programs: with a token, what the pages do, by the same rules and the same sight."""

import json
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import override_settings

from exercises.handed.checks import Shown
from grading import review, sight, threads
from grading.models import Attempt, Enrolment
from marlow.clock import real_now
from tests.grading.caller import WEEK, Caller, handed, school, told
from tests.grading.planted import planted
from tests.grading.school import FAILED, INSTRUCTOR, PASSED, RIGHT, WELL, Said, School, person

pytestmark = pytest.mark.django_db
MIXED = {
    "open": Said(PASSED, 3, 3),
    "later": Said(FAILED, 1, 2, Shown.AFTERWARDS),
    "secret": Said(FAILED, 0, 4, Shown.HIDDEN),
}


@pytest.fixture(autouse=True)
def _plain_http():
    with override_settings(SECURE_SSL_REDIRECT=False):
        yield


# --- Handing in ----------------------------------------------------------------------------------------------------


def test_a_student_finds_the_assignment_reads_what_is_asked_and_hands_in():
    here = school()
    caller = Caller(here.student)
    (row,) = caller.get("assignments")
    assert (row["exercise"], row["points"], row["standing"]["open"]) == ("advisory", 12, True)
    asked = caller.get(f"assignments/{row['id']}")
    assert asked["statement"].startswith("# ")
    assert set(asked["answers_schema"]["properties"]) == set(RIGHT)
    receipt = caller.post(f"assignments/{row['id']}/attempts", {"answers": RIGHT})
    attempt = Attempt.objects.get()
    assert receipt["receipt"] == str(attempt.receipt)
    assert (receipt["number"], receipt["sha256"], receipt["through"]) == (1, attempt.sha256, "interface")
    assert attempt.submission.student == here.student
    assert attempt.judgings.get().state == "waiting"
    assert caller.get(f"receipts/{attempt.receipt}") == receipt
    assert [one["receipt"] for one in caller.get("attempts", assignment=row["id"])] == [str(attempt.receipt)]
    assert caller.get("attempts", assignment=row["id"] + 1) == []


def test_the_file_of_the_command_line_may_be_sent_as_it_is():
    here = school()
    handed(here, {"exercise": "advisory", "answers": RIGHT})
    wrong = handed(here, {"exercise": "slot", "answers": RIGHT}, 422)
    assert wrong["problems"] == {"exercise": "This assignment is advisory: hand it in there."}
    assert Attempt.objects.count() == 1


def test_what_is_no_answer_is_told_field_by_field_and_costs_no_attempt():
    here = school()
    found = handed(here, {"answers": {**RIGHT, "box_a": "sleeps", "colour": "red"}}, 422)
    assert found["code"] == "not answers"
    assert set(found["problems"]) == {"box_a", "colour"}
    assert found["problems"]["colour"] == "There is no such field: leave it out."
    for answers in (None, [], "x", 7, {"a\ud800": 1}, {**RIGHT, "refused": "\ud800"}, {**RIGHT, "refused": "\x00"}):
        assert handed(here, {"answers": answers}, 422)["problems"]
    assert handed(here, {"answer": RIGHT}, 422)["problems"].keys() == {"answers", "answer"}
    assert not Attempt.objects.exists()


@pytest.mark.parametrize(
    ("rules", "status", "code"),
    [
        ({"opens_at": WEEK / 2}, 409, "not open yet"),
        ({"due_at": -WEEK / 2}, 409, "closed"),
        ({"attempts": 1}, 409, "no attempts left"),
        ({"cooldown": 600}, 429, "too soon"),
    ],
)
def test_what_the_form_refuses_is_refused_with_its_sentence_and_a_code(rules, status, code):
    now = real_now()
    here = school(**{name: now + rule if isinstance(rule, timedelta) else rule for name, rule in rules.items()})
    caller = Caller(here.student)
    address = f"assignments/{here.assignment.pk}/attempts"
    if {"attempts", "cooldown"} & set(rules):
        caller.post(address, {"answers": RIGHT})
    before = Attempt.objects.count()
    response = caller.client.post(f"/api/{address}", {"answers": RIGHT}, content_type="application/json")
    found = told(response, status)
    standing = caller.get("assignments")[0]["standing"]
    assert (found["code"], standing["code"], standing["open"]) == (code, code, False)
    assert Attempt.objects.count() == before
    assert (0 < int(response.get("Retry-After", 0)) <= 600) == (code == "too soon")


def keyed(caller: Caller, here: School, key: object, status: int = 201, **changed: object) -> Any:
    address = f"assignments/{here.assignment.pk}/attempts"
    return caller.post(address, {"answers": {**RIGHT, **changed}}, status, **{"Idempotency-Key": str(key)})


def test_the_same_key_again_makes_no_second_attempt_and_gets_the_same_answer():
    here, key = school(attempts=1), uuid.uuid4()
    caller = Caller(here.student)
    receipt = keyed(caller, here, key)
    assert receipt["receipt"] == str(key)
    assert keyed(caller, here, str(key).upper()) == receipt
    here.assignment.due_at = real_now() - WEEK / 2
    here.assignment.save()
    assert keyed(caller, here, key)["number"] == 1
    assert keyed(caller, here, uuid.uuid4(), 409)["code"] == "closed"
    assert Attempt.objects.count() == 1


def test_a_key_that_stands_for_something_else_is_refused_and_not_told_whose():
    here, there, key = school(), school("Thursday"), uuid.uuid4()
    keyed(Caller(here.student), here, key)
    assert keyed(Caller(here.student), here, key, 409, shelf=1)["code"] == "other answers"
    for one in (here.enrolled("neighbour"), there.student):
        found = keyed(Caller(one), here if one != there.student else there, key, 409)
        assert found == {"code": "receipt taken", "detail": "This receipt is taken: hand in under a fresh one."}
    assert Attempt.objects.count() == 1


@pytest.mark.parametrize("key", ["", "x", "1", "-1", "\x7f", "6f1c" * 400, "00000000-0000-4000-8000-00000000000g"])
def test_a_key_that_is_no_uuid_is_refused_with_a_sentence(key):
    here = school()
    found = keyed(Caller(here.student), here, key, 422)
    assert (found["code"], set(found["problems"])) == ("not valid", {"Idempotency-Key"})
    assert "UUID" in found["problems"]["Idempotency-Key"]
    assert not Attempt.objects.exists()


def test_the_owner_of_the_token_hands_in_and_nobody_for_somebody_else():
    here, there = school(), school("Thursday")
    caller = Caller(here.student)
    for one, status in ((there, 404), (here, 201)):
        caller.post(f"assignments/{one.assignment.pk}/attempts", {"answers": RIGHT}, status)
    assert Caller(here.teacher).post(f"assignments/{here.assignment.pk}/attempts", {"answers": RIGHT}, 403)
    assert [one.submission.student for one in Attempt.objects.all()] == [here.student]


def test_without_its_role_an_account_does_nothing_here_either():
    here = school()
    here.student.groups.remove(Group.objects.get(name="Student"))
    caller = Caller(here.student)
    for address in ("assignments", "attempts", "threads", f"assignments/{here.assignment.pk}"):
        assert caller.get(address, 403)["code"] == "not yours"
    caller.post(f"assignments/{here.assignment.pk}/attempts", {"answers": RIGHT}, 403)
    assert not Attempt.objects.exists()


def test_an_exercise_that_is_gone_is_told_so():
    here = school(exercise="of-last-year")
    caller = Caller(here.student)
    assert "not to be had" in caller.get("assignments")[0]["title"]
    assert caller.get(f"assignments/{here.assignment.pk}", 404)["code"] == "gone"
    assert handed(here, status=404)["code"] == "gone"


def test_why_an_exercise_can_not_be_read_is_told_to_no_student(tmp_path):
    """The cause may quote its checks."""
    with planted(tmp_path):
        here = school(exercise="acting")
        (tmp_path / "acting" / "checks.py").write_text("VERSION = (")
        caller = Caller(here.student)
        said = [*caller.get("assignments"), caller.get(f"assignments/{here.assignment.pk}", 404)]
        said.append(caller.post(f"assignments/{here.assignment.pk}/attempts", {"answers": RIGHT}, 404))
    assert all("not to be had just now" in str(one) for one in said)
    assert "SyntaxError" not in str(said)


# --- Looking -------------------------------------------------------------------------------------------------------


def judged(here: School) -> Attempt:
    return here.judged(MIXED, real_now())


def test_before_the_release_a_student_gets_no_points_and_nothing_of_what_is_hidden():
    here = school()
    attempt = judged(here)
    review.comment(attempt, "Nearly.", by=here.teacher, now=real_now())
    found = Caller(here.student).get(f"attempts/{attempt.receipt}")
    assert (found["state"], found["points"], found["comment"], found["changes"]) == ("done", None, None, [])
    shown, later, hidden = found["checks"]
    assert (shown["outcome"], shown["points"]) == ("passed", None)
    assert shown["evidence"]["text"] == "the evening of open"
    assert (later["outcome"], later["evidence"], later["withheld"]) == (None, None, sight.LATER)
    assert (hidden["outcome"], hidden["title"]) == (None, "A hidden check")
    assert "secret" not in json.dumps(found)
    assert "Nearly" not in json.dumps(found)


def test_with_the_release_they_come_and_of_a_hidden_check_never_what_it_ran():
    here = school()
    attempt = judged(here)
    review.override(attempt, "later", 2, "Well argued.", by=here.teacher, now=real_now())
    review.release(here.assignment, by=here.teacher, now=real_now())
    found = Caller(here.student).get(f"attempts/{attempt.receipt}")
    assert (found["points"], found["of"]) == (5, 9)
    assert [one["points"] for one in found["checks"]] == [3, 2, 0]
    assert found["checks"][2]["evidence"] is None
    assert "the evening of secret" not in json.dumps(found)
    assert {one["why"] for one in found["changes"]} == {"judged", "Well argued."}
    by_the_teacher = Caller(here.teacher).get(f"attempts/{attempt.receipt}")
    assert by_the_teacher["checks"][2]["evidence"]["text"] == "the evening of secret"


def test_a_check_that_nobody_decided_has_no_points_until_a_person_gives_some():
    here = school()
    attempt = here.judged({**MIXED, "open": Said(INSTRUCTOR, 0, 3)}, real_now())
    review.release(here.assignment, by=here.teacher, now=real_now())

    def points(viewer: Any) -> list[Any]:
        return [one["points"] for one in Caller(viewer).get(f"attempts/{attempt.receipt}")["checks"]]

    assert points(here.student) == points(here.teacher) == [None, 1, 0]
    review.override(attempt, "open", 0, "Nothing of it.", by=here.teacher, now=real_now())
    assert points(here.student) == points(here.teacher) == [0, 1, 0]


def test_nobody_learns_of_another_s_work_not_even_that_it_is_there():
    here, there = school(), school("Thursday")
    attempt = judged(here)
    thread = threads.open_thread(attempt, "open", "Why?", by=here.student, now=real_now())
    for stranger in (here.enrolled("neighbour"), there.student, there.teacher, person("lonely")):
        caller = Caller(stranger)
        never = caller.get("attempts/00000000-0000-4000-8000-000000000000", 404)
        for address in (f"attempts/{attempt.receipt}", f"receipts/{attempt.receipt}"):
            assert caller.get(address, 404) == never
        caller.get(f"threads/{thread.pk}", 404)
        caller.post(f"threads/{thread.pk}/posts", {"text": "Me too."}, 404)
        caller.post(f"threads/{thread.pk}/close", {}, 404)
        caller.post(f"attempts/{attempt.receipt}/threads", {"check": "open", "text": "Why?"}, 404)
        assert caller.get("attempts") == caller.get("threads") == []


def test_who_has_left_the_class_sees_nothing_of_it_any_more():
    here = school()
    attempt = judged(here)
    caller = Caller(here.student)
    caller.get(f"attempts/{attempt.receipt}")
    Enrolment.objects.filter(student=here.student).delete()
    caller.get(f"attempts/{attempt.receipt}", 404)
    assert caller.get("assignments") == []


def test_long_lists_come_in_pages_at_a_constant_price(django_assert_max_num_queries):
    here = school()
    for number in range(3):
        here.hand_in(real_now(), here.enrolled(f"student {number}"))
    caller = Caller(here.teacher)
    caller.get("attempts")
    with django_assert_max_num_queries(9):
        assert len(caller.get("attempts")) == 3
    assert len(caller.get("attempts", skip=2)) == 1
    assert caller.get("attempts", 422, skip=-1)["problems"].keys() == {"skip"}
    assert caller.get("attempts", 422, assignment=2**70)["problems"].keys() == {"assignment"}


# --- Second looks --------------------------------------------------------------------------------------------------


def test_a_second_look_is_asked_for_answered_closed_and_opened_again():
    here = school()
    attempt = judged(here)
    student, teacher = Caller(here.student), Caller(here.teacher)
    made = student.post(f"attempts/{attempt.receipt}/threads", {"check": "open", "text": "Why?"})
    address = f"threads/{made['id']}"
    answered = teacher.post(f"{address}/posts", {"text": "Because."})
    assert [post["text"] for post in answered["posts"]] == ["Why?", "Because."]
    assert student.post(f"{address}/close", {}, 403)["code"] == "not yours"
    assert not teacher.post(f"{address}/close", {}, 200)["open"]
    assert student.post(f"{address}/reopen", {}, 403)["code"] == "not yours"
    assert teacher.post(f"{address}/reopen", None, 200)["open"]
    teacher.post(f"{address}/close", {}, 200)
    assert (student.get("threads", open="true"), len(student.get("threads", open="false"))) == ([], 1)
    assert student.post(f"{address}/posts", {"text": "But why?"})["open"]
    assert student.get(address)["posts"][2]["by"] == here.student.username


def test_a_second_look_that_makes_no_sense_is_refused_with_a_sentence():
    here = school()
    address = f"attempts/{judged(here).receipt}/threads"
    caller = Caller(here.student)
    assert caller.post(address, {"check": "open", "text": "  "}, 422)["code"] == "not a post"
    assert caller.post(address, {"check": "secret", "text": "Why?"}, 422)["code"] == "not a post"
    assert caller.post(address, {"check": "open", "text": 7}, 422)["problems"].keys() == {"text"}
    assert caller.post(address, {"check": "open", "text": "\ud800"}, 422)["problems"].keys() == {"text"}
    assert not sight.threads(here.teacher).exists()


def test_judged_results_look_the_same_as_in_the_pages():
    """One visibility: what the interface tells is what `seen` says, field by field."""
    here = school()
    attempt = here.judged(WELL, real_now())
    for viewer in (here.student, here.teacher):
        seen = sight.seen(viewer, attempt, real_now())
        found = Caller(viewer).get(f"attempts/{attempt.receipt}")
        for name in ("outcome", "sentence", "points", "withheld", "evidence"):
            assert [one[name] for one in found["checks"]] == [getattr(one, name) for one in seen.checks]
        assert (found["points"], found["state"]) == (seen.points, seen.state)
