"""What pages of many attempts ask of the database: nothing row by row, and no evidence, which may be long."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from grading import review
from grading.models import Judging
from tests.admin.conftest import client_of, text
from tests.admin.desk import to
from tests.grading.anew import LATER, judged_anew
from tests.grading.book import edited, exported
from tests.grading.school import NOON, UNDECIDED, Said, School, break_off, claimed

pytestmark = pytest.mark.django_db
LONG = ('"evidence"', '"so_far"')  # columns that no list needs


class Busy(School):
    """An attempt in every state there is, and a regrade to be looked at."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.regrade = judged_anew(self, self.judged())
        self.judged({"boxes": Said(UNDECIDED, 0, 3)})
        self.another(0)
        self.hand_in(NOON, self.enrolled("whose runs"))
        claimed(LATER)

    def another(self, number: int) -> None:
        """One more of each: given points, parked before any check, judged again."""
        attempt = self.judged(student=self.enrolled(f"s{number}"))
        review.override(attempt, "refused", 1, "Half right.", by=self.teacher, now=NOON)
        break_off(self.hand_in(NOON, self.enrolled(f"t{number}")))
        last = judged_anew(self, attempt, why=f"Wrong {number}.")
        Judging.objects.filter(regrade=last).update(regrade=self.regrade)


@pytest.fixture
def school() -> Busy:
    return Busy()


def _import(client: Client, school: Busy) -> None:
    from django.core.files.uploadedfile import SimpleUploadedFile

    file = SimpleUploadedFile("book.csv", edited(exported(school), person=1, reason="So."))
    assert client.post(to("gradebook_import", school.of.pk), {"file": file}).status_code == 200


PAGES: dict[str, Callable[[Client, Busy], object]] = {
    "exercises": lambda client, school: text(client, to("exercises")),
    "assignment": lambda client, school: text(client, to("assignment", school.assignment.pk)),
    "releases": lambda client, school: text(client, to("releases")),
    "gradebook": lambda client, school: text(client, to("gradebook")),
    "file": lambda client, school: text(client, to("gradebook_file", school.of.pk), what="lines", kind="csv"),
    "import": _import,
    "distribution": lambda client, school: client.get(to("distribution", school.assignment.pk)),
    "regrades": lambda client, school: text(client, to("regrades")),
    "regrade": lambda client, school: text(client, to("regrades"), regrade=str(school.regrade.pk)),
    "queue": lambda client, school: text(client, to("queue")),
}


def asks(client: Client, school: Busy, page: str) -> list[str]:
    with CaptureQueriesContext(connection) as queries:
        PAGES[page](client, school)
    return [one["sql"] for one in queries]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_many_attempts_reads_no_evidence_and_costs_the_same(school: Busy, page: str) -> None:
    teacher = client_of(school.teacher)
    few = asks(teacher, school, page)
    school.another(1)
    school.another(2)
    many = asks(teacher, school, page)
    assert not [sql for sql in many for name in LONG if name in sql]
    assert len(many) == len(few), "\n".join(many)


@pytest.mark.parametrize("page", ["exercises", "assignment"])
def test_a_student_s_own_list_does_so_too(school: Busy, page: str) -> None:
    student = client_of(school.student)
    few = asks(student, school, page)
    school.judged()
    many = asks(student, school, page)
    assert not [sql for sql in many for name in LONG if name in sql]
    assert len(many) == len(few), "\n".join(many)


def test_the_page_of_one_attempt_does_read_it(school: Busy) -> None:
    """The test above can fail."""
    attempt = school.judged()
    with CaptureQueriesContext(connection) as queries:
        text(client_of(school.teacher), to("attempt", attempt.pk))
    assert any('"evidence"' in one["sql"] for one in queries)
