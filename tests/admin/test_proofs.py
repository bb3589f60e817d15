"""The proofs in the admin: the list, a cell's own page, and the table of what each lock does."""

import re
import xml.etree.ElementTree as ET
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from exercises.admin.promise import WORDS, by_the_table, promised
from exercises.models import Proof
from exercises.proof.cells import ABOUT, FAULTS, TABLE, Cell, table
from shop.models import Order
from sweeper.events import Kind
from sweeper.locks import LOCKS
from tests import evening, proofs
from tests.admin.conftest import text, words
from tests.proofs import PLAYED, keep, recorded

pytestmark = pytest.mark.django_db
LIST, MATRIX = reverse("admin:exercises_proof_changelist"), reverse("admin:exercises_locks")
HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>"


def page_of(proof: Proof) -> str:
    return reverse("admin:exercises_proof_change", args=[proof.pk])


def of(cell: Cell, **values: Any) -> Proof:
    """A row for a cell of the table, seen as expected."""
    base = {"lock": cell.lock, "fault": cell.fault, "settle": cell.settle, "stop_on_lost_lease": cell.stop}
    seen = {**cell.expected, "events": []}
    return keep(
        {**base, "expected": cell.expected, "seen": seen, "agrees": True, "skipped": "", "seconds": 1.0}, **values
    )


def skipped() -> Proof:
    reason = "A host of its own needs root: run as root. " + "It says why at length. " * 10
    return keep(recorded("pause"), seen=None, agrees=None, skipped=reason, seconds=0.0)


def broken_off(error: Any = "Lost: box-b came to no “settling” within 10 s; see box-b.log.") -> Proof:
    return keep(recorded("pause"), seen={"error": error}, agrees=False)


def differing() -> Proof:
    cell = recorded("pause")
    cell["seen"]["foreign_deletes"] = 0
    return keep(cell, agrees=False)


def odd() -> Proof:
    """Events of another version, or of none."""
    cell = recorded("pause")
    cell["seen"]["events"][0]["kind"] = "exploded"
    cell["seen"]["events"].insert(3, None)
    return keep(cell)


def everything() -> list[Proof]:
    nothing = keep(recorded("pause"), expected={}, seen={})
    unknown = keep(
        recorded("pause"), lock="mutex", fault="flood", expected={"wet": [1]}, seen={"wet": {}, "events": 3}
    )
    scalar = keep(recorded("pause"), seen="nothing", agrees=False)
    return [
        proofs.one(),
        keep(recorded("kill")),
        skipped(),
        broken_off(),
        broken_off(7),
        differing(),
        odd(),
        nothing,
        unknown,
        scalar,
    ]


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


# --- What each lock does ------------------------------------------------------------------------------------------


def place(page: str, fault: str, lock: str) -> str:
    """The words of one cell of the table; empty where the fault is nothing to the lock."""
    row = next(row for row in re.findall(r"<tr>.*?</tr>", page, re.S) if f">{fault}</a>" in row)
    cell = re.search(rf'<td data-label="{re.escape(lock)}"[^>]*>(.*?)</td>', row, re.S)
    assert cell is not None
    return words(cell[1]).strip()


def test_a_table_that_was_never_played_says_what_fills_it(student):
    page = words(text(student, MATRIX))
    assert "No cell has been played yet. manage.py prove plays all" in page
    assert "Not played yet" in words(text(student, reverse("admin:index")))


def test_the_table_has_a_row_for_every_fault_and_a_column_for_every_lock(student):
    proofs.one()
    page = text(student, MATRIX)
    heads = re.findall(r'<th scope="col">(.*?)</th>', page.partition('<div class="results matrix"')[2])
    assert heads == ["Fault", *LOCKS]
    assert re.findall(r'<th scope="row"><a[^>]*>(.*?)</a>', page) == list(FAULTS)
    for fault, row in TABLE.items():
        for lock in LOCKS:
            assert bool(place(page, fault, lock)) == (lock in row), (fault, lock)


def test_every_cell_stands_in_the_table_with_a_link_to_its_proof(student):
    made = [of(cell) for cell in table()]
    page = text(student, MATRIX)
    for proof in made:
        assert page.count(f'href="{page_of(proof)}"') == 1, proof
    assert "not played yet" not in page
    assert f"{len(made)} of {len(made)} cells played" in words(page)


