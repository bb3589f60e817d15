"""What the admin's pages say, what they cost, and that nobody's title can speak for them."""

import re
import uuid
from datetime import timedelta

import pytest
from django.contrib import admin
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from exercises.admin.performance import FIGURES
from marlow import roles
from shop.models import Book, Order, Refund, Settlement, StockCount, StrayCharge
from sweeper.models import Event
from tests import evening
from tests.admin.conftest import text, words

pytestmark = pytest.mark.django_db
LISTS = [
    reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    for model in admin.site._registry
    if f"{model._meta.app_label}.view_{model._meta.model_name}" in roles.ROLES["Student"]
]
SHELF, TIMELINE = reverse("admin:shop_shelf"), reverse("admin:sweeper_timeline")


def book_page(book: Book) -> str:
    return reverse("admin:shop_shelf_book", args=[book.pk])


def pages(wednesday: evening.Wednesday) -> list[str]:
    """One of every kind."""
    return [
        *(reverse("admin:index"), SHELF, TIMELINE, *LISTS),
        book_page(wednesday.novel),
        reverse("admin:shop_book_change", args=[wednesday.novel.pk]),
        reverse("admin:shop_order_change", args=[wednesday.orders[12].pk]),
        reverse("admin:shop_settlement_change", args=[Settlement.objects.all()[0].pk]),
        reverse("admin:sweeper_sweeprun_change", args=[wednesday.runs["b"].pk]),
        reverse("admin:sweeper_event_change", args=[wednesday.events[0].pk]),
        reverse("admin:exercises_performance_change", args=[wednesday.performance.pk]),
        *(f"{TIMELINE}?order=WED-13", f"{TIMELINE}?book={wednesday.novel.pk}", f"{TIMELINE}?run={uuid.uuid4()}"),
    ]


def test_the_evening_made_by_hand_comes_to_what_a_live_one_does(wednesday):
    figures = {name: wednesday.performance.verdict[name] for name in FIGURES}
    assert figures == {
        **{"lock": "redis-naive", "settle": "unguarded", "question": "lookup"},
        **{"phantom": 2, "lost": 0, "double_settles": 2, "foreign_deletes": 1, "overlaps": 1},
    }


def test_the_first_page_gives_the_verdict_and_the_doors(student, wednesday):
    page = words(text(student, reverse("admin:index")))
    assert "2 phantom copies, 2 orders settled twice, 1 key deleted that was another run’s" in page
    assert "2 phantom copies, 1 lost copy" in page
    assert "16 orders" in page
    assert "14 abandoned, 2 dispatched" in page


def test_the_shelf_says_differences_in_words(student, wednesday):
    page = words(text(student, SHELF))
    assert "2 phantom copies the catalogue promises what no shelf holds" in page
    assert "1 lost copy on the shelf, promised to nobody" in page
    assert page.count("agrees") == 11


def test_the_books_that_differ_stand_first_and_can_stand_alone(student, wednesday):
    title = r'data-label="Book"><a[^>]*>([^<]*)'
    rows = re.findall(title, text(student, SHELF))
    assert rows[:2] == [evening.NOVEL, evening.SHELF[-1][0]]
    assert re.findall(title, text(student, SHELF, show="differs")) == rows[:2]


@pytest.mark.parametrize("query", ["salt road", "Marchetti", evening.isbn(1)])
def test_a_book_is_found_by_title_author_or_isbn(student, wednesday, query):
    page = text(student, SHELF, q=query)
    assert evening.NOVEL in page
    assert evening.SHELF[0][0] not in page


def test_a_book_s_page_spells_out_the_sum_and_names_the_guilty(student, wednesday):
    page = words(text(student, book_page(wednesday.novel)))
    assert "2 in stock + 0 held + 0 owed = 2 promised" in page
    assert "2 received − 2 dispatched = 0 on the shelf" in page
    assert "2 promised − 0 on the shelf = +2 phantom" in page
    assert "WED-13 held one copy and gave back 2" in page
    assert "1 + 1 = +2. That is the whole difference." in page
    assert "0 copies counted on Friday 13 February, 11:00" in page


def test_a_book_s_page_leads_to_the_runs_and_back(student, wednesday):
    page = text(student, book_page(wednesday.novel))
    for run in ("a", "b"):
        assert reverse("admin:sweeper_sweeprun_change", args=[wednesday.runs[run].pk]) in page
    assert f"{TIMELINE}?order=WED-13" in page
    order = text(student, reverse("admin:shop_order_change", args=[wednesday.orders[12].pk]))
    assert book_page(wednesday.novel) in order


