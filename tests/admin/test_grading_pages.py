"""The pages of students and of their instructors: what is given, the form, the attempt and the run behind a check."""

import re
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse

from exercises.handed.answers import NotAnswers
from exercises.handed.checks import Shown
from exercises.handed.exercise import catalogue, exercise
from exercises.handed.paper import on_paper
from grading import queue, review, threads
from grading.grade import results_of
from grading.handin import Refused, hand_in
from grading.models import Assignment, Attempt, GradeChange, Judging, Thread
from marlow import classroom
from marlow.clock import real_now
from tests.admin.conftest import text, words
from tests.admin.desk import client_of, handed_in, hands_in, sent, to
from tests.grading.school import (
    DAY,
    FAILED,
    INSTRUCTOR,
    MINUTE,
    RIGHT,
    WELL,
    Said,
    School,
    both,
    break_off,
    claimed,
    person,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def now() -> Any:
    return real_now()


@pytest.fixture
def school(now: Any) -> School:
    """Open since yesterday, due in a week: the pages live on the real clock."""
    return School(rules={"opens_at": now - DAY, "due_at": now + 7 * DAY})


def test_a_student_reads_what_is_given_with_its_deadline_in_the_class_s_zone(now):
    school = School(zone="Pacific/Auckland", rules={"opens_at": now - DAY, "due_at": now + DAY, "attempts": 3})
    page = words(text(client_of(school.student), to("exercises")))
    assert "Swap in the advisory lock" in page
    assert "(Pacific/Auckland)" in page
    assert "0 made, 3 attempts left" in page
    assert "not begun" in page


def test_the_first_page_says_what_is_to_be_handed_in_and_who_waits_for_an_answer(school, now):
    student, teacher = client_of(school.student), client_of(school.teacher)
    first = reverse("admin:index")
    assert "1 exercise to hand in Next: Swap in the advisory lock, due" in words(text(student, first))
    attempt = school.judged(now=now)
    assert "All handed in" in words(text(student, first))
    assert "Nobody waits 1 attempt handed in by your classes." in words(text(teacher, first))
    asked = threads.open_thread(attempt, "refused", "Why?", by=school.student, now=now)
    parked = school.hand_in(now + MINUTE, school.enrolled("neighbour"))
    break_off(parked, now + MINUTE)
    page = text(teacher, first)
    assert "2 attempts to look at" in words(page)
    assert f'href="{to("attempt", attempt.pk)}"' in page
    threads.close(asked, by=school.teacher, now=now)
    page = text(teacher, first)
    assert ("1 attempt to look at" in words(page), f'href="{to("attempt", parked.pk)}"' in page) == (True, True)
    for check in results_of(Attempt.objects.get(pk=parked.pk)):
        review.override(parked, check.name, 0, "Seen.", by=school.teacher, now=now)
    assert "Nobody waits" in words(text(teacher, first))
    assert "No class of yours has exercises." in words(text(client_of(person("newcomer")), first))


def test_the_demo_s_student_finds_every_exercise_given_and_it_stays_one_class(now):
    person("student"), person("instructor", "Instructor")
    classroom.furnish(now)
    of = classroom.furnish(now + 60 * DAY)
    page = text(client_of(of.students.get()), to("exercises"))
    assert [slug for slug in catalogue() if exercise(slug).title not in page] == []
    assert of.assignments.count() == len(catalogue())
    assert all(one.due_at > now + 60 * DAY for one in of.assignments.all())
    assert of.name in text(client_of(of.instructors.get()), to("exercises"))


def test_what_is_handed_in_is_acknowledged_on_its_own_page(school):
    client = client_of(school.student)
    response = hands_in(client, school)
    attempt = Attempt.objects.get()
    assert (response.status_code, response["Location"]) == (302, to("attempt", attempt.pk))
    page = text(client, response["Location"])
    assert f"Handed in as attempt 1. Its receipt is {attempt.receipt}." in page
    assert attempt.sha256 in page
    assert "Number 1 in the queue" in page
    assert (attempt.answers, attempt.through) == (RIGHT, "form")


def test_what_is_wrong_stands_at_its_field_and_nothing_typed_is_lost(school):
    response = handed_in(school, **{"answers.catalogue": "many", "answers.box_a": "flies"})
    page = response.content.decode()
    assert response.status_code == 422
    assert not Attempt.objects.exists()
    assert 'value="many"' in page
    assert re.search(r'id="id_catalogue-problem">This should be a valid integer', page)
    assert 'id="id_box_a-problem"' in page
    assert 'aria-describedby="id_catalogue-problem id_catalogue-help"' in page
    assert re.search(r'value="both" checked', page)


def test_every_id_on_the_form_of_every_exercise_is_one_element_s_and_what_points_to_it_finds_it(school, now):
    client, rules = client_of(school.student), {"opens_at": now - DAY, "due_at": now + DAY}
    given = [school.assignment]
    for slug in set(catalogue()) - {school.assignment.exercise}:
        given.append(Assignment.objects.create(of=school.of, exercise=slug, **rules))
    for one in given:
        address = to("assignment", one.pk)
        wrong = client.post(address, {"do": "hand in"})
        assert wrong.status_code == 422
        for page in (text(client, address), wrong.content.decode()):
            ids = re.findall(r'\bid="([^"]*)"', page)
            assert (sorted(ids), "" in ids) == (sorted(set(ids)), False)
            pointed = re.findall(r'<a href="#([^"]*)"', page[page.index("content-main") :])
            for found in re.findall(r'(?:aria-describedby|aria-labelledby|\bfor)="([^"]*)"', page):
                pointed += found.split()
            assert set(pointed) <= set(ids)


def test_what_is_wrong_with_a_row_as_a_whole_stands_in_it(school, now, monkeypatch):
    given = Assignment.objects.create(of=school.of, exercise="slot", opens_at=now - DAY, due_at=now + DAY)
    wrong = NotAnswers({"events.0": "This event makes no sense.", "events": "These come in no order."})
    monkeypatch.setattr("grading.admin.exercises.hand_in", Mock(side_effect=wrong))
    said = {"do": "hand in", "answers.events.rows": "1", "answers.events.0.at": "21:50:00"}
    page = client_of(school.student).post(to("assignment", given.pk), said).content.decode()
    for name in ("id_events-0", "id_events"):
        assert re.search(rf'<a href="#{name}">[^<]', page)
        assert f'id="{name}"' in page
        assert f'id="{name}-problem"' in page


BAD_POSTS: list[dict[str, Any]] = [
    {},
    {"do": "hand in"},
    {"do": ["hand in", "look"]},
    {"do": "hand in", "answers.": "x", "answers..": "y", "answers": "z"},
    {"do": "hand in", "answers.box_a.0": "x", "answers.box_a.rows": "7"},
    {"do": "hand in", **sent(**RIGHT), "answers.shelf": "9" * 5000},
    {"do": "hand in", **sent(**RIGHT), "answers.shelf": "١"},
    {"do": "hand in", **sent(**RIGHT), "answers.shelf": "-1"},
    {"do": "hand in", **sent(**RIGHT), "answers.box_a": "\ud800".encode("utf-8", "surrogatepass")},
    {"do": "hand in", **sent(**RIGHT), "answers.box_a": "x" * 200_000},
    {"add": "nothing", **sent(**RIGHT)},
    {"add": "../..", "remove": "box_a"},
    {"remove": "steps.0", **sent(**RIGHT)},
    {"do": "give me all points"},
]


@pytest.mark.parametrize("post", BAD_POSTS, ids=range(len(BAD_POSTS)))
def test_a_post_that_is_no_answer_gives_the_form_again_and_never_a_traceback(school, post):
    response = client_of(school.student).post(to("assignment", school.assignment.pk), post)
    assert response.status_code in (200, 422)
    assert 'class="answers"' in response.content.decode()
    assert not Attempt.objects.exists()


def test_enter_in_a_field_hands_in_nothing_and_keeps_what_was_typed(school):
    response = handed_in(school, do="look")
    assert "Nothing is handed in yet" in response.content.decode()
    assert re.search(r'value="both" checked', response.content.decode())
    assert not Attempt.objects.exists()


def test_a_refusal_is_told_and_the_answers_stay(now):
    school = School(rules={"opens_at": now - DAY, "due_at": now + DAY, "attempts": 1})
    assert handed_in(school).status_code == 302
    response = handed_in(school)
    assert response.status_code == 409
    assert "You have no attempts left" in response.content.decode()
    assert Attempt.objects.count() == 1
    with pytest.raises(Refused):
        hand_in(school.student, school.assignment, RIGHT, now=real_now(), through="form")


def test_after_the_deadline_the_form_is_shown_and_takes_nothing(now):
    school = School(rules={"opens_at": now - 3 * DAY, "due_at": now - DAY})
    page = text(client_of(school.student), to("assignment", school.assignment.pk))
    assert "The deadline is over" in page
    assert "Hand in</button>" not in page
    assert handed_in(school).status_code == 409


def test_a_form_that_came_from_elsewhere_is_refused(school):
    client = Client(enforce_csrf_checks=True)
    client.force_login(school.student)
    said = {**sent(**RIGHT), "do": "hand in"}
    assert client.post(to("assignment", school.assignment.pk), said).status_code == 403
    assert client.post(to("attempt", school.hand_in(real_now()).pk), {"do": "ask"}).status_code == 403


def test_another_attempt_starts_from_an_earlier_one_of_one_s_own(school, now):
    school.hand_in(now)
    client = client_of(school.student)
    assert 'value="both" checked' in text(client, to("assignment", school.assignment.pk), **{"from": "1"})
    for odd in ("2", "x", "9" * 40, "²", "-1"):
        assert 'value="both" checked' not in text(client, to("assignment", school.assignment.pk), **{"from": odd})
    other = client_of(school.enrolled("another"))
    assert 'value="both" checked' not in text(other, to("assignment", school.assignment.pk), **{"from": "1"})


def test_a_student_sees_what_each_check_says_and_points_with_the_release_alone(school, now):
    attempt, client = school.judged(now=now), client_of(school.student)
    page = words(text(client, to("attempt", attempt.pk)))
    assert "What refused teaches." in page
    assert "2 of 3 checks passed. Points are shown when the instructor releases them." in page
    assert "6 of 8 points" not in page
    review.override(attempt, "refused", 1, "half right", by=school.teacher, now=now)
    review.comment(attempt, "Well seen.", by=school.teacher, now=now)
    assert "half right" not in (hidden := text(client, to("attempt", attempt.pk)))
    assert "Well seen." not in hidden
    assert "History of this grade" not in hidden
    for page in (to("exercises"), to("assignment", school.assignment.pk)):
        assert " of 8" not in words(text(client, page))
    review.release(school.assignment, by=school.teacher, now=now)
    page = words(text(client, to("attempt", attempt.pk)))
    for told in ("7 of 8 points", "half right", "Well seen.", "History of this grade"):
        assert told in page
    assert "7 of 8" in words(text(client, to("assignment", school.assignment.pk)))
    assert "7 of 8 points" in words(text(client, to("exercises")))


def test_a_hidden_check_has_no_name_before_the_release_and_no_run_ever(school, now):
    says = {**WELL, "secret": Said(FAILED, 0, 4, Shown.HIDDEN)}
    attempt, client = school.judged(says, now=now), client_of(school.student)
    page = text(client, to("attempt", attempt.pk))
    assert "The secret" not in page
    assert "A hidden check" in page
    for name in ("secret", "hidden-3"):
        assert client.get(to("evidence", attempt.pk, name)).status_code == 404
    review.release(school.assignment, by=school.teacher, now=now)
    assert "The secret" in text(client, to("attempt", attempt.pk))
    assert client.get(to("evidence", attempt.pk, "secret")).status_code == 404
    assert "the evening of secret" in text(client_of(school.teacher), to("evidence", attempt.pk, "secret"))


def test_the_run_behind_a_check_is_told_with_the_way_to_play_it_again(school, now):
    attempt = school.judged(now=now)
    page = text(client_of(school.student), to("evidence", attempt.pk, "refused"))
    for told in ("What refused teaches.", "the evening of refused", "manage.py lab wednesday", "a b", "seed 7"):
        assert told in page
    assert client_of(school.student).get(to("evidence", attempt.pk, "nothing")).status_code == 404


def test_a_parked_attempt_is_an_instructor_s_who_sees_why_and_lets_it_try_again(school, now):
    attempt = school.hand_in(now)
    break_off(attempt, now)
    page = words(text(client_of(school.student), to("attempt", attempt.pk)))
    assert "it costs you no attempt" in page
    assert "The desk stopped." not in page
    assert "Why the judge gave up: The desk stopped." in words(
        text(client_of(school.teacher), to("attempt", attempt.pk))
    )
    assert client_of(school.student).post(to("attempt", attempt.pk), {"do": "again"}).status_code == 403
    assert Judging.objects.get().state == "parked"
    assert client_of(school.teacher).post(to("attempt", attempt.pk), {"do": "again"}).status_code == 302
    assert Judging.objects.get().state == "waiting"
    again = client_of(school.teacher).post(to("attempt", attempt.pk), {"do": "again"})
    assert "It is not parked any more" in again.content.decode()


def test_an_attempt_that_was_tried_once_is_not_given_up(school, now):
    attempt = school.hand_in(now)
    queue.give_back(claimed(now), "The desk stopped.", now)
    page = words(text(client_of(school.teacher), to("attempt", attempt.pk)))
    assert "Why it is tried again: The desk stopped." in page
    assert "gave up" not in page


def test_a_parked_attempt_is_said_to_cost_nothing_only_where_it_does(now):
    school = School(rules={"opens_at": now - DAY, "due_at": now + DAY})
    client = client_of(school.student)
    for number in range(queue.GIVEN_BACK + 1):
        attempt = school.hand_in(now)
        break_off(attempt, now)
        page = words(text(client, to("attempt", attempt.pk)))
        free = number < queue.GIVEN_BACK
        assert ("it costs you no attempt" in page, "it costs no attempt" in page) == (free, free)
        assert "An instructor looks at it" in page


def test_an_attempt_leads_to_its_regrade_whoever_may_begin_one(school, now):
    attempt = school.judged(now=now)
    way = f'href="{to("regrades")}?attempt={attempt.pk}"'
    assert way in text(client_of(school.teacher), to("attempt", attempt.pk))
    assert way not in text(client_of(school.student), to("attempt", attempt.pk))
    looks = Group.objects.create(name="looks")
    looks.permissions.set(Permission.objects.filter(codename__in=["view_attempt", "view_regrade"]))
    school.teacher.groups.set([looks])
    assert way not in text(client_of(school.teacher), to("attempt", attempt.pk))
    parked = school.hand_in(now)
    break_off(parked, now)
    root = client_of(person("root", is_superuser=True))
    assert f'href="{to("regrades")}?attempt={parked.pk}"' in text(root, to("attempt", parked.pk))


def test_an_instructor_gives_other_points_with_a_reason_and_takes_them_back(school, now):
    attempt, client = school.judged(now=now), client_of(school.teacher)
    page = to("attempt", attempt.pk)
    wrong = client.post(page, {"do": "override", "check": "refused", "points": "3", "reason": "kept while wrong"})
    assert "give from 0 to 2" in wrong.content.decode()
    assert "kept while wrong" in wrong.content.decode()
    for points in ("", "-1", "1.5", "x", "9" * 30, "²"):
        refused = client.post(page, {"do": "override", "check": "refused", "points": points, "reason": "so"})
        assert refused.status_code == 422
    assert "Say why" in client.post(page, {"do": "override", "check": "refused", "points": "1"}).content.decode()
    given = client.post(page, {"do": "override", "check": "refused", "points": "1", "reason": "half right"})
    assert given["Location"] == f"{page}#check-refused"
    assert "7 of 8 points" in words(text(client, page))
    client.post(page, {"do": "withdraw", "check": "refused", "reason": "on reflection"})
    assert "6 of 8 points" in words(text(client, page))
    assert [change.why for change in GradeChange.objects.filter(by=school.teacher)] == ["on reflection", "half right"]


def test_a_second_look_is_asked_for_and_answered_on_the_page(school, now):
    attempt = school.judged(now=now)
    page = to("attempt", attempt.pk)
    student, teacher = client_of(school.student), client_of(school.teacher)
    assert student.post(page, {"do": "ask", "check": "refused", "text": " "}).status_code == 422
    assert student.post(page, {"do": "ask", "check": "refused", "text": "Why <b>not</b>?"}).status_code == 302
    assert "Why &lt;b&gt;not&lt;/b&gt;?" in text(teacher, page)
    assert 'name="seen" value="1"' in text(teacher, page)
    late = teacher.post(page, {"do": "answer", "check": "refused", "text": "Look at 21:52.", "seen": "0"})
    assert (late.status_code, "Somebody has written here" in late.content.decode()) == (422, True)
    teacher.post(page, {"do": "answer", "check": "refused", "text": "Look at 21:52.", "seen": "1"})
    assert not Thread.objects.get().open
    assert "Look at 21:52." in text(student, page)
    student.post(page, {"do": "post", "check": "refused", "text": "I see."})
    assert Thread.objects.get().open
    teacher.post(page, {"do": "close", "check": "refused", "seen": "3"})
    assert not Thread.objects.get().open
    teacher.post(page, {"do": "reopen", "check": "refused"})
    assert Thread.objects.get().open
    assert teacher.post(page, {"do": "answer", "check": "boxes", "text": "There is none."}).status_code == 404


def test_the_times_of_an_attempt_are_in_the_class_s_zone_and_name_it():
    """A second look that was asked for on Wednesday at noon in London: Thursday in Auckland."""
    school = School(zone="Pacific/Auckland")
    attempt, asked_at = school.judged(), datetime(2026, 3, 11, 12, 0, tzinfo=UTC)
    threads.open_thread(attempt, "refused", "Why?", by=school.student, now=asked_at)
    review.override(attempt, "refused", 1, "half right", by=school.teacher, now=asked_at + MINUTE)
    page = words(text(client_of(school.teacher), to("attempt", attempt.pk)))
    assert "Received Wed 11 Mar 2026, 01:00 (Pacific/Auckland)" in page
    assert "student-Wednesday , Thu 12 Mar 2026, 01:00 (Pacific/Auckland) Why?" in page
    assert "half right teacher-Wednesday Thu 12 Mar 2026, 01:01:00 (Pacific/Auckland)" in page


def test_a_check_that_nobody_decided_is_no_zero(school, now):
    says = {**WELL, "refused": Said(INSTRUCTOR, 0, 2)}
    page = to("attempt", school.judged(says, now=now).pk)
    client = client_of(school.teacher)
    told = text(client, page)
    assert re.search(r'id="check-refused".*?<span class="points">2 points</span>.*?What was seen', told, re.DOTALL)
    assert re.search(r'id="check-boxes".*?<b>3</b> of 3.*?The run that decided it', told, re.DOTALL)
    runs = {name: text(client, to("evidence", Attempt.objects.get().pk, name)) for name in ("refused", "boxes")}
    assert "What was seen at this check of attempt 1." in runs["refused"]
    assert "The run that decided this check of attempt 1." in runs["boxes"]
    assert "6 of 8 incomplete" in words(text(client, to("assignment", school.assignment.pk)))
    client.post(page, {"do": "override", "check": "refused", "points": "0", "reason": "No."})
    assert re.search(r'id="check-refused".*?<b>0</b> of 2', text(client, page), re.DOTALL)
    assert "incomplete" not in words(text(client, to("assignment", school.assignment.pk)))


def test_the_list_of_exercises_leads_an_instructor_to_each_attempt_on_which_somebody_waits(school, now):
    assert "To look at" not in text(client_of(school.teacher), to("exercises"))
    asked = school.judged(now=now)
    threads.open_thread(asked, "refused", "Why?", by=school.student, now=now)
    parked = school.hand_in(now, school.enrolled("neighbour"))
    break_off(parked, now)
    page = text(client_of(school.teacher), to("exercises"))
    assert "To look at attempt 1 of student-Wednesday , attempt 1 of neighbour" in words(page)
    assert all(f'href="{to("attempt", one.pk)}"' in page for one in (asked, parked))
    for other in (school.student, School("Thursday").teacher):
        assert "To look at" not in text(client_of(other), to("exercises"))


def test_points_given_where_another_attempt_counts_are_said_to_leave_the_grade(school, now):
    best = school.judged(now=now - 2 * MINUTE)
    worse = school.judged(
        {name: replace(said, outcome=FAILED, points=0) for name, said in WELL.items()}, now - MINUTE
    )
    client, form = client_of(school.teacher), {"do": "override", "check": "refused", "reason": "So."}

    def given(attempt: Attempt, points: int) -> str:
        answer = client.post(to("attempt", attempt.pk), {**form, "points": points}, follow=True)
        return words(answer.content.decode())

    assert "The grade stays: attempt 1 counts, with 6 of 8." in given(worse, 2)
    page = given(best, 1)
    assert ("1 of 2 points are given" in page, "The grade stays" in page) == (True, False)


def test_the_attempt_that_counts_is_marked_for_who_sees_grades(school, now):
    best = school.judged(now=now - 2 * MINUTE)
    school.judged({name: replace(said, outcome=FAILED, points=0) for name, said in WELL.items()}, now - MINUTE)
    student, page = client_of(school.student), to("assignment", school.assignment.pk)
    neighbour = client_of(school.enrolled("neighbour"))
    before = words(text(student, page)) + words(text(student, to("exercises")))
    assert ("counts </td>" in text(student, page), "our grade" in before) == (False, False)
    marked = r'attempts/(\d+)/(?:(?!</tr>).)*?<span class="quiet">counts</span>'
    assert re.findall(marked, text(client_of(school.teacher), page), re.DOTALL) == [str(best.pk)]
    review.release(school.assignment, by=school.teacher, now=now)
    assert re.findall(marked, text(student, page), re.DOTALL) == [str(best.pk)]
    assert "6 of 8 points are your grade" in words(text(student, page))
    assert "Your grade 6 of 8 points" in words(text(student, to("exercises")))
    assert "our grade" not in words(text(neighbour, page))


def test_a_grade_that_still_waits_for_somebody_is_marked_incomplete(school, now):
    attempt, student = school.judged({**WELL, "refused": Said(INSTRUCTOR, 0, 2)}, now=now), client_of(school.student)
    review.release(school.assignment, by=school.teacher, now=now)
    pages = [to("assignment", school.assignment.pk), to("exercises")]

    def told() -> list[str]:
        return [words(text(student, page)) for page in pages]

    one, every = told()
    assert "6 of 8 points are your grade, which is incomplete: the best" in one
    assert "Your grade 6 of 8 points incomplete" in every
    review.override(attempt, "refused", 1, "Half.", by=school.teacher, now=now)
    one, every = told()
    assert "7 of 8 points are your grade: the best" in one
    assert "incomplete" not in one + every


def test_where_a_second_look_was_asked_for_is_marked_in_the_list(school, now):
    attempt = school.judged(now=now)
    page, viewers = to("assignment", school.assignment.pk), [client_of(school.student), client_of(school.teacher)]
    assert all("second look" not in text(one, page) for one in viewers)
    thread = threads.open_thread(attempt, "refused", "Why?", by=school.student, now=now)
    assert all("second look open" in text(one, page) for one in viewers)
    threads.answer(thread, "So.", by=school.teacher, now=now)
    assert all("second look answered" in text(one, page) for one in viewers)


def test_the_first_page_leads_to_every_page_that_may_be_opened(school):
    links = {
        name: f'<li><a href="{reverse(f"admin:{name}")}">'
        for name in (
            *("grading_gradebook", "grading_likeness", "grading_queue"),
            *("grading_regrades", "grading_releases", "grading_tokens"),
        )
    }

    def led(client: Client) -> set[str]:
        page = text(client, reverse("admin:index"))
        return {name for name, link in links.items() if link in page}

    assert led(client_of(school.teacher)) == set(links)
    assert led(client_of(school.student)) == {"grading_tokens"}
    assert led(client_of(person("operator", "Operator"))) == {"grading_queue"}


def test_what_was_handed_in_can_be_judged_again_at_home(school, now, tmp_path):
    attempt = school.judged(now=now)
    page = text(client_of(school.teacher), to("attempt", attempt.pk))
    assert f'href="{to("answers", attempt.pk)}"' in page
    file = tmp_path / "answers.json"
    for viewer in (school.student, school.teacher):
        file.write_bytes(client_of(viewer).get(to("answers", attempt.pk)).content)
        found, given = on_paper(file)
        assert (found.slug, given) == ("advisory", RIGHT)
    for stranger in (school.enrolled("neighbour"), School("Thursday").teacher):
        assert client_of(stranger).get(to("answers", attempt.pk)).status_code == 404


def test_what_is_asked_is_not_read_before_it_opens(now):
    school = School(rules={"opens_at": now + DAY, "due_at": now + 7 * DAY})
    page = to("assignment", school.assignment.pk)
    for student in (school.student, both(school, School("Thursday"))):
        client = client_of(student)
        seen = text(client, page) + client.post(page, {"do": "look"}).content.decode()
        seen += client.post(page, {"do": "hand in"}).content.decode()
        assert ("It opens on" in seen, 'name="answers.box_a"' in seen, "<article" in seen) == (True, False, False)
    taught = text(client_of(school.teacher), page)
    assert ('name="answers.box_a"' in taught, "<article" in taught) == (True, True)


def test_a_receipt_leads_to_its_attempt_for_those_who_may_see_it(school, now):
    attempt = school.hand_in(now)
    found = client_of(school.student).get(to("exercises"), {"receipt": f" {attempt.receipt} "})
    assert found["Location"] == to("attempt", attempt.pk)
    other = client_of(person("stranger"))
    for number in (str(attempt.receipt), str(uuid.uuid4()), "x", "{" * 400):
        assert "There is no such receipt of yours" in text(other, to("exercises"), receipt=number)


def test_a_deed_nobody_knows_is_told_so(school, now):
    attempt = school.judged(now=now)
    for post in ({}, {"do": "dance"}, {"do": "override"}, {"do": "comment", "text": "x" * 10_001}):
        response = client_of(school.teacher).post(to("attempt", attempt.pk), post)
        assert response.status_code == 422
        assert 'role="alert"' in response.content.decode()


def test_an_attempt_of_an_exercise_that_is_gone_is_still_read(school, now):
    attempt = school.judged(now=now)
    school.assignment.exercise = "gone"
    school.assignment.save()
    page = text(client_of(school.student), to("attempt", attempt.pk))
    assert "has nothing to do" in page
    listed = text(client_of(school.student), to("assignment", school.assignment.pk))
    assert "not to be had just now" in listed
    assert (
        client_of(school.student).post(to("assignment", school.assignment.pk), {"do": "hand in"}).status_code == 200
    )


def test_a_list_of_a_class_s_attempts_costs_the_same_however_long(school, now, django_assert_max_num_queries):
    for number in range(3):
        school.judged(now=now + number * MINUTE, student=school.enrolled(f"student {number}"))
    client = client_of(school.teacher)
    client.get(to("assignment", school.assignment.pk))
    with django_assert_max_num_queries(24):
        client.get(to("assignment", school.assignment.pk))
