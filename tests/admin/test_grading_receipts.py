"""The receipt that a form carries: the same form twice is one attempt, without scripts too."""

import re
import uuid

import pytest

from grading.models import Attempt
from marlow.clock import real_now
from tests.admin.conftest import client_of, text
from tests.admin.desk import hands_in, to
from tests.fakes import Boxes
from tests.grading.school import DAY, School, real_commits

pytestmark = pytest.mark.django_db


@pytest.fixture
def school() -> School:
    """Open since yesterday, due in a week: the pages live on the real clock."""
    now = real_now()
    return School(rules={"opens_at": now - DAY, "due_at": now + 7 * DAY})


def receipt_in(page: str) -> str:
    (found,) = re.findall(r'<input type="hidden" name="receipt" value="([^"]+)" autocomplete="off">', page)
    return str(uuid.UUID(found))


def test_the_same_form_twice_is_one_attempt_and_the_page_says_so(school):
    school.assignment.attempts = 1
    school.assignment.save()
    client = client_of(school.student)
    number = receipt_in(text(client, to("assignment", school.assignment.pk)))
    told = []
    for _ in range(2):
        response = hands_in(client, school, receipt=number)
        attempt = Attempt.objects.get()
        assert (response.status_code, response["Location"]) == (302, to("attempt", attempt.pk))
        told.append(text(client, response["Location"]))
    assert str(attempt.receipt) == number
    assert f"Handed in as attempt 1. Its receipt is {number}." in told[0]
    assert f"This had been handed in already, as attempt 1; it counts once. Its receipt is {number}." in told[1]


@real_commits
def test_the_same_form_twice_at_once_is_one_attempt(school):
    clients, number = [client_of(school.student) for _ in range(2)], str(uuid.uuid4())
    submission = school.hand_in(real_now()).submission
    with Boxes(2) as boxes:
        sends = [lambda client=client: hands_in(client, school, receipt=number)["Location"] for client in clients]
        assert len(set(boxes.run_behind(submission, *sends))) == 1
    assert Attempt.objects.count() == 2


def test_a_form_keeps_its_receipt_until_it_is_handed_in(school):
    """Each page has one of its own; a row more, Enter in a field and what is wrong keep it."""
    client, address = client_of(school.student), to("assignment", school.assignment.pk)
    numbers = {receipt_in(text(client, address)) for _ in range(2)}
    assert len(numbers) == 2
    number = numbers.pop()
    for changed in ({"do": "look"}, {"add": "steps"}, {"remove": "steps.0"}, {"answers.shelf": "many"}):
        assert receipt_in(hands_in(client, school, receipt=number, **changed).content.decode()) == number
    for odd in ("", "x", "9" * 5000):
        assert receipt_in(hands_in(client, school, receipt=odd, do="look").content.decode()) not in (odd, number)
    assert hands_in(client, school, receipt=number).status_code == 302
    assert receipt_in(text(client, address)) != number


def test_a_form_that_the_browser_went_back_to_is_another_attempt_once_it_was_looked_over(school):
    client, number = client_of(school.student), str(uuid.uuid4())
    hands_in(client, school, receipt=number)
    response = hands_in(client, school, receipt=number, **{"answers.shelf": "1"})
    page = response.content.decode()
    assert (response.status_code, Attempt.objects.count()) == (409, 1)
    assert "Attempt 1 has this receipt, and other answers" in page
    assert re.search(r'name="answers.shelf" value="1"', page)
    assert (fresh := receipt_in(page)) != number
    assert hands_in(client, school, receipt=fresh, **{"answers.shelf": "1"}).status_code == 302
    assert Attempt.objects.count() == 2


def test_a_receipt_of_somebody_else_is_refused_and_the_form_gets_another(school):
    taken = str(school.hand_in(real_now()).receipt)
    response = hands_in(client_of(school.enrolled("neighbour")), school, receipt=taken)
    assert response.status_code == 409
    assert "This receipt is taken" in response.content.decode()
    assert receipt_in(response.content.decode()) != taken