def test_a_difference_that_no_order_explains_is_said_to_be_one(student, wednesday):
    page = words(text(student, book_page(Book.objects.get(title=evening.SHELF[-1][0]))))
    assert "1 lost copy" in page
    assert "No order of this book was settled too often" in page


def test_a_difference_explained_in_part_says_which_part(student, wednesday):
    Book.objects.filter(pk=wednesday.novel.pk).update(stock=5)
    assert "These account for +2 of +5. The other +3" in words(text(student, book_page(wednesday.novel)))


def test_a_book_that_agrees_says_so(student, wednesday):
    page = words(text(student, book_page(Book.objects.get(title=evening.SHELF[0][0]))))
    assert "Every copy the catalogue promises stands on the shelf" in page
    assert "Where the difference comes from" not in page


def test_money_without_an_order_stands_beside_the_book(student, wednesday):
    StrayCharge.objects.create(
        key="late",
        order=wednesday.orders[12],
        amount_minor=1299,
        landed_at=evening.at("21:55:00"),
        found_at=evening.at("22:00:00"),
        found_by_box="box-a",
    )
    assert "£12.99 for WED-13" in words(text(student, book_page(wednesday.novel)))


def test_money_without_an_order_stands_beside_the_shelf(student, wednesday):
    """Also where there is no order at all that it was meant for."""
    assert "£0.00 money without an order : 0 charges" in words(text(student, SHELF))
    moments = {"landed_at": evening.at("21:55:00"), "found_at": evening.at("22:00:00"), "found_by_box": "box-a"}
    StrayCharge.objects.create(key="nobody's", amount_minor=1299, **moments)
    StrayCharge.objects.create(key="late", amount_minor=899, order=wednesday.orders[0], **moments)
    Refund.objects.create(charge_key="late", key="r", amount_minor=899, state="sent", due_at=evening.at("22:00:00"))
    page = text(student, SHELF)
    assert "£21.98 money without an order : 2 charges, £8.99 of it given back" in words(page)
    assert reverse("admin:shop_straycharge_changelist") in page


def test_the_timeline_opens_where_it_went_wrong_and_says_how(student, wednesday):
    page = words(text(student, TIMELINE))
    assert "Wednesday 11 February 2026, 21:49:45 to 21:53:28" in page
    assert "21:52:03 box-a went to work while box-b was still at it: two sweeps at once until 21:52:20" in page
    assert "Order WED-14 was settled twice: by box-b at 21:52:20 and box-a at 21:52:23" in page
    assert "box-b finished and deleted the lock’s key, which was another run’s by then" in page
    assert "was refused the lock: box-b holds it" in page


def test_the_timeline_brings_out_what_it_is_asked_for(student, wednesday):
    page = text(student, TIMELINE, book=str(wednesday.novel.pk))
    assert "the orders of “The Salt Road North” brought out" in words(page)
    assert page.count("mark double faded") == 0
    assert page.count("mark settled faded") == 12


def test_a_quiet_stretch_is_said_to_be_quiet(student, wednesday):
    page = words(text(student, TIMELINE, **{"from": "2026-02-11T21:53:30", "to": "2026-02-11T21:57"}))
    assert "Nothing went wrong in this stretch" in page


def test_two_sweeps_that_meet_are_said_to_for_as_long_as_they_do(student, wednesday):
    """The stretch begins after they met."""
    page = words(text(student, TIMELINE, **{"from": "2026-02-11T21:52:06", "to": "2026-02-11T21:52:09"}))
    assert "two sweeps at once until 21:52:20" in page


def test_what_did_no_harm_is_not_called_wrong(student, wednesday):
    for settlement in Settlement.objects.filter(box="box-a"):
        settlement.delete()
    Event.objects.filter(box="box-a", kind="settled").update(kind="untouched")
    page = words(text(student, TIMELINE))
    assert "What was amiss, and did no harm" in page
    assert "two sweeps at once" in page
    assert "wrote nothing: somebody else had settled it first" in page


def test_a_run_tells_its_own_story(student, wednesday):
    page = words(text(student, reverse("admin:sweeper_sweeprun_change", args=[wednesday.runs["a"].pk])))
    assert "box-a’s run of 21:52:03" in page
    assert "found 2 orders to ask about" in page
    assert "2 of 2 orders settled" in page


def test_times_are_london_s_to_the_second_and_money_is_in_pounds(student, wednesday):
    page = words(text(student, reverse("admin:shop_order_changelist")))
    assert "Wed 11 Feb 2026, 20:52:30" in page
    assert "£12.99" in page


def test_an_order_says_who_sent_it(student, wednesday):
    page = words(text(student, reverse("admin:shop_order_change", args=[wednesday.orders[-1].pk])))
    assert "Dispatched by: packing staff" in page


