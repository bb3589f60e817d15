"""Pages of other shops than Wednesday's: empty, large, hostile, or with clocks that differ."""

import re
import xml.etree.ElementTree as ET
from datetime import timedelta

import pytest
from django.urls import reverse

from shop.models import Book, Order
from sweeper import verdict
from tests import evening
from tests.admin.conftest import text, words
from tests.admin.test_pages import LISTS, SHELF, TIMELINE, pages

pytestmark = pytest.mark.django_db
HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>"


@pytest.mark.parametrize("address", [reverse("admin:index"), SHELF, TIMELINE, *LISTS])
def test_an_empty_shop_has_pages_too(student, address):
    assert text(student, address)


def test_a_shelf_of_two_thousand_comes_in_pages(student):
    evening.books(250)
    assert "1–100 of 250 books" in text(student, SHELF)
    assert "201–250 of 250 books" in text(student, SHELF, p="3")


def test_the_page_and_the_verdict_say_the_same_of_two_sweeps(student):
    """Box A waited for the lock, and its clock is ten seconds early: drawn at once, in truth one after the other."""
    b = evening.run("box-b", evening.START, acquired_at=evening.START, ended_at=evening.at("21:50:20"))
    a = evening.run(
        "box-a", evening.at("21:50:05"), acquired_at=evening.at("21:50:12"), ended_at=evening.at("21:50:30")
    )
    for number, (run, clock, kind) in enumerate(
        [
            *((b, "21:50:00", "started"), (a, "21:50:05", "started"), (b, "21:50:00", "acquired")),
            *((b, "21:50:20", "released"), (a, "21:50:12", "acquired"), (b, "21:50:20", "finished")),
            *((a, "21:50:30", "released"), (a, "21:50:30", "finished")),
        ]
    ):
        event = evening.told(run, evening.at(clock), kind, deleted=kind == "released")
        event.real_at = evening.CURTAIN + timedelta(seconds=number)
        event.save()
    assert verdict.read(lock="none", settle="guarded", question="lookup")["overlaps"] == 0
    page = text(student, TIMELINE)
    assert "Nothing went wrong in this stretch" in words(page)
    assert "timeline crowded" not in page


def test_a_hostile_title_is_text_wherever_it_turns_up(come):
    wednesday = evening.play(title=HOSTILE)
    Book.objects.update(author=HOSTILE)
    mark = "<b onmouseover=alert(1)>"
    Order.objects.filter(pk=wednesday.orders[12].pk).update(reference=mark, buyer=HOSTILE)
    for event in wednesday.events:
        event.order = mark if event.order == "WED-13" else event.order
        event.box = "<i>&box" if event.box == "box-a" else event.box
        event.data = {**event.data, "holder": HOSTILE} if event.kind == "refused" else event.data
        event.save()
    client = come("Operator")
    for address in [*pages(wednesday), f"{TIMELINE}?order={mark}", f"{SHELF}?q=<script>"]:
        page = client.get(address, follow=True).content.decode()
        assert "<script>alert" not in page, address
        assert "<img src=x" not in page, address
        assert "<b onmouseover" not in page, address
        assert "<i>&box" not in page, address


def test_the_picture_is_well_formed_whatever_it_is_told(student):
    evening.play(title=HOSTILE)
    picture = re.search(r'<svg class="timeline.*?</svg>', text(student, TIMELINE), re.S)
    assert picture is not None
    root = ET.fromstring(picture[0])
    assert root.attrib["role"] == "img"
    assert len([tag for tag in root.iter() if "double" in tag.attrib.get("class", "")]) >= 4
