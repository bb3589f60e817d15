"""The proofs in the admin: the list, and a cell's own page with its story."""

import re
import xml.etree.ElementTree as ET

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from exercises.admin.promise import WORDS
from exercises.models import Proof
from exercises.proof.cells import ABOUT
from shop.models import Order
from tests import evening, proofs
from tests.admin.conftest import text, words
from tests.proofs import PLAYED, broken_off, differing, everything, keep, odd, recorded, skipped

pytestmark = pytest.mark.django_db
LIST, MATRIX = reverse("admin:exercises_proof_changelist"), reverse("admin:exercises_locks")
HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>"


def page_of(proof: Proof) -> str:
    return reverse("admin:exercises_proof_change", args=[proof.pk])


# --- The list -----------------------------------------------------------------------------------------------------


def rows(page: str) -> list[list[str]]:
    """The words of every cell of every row."""
    found = re.findall(r"<tr>(.*?)</tr>", page.partition("<tbody>")[2], re.S)
    return [[words(cell).strip() for cell in re.findall(r"<t[dh] [^>]*>(.*?)</t[dh]>", row, re.S)] for row in found]


def test_the_list_says_in_short_what_was_expected_and_seen(student):
    differing()
    (row,) = rows(text(student, LIST))
    assert row == [
        *("1 Dec 2026, 20:00", "pause", "redis-naive", "unguarded", "–"),
        *("let in, phantom 1, twice 1, foreign 1", "let in, phantom 1, twice 1", "differs", "3.2"),
    ]


@pytest.mark.parametrize(
    ("make", "seen", "ending"),
    [
        (proofs.one, "let in, phantom 1, twice 1, foreign 1", "agrees"),
        (skipped, "A host of its own needs root: run as root. It says why at length. It says why a…", "skipped"),
        (broken_off, "Lost: box-b came to no “settling” within 10 s; see box-b.log.", "differs"),
    ],
)
def test_the_list_says_how_a_cell_ended(student, make, seen, ending):
    make()
    (row,) = rows(text(student, LIST))
    assert row[6:8] == [seen, ending]


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ({"ending": "agrees"}, {"pause", "kill"}),
        ({"ending": "differs"}, {"overrun"}),
        ({"ending": "skipped"}, {"power-loss"}),
        ({"ending": "whatever"}, {"pause", "kill", "overrun", "power-loss"}),
        ({"fault": "kill"}, {"kill"}),
        ({"lock": "redis-token"}, {"kill"}),
        ({"settle": "guarded"}, {"overrun"}),
        ({"batch__exact": "00000000-0000-0000-0000-000000000001"}, {"pause", "kill", "overrun", "power-loss"}),
        ({"batch__exact": "00000000-0000-0000-0000-000000000002"}, set()),
    ],
)
def test_the_list_is_narrowed_down(student, asked, left):
    proofs.one()
    keep(recorded("kill"))
    keep(recorded("pause"), fault="overrun", settle="guarded", agrees=False)
    keep(recorded("pause"), fault="power-loss", seen=None, agrees=None, skipped="no host")
    assert {row[1] for row in rows(text(student, LIST, **asked))} == left


def test_the_list_reads_no_events(student):
    """What was seen may be long; a hundred of them make a slow page."""
    keep(recorded("pause"))
    with CaptureQueriesContext(connection) as queries:
        text(student, LIST)
    (read,) = [query["sql"] for query in queries if '"exercises_proof"."expected"' in query["sql"]]
    assert '"exercises_proof"."seen" ->' in read
    assert '"exercises_proof"."seen",' not in read


# --- A cell's page ------------------------------------------------------------------------------------------------


def compared(page: str) -> dict[str, list[str]]:
    """The lines of the small table by their figure: expected, seen, compared."""
    table = re.search(r'<table class="ledger compared">.*?</table>', page, re.S)
    assert table is not None
    lines = re.findall(r"<tr[^>]*>\s*<th scope=\"row\">(.*?)</th>(.*?)</tr>", table[0], re.S)
    return {
        name: [words(cell).strip() for cell in re.findall(r"<td.*?>(.*?)</td>", rest, re.S)] for name, rest in lines
    }


def test_a_cell_tells_its_fault_its_promise_and_what_was_seen(student):
    page = text(student, page_of(proofs.one()))
    assert "redis-naive under pause" in words(page)
    assert ABOUT["pause"] in words(page)
    assert "Promises the box that sets the key first that nobody else is told yes until the key is gone." in words(
        page
    )
    assert "both write, and a copy comes back that no shelf holds; and the first one deletes a key" in words(page)
    assert "As the table says" in words(page)
    lines = compared(page)
    assert list(lines) == [WORDS[name].capitalize() for name in list(WORDS)[:6]]
    assert lines["Phantom copies"] == ["1", "1", "agrees"]
    assert all(ending == "agrees" for *_, ending in lines.values())