def test_a_cell_of_the_table_says_what_was_seen(student):
    for cell in table():
        if cell.fault in ("calm", "pause", "kill", "pooler"):
            of(cell)
    page = text(student, MATRIX)
    assert place(page, "calm", "redis-naive").startswith("refused agrees")
    assert place(page, "kill", "redis-naive").startswith("let in agrees")
    assert place(page, "pause", "redis-naive").startswith("phantom agrees")
    assert place(page, "pooler", "postgres-advisory").startswith("won’t start agrees")
    assert place(page, "overrun", "redis-naive").startswith("not played yet")
    etcd = place(page, "pause", "etcd")
    assert "guarded: let in, agrees" in etcd
    assert "fenced+guarded: let in, agrees" in etcd
    assert "stopping: phantom, agrees" in etcd


def test_a_cell_of_the_table_says_what_went_otherwise(student):
    differing()
    cell = next(cell for cell in table() if (cell.lock, cell.fault, cell.settle) == ("slot", "pause", "guarded"))
    of(cell, agrees=False)
    keep(recorded("pause"), lock="redis-token", seen={"error": "Lost"}, agrees=False)
    keep(recorded("pause"), lock="etcd", seen=None, agrees=None, skipped="no etcd")
    page = text(student, MATRIX)
    assert place(page, "pause", "redis-naive").startswith("phantom differs")
    assert "guarded: let in, differs" in place(page, "pause", "slot")
    assert place(page, "pause", "redis-token").startswith("error differs")
    assert place(page, "pause", "etcd").startswith("skipped")
    assert "4 of " in words(page)
    assert "3 differ from it" in words(page)
    assert "1 skipped, with the reason on its page" in words(page)
    assert "3 cells differ" in words(text(student, reverse("admin:index")))


def test_the_latest_proof_of_a_cell_is_shown(student):
    new, old = differing(), keep(recorded("pause"), real_at=PLAYED - timedelta(days=1))
    page = text(student, MATRIX)
    assert page_of(new) in page
    assert page_of(old) not in page
    newest = keep(recorded("pause"), real_at=PLAYED + timedelta(days=1))
    page = text(student, MATRIX)
    assert page_of(newest) in page
    assert page_of(new) not in page
    assert "As the table says" in words(text(student, reverse("admin:index")))


def test_proofs_of_cells_that_the_table_has_no_longer_are_left_out(student):
    keep(recorded("pause"), lock="mutex")
    page = text(student, MATRIX)
    assert "mutex" not in page
    assert "No cell has been played yet" in words(page)


# --- What they cost, and words for all ------------------------------------------------------------------------------


def test_pages_cost_the_same_queries_however_many_proofs_there_are(student):
    def cost() -> list[int]:
        counts = []
        for address in (LIST, MATRIX, reverse("admin:index")):
            with CaptureQueriesContext(connection) as queries:
                text(student, address)
            counts.append(len(queries))
        return counts

    everything()
    cost()  # once, for what is looked up only once
    few = cost()
    for n in range(3):
        for cell in table():
            of(cell, real_at=PLAYED - timedelta(hours=n))
    assert cost() == few
    assert max(few) <= 20


def test_a_cell_s_page_costs_few_queries(student):
    proof = proofs.one()
    with CaptureQueriesContext(connection) as queries:
        text(student, page_of(proof))
    assert len(queries) <= 8


def test_every_fault_is_described():
    assert list(ABOUT) == list(FAULTS)
    assert all(about.endswith(".") and len(about) > 30 for about in ABOUT.values())
    assert len(set(ABOUT.values())) == len(ABOUT)


def test_every_lock_says_what_it_promises():
    assert all(promised(lock).startswith("Promises ") for lock in LOCKS)
    assert promised("mutex") == ""


def test_every_cell_of_the_table_is_told_and_its_figures_have_words():
    for cell in table():
        assert by_the_table(cell.expected).startswith("By the table ")
        assert set(cell.expected) <= set(WORDS)


def test_the_recorded_cells_are_cells_of_the_table():
    """What they hold is what `manage.py prove` keeps now."""
    cells = {(cell.lock, cell.fault, cell.settle, cell.stop): cell for cell in table()}
    for kept in proofs.RECORDED:
        cell = cells[kept["lock"], kept["fault"], kept["settle"], kept["stop_on_lost_lease"]]
        assert kept["expected"].items() <= cell.expected.items()
        assert {event["kind"] for event in kept["seen"]["events"]} <= set(Kind)