def test_orders_settled_twice_can_be_listed(student, wednesday):
    page = text(student, reverse("admin:shop_order_changelist"), times="2")
    assert re.findall(r">(WED-\d+|FRI-\d+)<", page) == ["WED-13", "WED-14"]


def test_every_cell_of_a_list_names_its_column_for_the_phone(student, wednesday):
    page = text(student, reverse("admin:shop_order_changelist"))
    assert '<td data-label="Amount" class="field-amount">£8.99</td>' in page


@pytest.mark.parametrize(
    "asked",
    [
        {"p": "soon"},
        {"p": "-1"},
        {"q": "%' or 1=1 --"},
        {"order": "x" * 5000},
        {"book": "9" * 40},
        {"book": "²"},
        {"run": "nobody"},
        {"from": "now", "to": "then"},
        {"from": "0001-01-01T00:00", "to": "0001-01-01T01:00"},
        {"from": "9999-12-31T23:00", "to": "9999-12-31T23:59"},
    ],
)
@pytest.mark.parametrize("address", [SHELF, TIMELINE])
def test_nonsense_in_the_address_is_no_error(student, wednesday, address, asked):
    assert text(student, address, **asked)


def test_a_book_that_is_not_there_is_not_found(student):
    assert student.get(reverse("admin:shop_shelf_book", args=[10**9])).status_code == 404


def test_no_page_holds_a_style_or_a_script_of_its_own(student, wednesday):
    for address in pages(wednesday):
        response = student.get(address, follow=True)
        page = response.content.decode()
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page), address
        assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", page)), address
        assert not re.search(r'(?:src|href)="(?:https?:)?//', page), address
        assert "unsafe" not in response["Content-Security-Policy"]


def many(wednesday: evening.Wednesday) -> None:
    """Two hundred books instead of a dozen, each with an order, a settlement and a count; more runs and events."""
    more = evening.books(190, first=5000)
    orders = Order.objects.bulk_create(
        Order(
            reference=f"MORE-{n}",
            key=f"more-{n}",
            book=book,
            buyer="Somebody",
            amount_minor=book.price_minor,
            status="abandoned",
            created_at=evening.START,
            settled_at=evening.START,
            settled_by_run=wednesday.runs["b"].run,
        )
        for n, book in enumerate(more)
    )
    Settlement.objects.bulk_create(
        Settlement(order=order, outcome="released", form="guarded", box="box-b", at=evening.START, copies_back=1)
        for order in orders
    )
    StockCount.objects.bulk_create(
        StockCount(book=book, copies=3, counted_by="Friday's shift", at=evening.FRIDAY) for book in more
    )
    moments = [evening.at("21:52:00") + timedelta(seconds=n / 10) for n in range(len(orders))]
    Event.objects.bulk_create(
        evening.told(wednesday.runs["b"], moment, "settled", order.reference, outcome="released")
        for moment, order in zip(moments, orders, strict=True)
    )


def test_a_page_costs_the_same_queries_however_much_there_is(student, wednesday):
    def cost() -> dict[str, int]:
        counts = {}
        for address in [reverse("admin:index"), SHELF, TIMELINE, book_page(wednesday.novel), *LISTS]:
            with CaptureQueriesContext(
                connection,
            ) as queries:
                text(student, address)
            counts[address] = len(queries)
        return counts

    cost()  # once, for what is looked up only once
    few = cost()
    many(wednesday)
    assert cost() == few
    assert max(few.values()) <= 25


def links(address: str, page: str) -> list[str]:
    """Where a page leads within the admin; from a list that is filtered already, only to other pages."""
    found = [link.replace("&amp;", "&") for link in re.findall(r'href="(/admin/[^"]*|\?[^"]*)"', page)]
    here = [] if "?" in address else [address + link for link in found if link.startswith("?")]
    return here + [link for link in found if link.startswith("/")]


def kind_of(address: str) -> str:
    """The address without its numbers: one page of each kind is enough."""
    path, _, asked = address.partition("?")
    names = sorted(re.findall(r"(\w+)=", asked))
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+", "*", path) + "?" + "&".join(names)


def test_no_link_is_a_dead_end(student, wednesday):
    """Every kind of page that a student can reach from the first one answers."""
    queue, kinds = [reverse("admin:index")], set()
    while queue:
        address = queue.pop(0)
        if kind_of(address) in kinds:
            continue
        kinds.add(kind_of(address))
        response = student.get(address, follow=True)
        assert response.status_code == 200, address
        queue += links(address, response.content.decode())
    reached = {"/admin/shop/shelf/*/?", "/admin/sweeper/sweeprun/*/change/?", "/admin/sweeper/timeline/?order"}
    assert reached <= kinds
