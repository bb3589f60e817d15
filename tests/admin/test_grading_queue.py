"""The judge's queue: numbers for who looks after it, the work for who teaches it, and nothing for anybody else."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from grading import judges, queue, regrade
from grading.models import Judging
from marlow.clock import real_now
from tests.admin.conftest import account, answer, client_of, text, words
from tests.admin.desk import OUTSIDERS, outsider
from tests.grading.anew import begun, judged_anew
from tests.grading.school import DAY, INSTRUCTOR, NOON, UNDECIDED, Said, School, break_off, claimed

pytestmark = pytest.mark.django_db
PAGE = "admin:grading_queue"


def read(client: Client) -> str:
    return words(text(client, reverse(PAGE)))


def again(client: Client, number: object) -> int:
    return int(client.post(reverse(PAGE), {"again": str(number)}).status_code)


def states() -> list[Any]:
    return list(Judging.objects.order_by("pk").values_list("pk", "state", "tries", "failed"))


def test_an_instructor_reads_what_waits_runs_and_is_parked_of_their_class(school):
    school.judged({"boxes": Said(UNDECIDED, 0, 3)})
    waits, now = school.enrolled("who-waits"), real_now()
    running = school.hand_in(NOON, school.enrolled("who-runs"))
    taken = claimed(now, "box-b")
    queue.renew(taken, now, "tries every order")
    school.hand_in(NOON + DAY / 2, waits)
    page = read(client_of(school.teacher))
    for told in ("1 waiting, the first", "1 being judged", "1 parked", "Could not decide: The boxes", "who-waits"):
        assert told in page
    assert "who-runs, attempt 1" in page
    assert "box-b" in page
    assert "tries every order" in page
    assert taken.attempt == running


def test_places_are_counted_in_the_queue_of_everybody(school):
    other = School("Thursday")
    other.hand_in(NOON)
    school.hand_in(NOON + DAY / 2)
    page = text(client_of(school.teacher), reverse(PAGE))
    assert '<td class="number" data-label="Place">2</td>' in page
    assert "student-Thursday" not in page


def test_what_is_handed_in_stands_before_a_regrade_that_was_asked_for_earlier(school):
    """As it is judged."""
    begun(school, school.judged())
    school.hand_in(NOON + 2 * DAY, school.enrolled("who-is-next"))
    page = read(client_of(school.teacher))
    assert page.index("who-is-next") < page.index("regrade:")
    assert re.findall(r'data-label="Place">(\d+)<', text(client_of(school.teacher), reverse(PAGE))) == ["1", "2"]


def test_a_parked_attempt_is_tried_again_and_costs_again(teacher, school):
    attempt = school.hand_in()
    parked = break_off(attempt)
    assert "The desk stopped." in read(teacher)
    assert "waits for the judge again" in answer(teacher, reverse(PAGE), again=parked.pk)
    parked.refresh_from_db()
    assert (parked.state, parked.tries) == ("waiting", 0)
    assert "It is not parked any more" in answer(teacher, reverse(PAGE), again=parked.pk)


def test_an_operator_reads_numbers_and_boxes_and_nobody_s_work(school):
    break_off(school.hand_in())
    school.hand_in(NOON + DAY / 2)
    page = read(client_of(account("Operator")))
    assert "1 waiting" in page
    assert "1 parked" in page
    for kept in ("student-Wednesday", "The desk stopped", "Wednesday", "Swap in"):
        assert kept not in page


def test_each_box_says_whether_programs_run_there_and_whether_their_memory_is_bounded_together(school):
    judges.opened("box-a", "", True, NOON)
    judges.opened("box-b", "", False, NOON)
    judges.opened("box-c", "User namespaces are not allowed.", False, NOON)
    school.hand_in()
    claimed(real_now(), "box-d")
    page = read(client_of(account("Operator")))
    for told in (
        "box-a 0 0 0 nothing lately Tue 10 Mar, 12:00:00 run in the sandbox memory bounded together, by a cgroup",
        "run in the sandbox memory bounded for each process, not together: no cgroup can be written",
        "not run here User namespaces are not allowed.",
        "box-d 1",
        "not yet not tried yet",
    ):
        assert told in page


def test_where_something_waits_and_no_judge_was_seen_the_page_warns(school):
    """Not where one was seen just now, and not where nothing waits."""
    client, now = client_of(account("Operator")), real_now()
    judges.opened("box-a", "", True, now - DAY)
    assert "Nobody judges" not in read(client)
    school.hand_in()
    assert "Nobody judges A judge was last seen on " in read(client)
    judges.looked("box-a", now)
    assert "Nobody judges" not in read(client)


@pytest.mark.parametrize("who", OUTSIDERS)
def test_only_its_instructor_has_it_tried_again(who, school):
    parked = break_off(school.hand_in())
    client, before = outsider(who, school, School("Thursday")), states()
    assert again(client, parked.pk) in (403, 404)
    assert states() == before
    assert again(client_of(school.teacher), parked.pk) == 302
    assert states() != before


def test_it_is_not_done_without_the_form_s_own_key(school):
    parked = break_off(school.hand_in())
    client = client_of(school.teacher, enforce_csrf_checks=True)
    assert again(client, parked.pk) == 403
    parked.refresh_from_db()
    assert parked.state == "parked"


@pytest.mark.parametrize("number", ["x", "-1", "9" * 30, "²", "0", "1.5"])
def test_what_is_no_number_of_theirs_is_not_there(number, school):
    assert again(client_of(school.teacher), number) == 404


def test_who_studies_here_and_teaches_elsewhere_sees_what_they_teach(school):
    other = School("Thursday")
    other.of.instructors.add(school.student)
    school.student.groups.set(school.teacher.groups.all())
    break_off(school.hand_in())
    assert "The desk stopped" not in read(client_of(school.student))


def test_what_a_dropped_regrade_asked_for_is_in_nobody_s_way(school):
    attempt = school.judged({"boxes": Said(INSTRUCTOR, 0, 3)})
    made = regrade.begin([attempt], "one", "Wrong.", by=school.teacher, now=NOON)
    assert "regrade: Wrong." in read(client_of(school.teacher))
    regrade.drop(made, by=school.teacher, now=NOON)
    assert "0 waiting" in read(client_of(school.teacher))


def test_the_page_costs_the_same_however_long_the_queue_is(teacher, school, django_assert_num_queries):
    judged_anew(school, school.judged())
    break_off(school.hand_in())
    with CaptureQueriesContext(connection) as few:
        read(teacher)
    for number in range(4):
        break_off(school.hand_in(NOON, school.enrolled(f"s{number}")))
    with django_assert_num_queries(len(few)):
        assert "s3, attempt 1" in read(teacher)