def test_a_cell_that_differs_says_where(student):
    page = text(student, page_of(differing()))
    assert "Not what the table says" in words(page)
    wrong = {name: line for name, line in compared(page).items() if line[2] != "agrees"}
    assert wrong == {"Keys deleted that were another run’s": ["1", "0", "differs"]}
    assert page.count('<tr class="bad">') == 1


def test_a_cell_tells_its_story_in_tenths_of_a_second(student):
    page = text(student, page_of(proofs.one()))
    assert re.search(r"\d\d:\d\d:\d\d\.\d box-a went to work while box-b was still at it", words(page))
    assert "deleted the lock&#x27;s key, which was another run&#x27;s by then" in page
    assert re.search(r"P-01 was settled twice: by box-b at [\d:]+\.\d and box-a at [\d:]+\.\d", words(page))
    assert page.count('class="mark double"') == 2 + 1  # and the legend's
    assert "refused" in page


def test_a_killed_box_is_not_said_to_be_still_at_work(student):
    page = words(text(student, page_of(keep(recorded("kill")))))
    assert "box-b’s run was not heard of again" in page
    assert "two sweeps at once until" not in page
    assert "still running" not in page


def test_a_cell_has_no_links_to_a_shop_that_is_not_this_one(student):
    """Not even where this shop has an order of the same name."""
    book = evening.books(1)[0]
    order = Order.objects.create(reference="P-01", key="k", book=book, buyer="B", amount_minor=1, created_at=PLAYED)
    page = text(student, page_of(proofs.one()))
    assert page.count("P-01") > 3
    assert reverse("admin:shop_order_change", args=[order.pk]) not in page
    assert "/admin/sweeper/sweeprun/" not in page.partition('id="content"')[2]


def test_a_skipped_cell_says_why(student):
    proof = skipped()
    page = text(student, page_of(proof))
    assert "Not played" in words(page)
    assert proof.skipped.strip() in words(page)
    assert {tuple(line[1:]) for line in compared(page).values()} == {("–", "–")}
    assert '<svg class="timeline' not in page


def test_a_cell_that_broke_off_says_with_what(student):
    page = text(student, page_of(broken_off()))
    assert "It broke off Lost: box-b came to no “settling” within 10 s" in words(page)
    assert "There is no journal to draw." in words(page)


def test_events_that_cannot_be_read_are_counted(student):
    page = words(text(student, page_of(odd())))
    assert "2 events more could not be read." in page
    assert "P-01 was settled twice" in page


def test_a_cell_of_which_nothing_is_known_has_a_page_too(student):
    for proof in everything():
        page = text(student, page_of(proof))
        assert "Its particulars" in page
    assert text(student, LIST)
    assert text(student, MATRIX)


def test_the_picture_of_a_cell_is_well_formed(student):
    picture = re.search(r'<svg class="timeline.*?</svg>', text(student, page_of(proofs.one())), re.S)
    assert picture is not None
    root = ET.fromstring(picture[0])
    assert not [tag for tag in root.iter() if tag.tag == "a"]
    assert len([tag for tag in root.iter() if tag.attrib.get("class") == "run"]) == 2


def test_nothing_that_was_kept_can_speak_for_the_page(student):
    cell = recorded("pause")
    for event in cell["seen"]["events"]:
        event.update(box=HOSTILE, order=HOSTILE)
    cell["seen"]["second"] = HOSTILE
    kept = keep(cell, lock=HOSTILE[:24], fault=HOSTILE[:40], expected={HOSTILE: HOSTILE, "second": HOSTILE})
    for proof in (kept, keep(cell, seen={"error": HOSTILE}), keep(cell, seen=None, agrees=None, skipped=HOSTILE)):
        for address in (page_of(proof), LIST, MATRIX):
            page = text(student, address)
            assert "<script>alert" not in page
            assert "<img src=x" not in page


def test_no_page_holds_a_style_or_a_script_of_its_own(student):
    addresses = [MATRIX, *(page_of(proof) for proof in everything()), LIST, MATRIX]
    for address in addresses:
        page = text(student, address)
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page), address
        assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", page)), address


def test_a_cell_s_page_costs_few_queries(student):
    proof = proofs.one()
    with CaptureQueriesContext(connection) as queries:
        text(student, page_of(proof))
    assert len(queries) <= 8
