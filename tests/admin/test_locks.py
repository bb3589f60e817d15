"""What each lock does: the lock table as it was seen, and the words that it is told in."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from exercises.admin.promise import WORDS, by_the_table, promised
from exercises.proof.cells import ABOUT, FAULTS, TABLE, table
from sweeper.events import Kind
from sweeper.locks import LOCKS
from tests import proofs
from tests.admin.conftest import text, words
from tests.admin.test_proofs import LIST, MATRIX, page_of
from tests.proofs import PLAYED, agreeing, differing, everything, keep, recorded

pytestmark = pytest.mark.django_db


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
    made = [agreeing(cell) for cell in table()]
    page = text(student, MATRIX)
    for proof in made:
        assert page.count(f'href="{page_of(proof)}"') == 1, proof
    assert "not played yet" not in page
    assert f"{len(made)} of {len(made)} cells played" in words(page)


def test_a_cell_of_the_table_says_what_was_seen(student):
    for cell in table():
        if cell.fault in ("calm", "pause", "kill", "pooler"):
            agreeing(cell)
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
    agreeing(cell, agrees=False)
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
            agreeing(cell, real_at=PLAYED - timedelta(hours=n))
    assert cost() == few
    assert max(few) <= 20


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
