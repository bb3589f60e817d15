"""Every role over every page of the admin, with requests made by hand: each gives exactly what the table says."""

import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.db.models import F, Model
from django.db.models.signals import pre_save
from django.urls import reverse

from marlow.site import own_pages
from shop.admin.page import Page
from shop.models import Book, Fence, Publisher, Refund, StockCount, StrayCharge
from sweeper.admin.evening import EVENING
from sweeper.models import JobRun, SweepRun
from tests import evening, labruns, proofs
from tests.admin.conftest import PEOPLE, account, client_of
from tests.grading.school import DAY, OPENS, School

pytestmark = pytest.mark.django_db
# The grader's rows are open by class besides: tests/admin/test_grading_classes.py walks every role over those.
OPEN_BY_ROLE = [model for model in admin.site._registry if model._meta.app_label != "grading"]
MODELS = sorted(OPEN_BY_ROLE, key=lambda model: model._meta.label)
LOGIN, YES, NO, NOTHING = "asked to log in", "yes", "no", "nothing there"


def outcome(response: Any) -> str:
    """What a response means: the page or a saved form, a refusal, or the way to the login."""
    if response.status_code == 302:
        return LOGIN if "/login/" in response["Location"] else YES
    return {200: YES, 403: NO, 404: NOTHING}[response.status_code]


def expected(person: str, *needs: str) -> str:
    """By the table: any of these permissions will do."""
    may = PEOPLE[person]
    if may is None:
        return LOGIN
    return YES if set(needs) & set(may) else NO


def of(verb: str, model: type[Model]) -> str:
    return f"{model._meta.app_label}.{verb}_{model._meta.model_name}"


def url(model: type[Model], page: str, *args: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


@pytest.fixture
def rows(wednesday: evening.Wednesday) -> dict[type[Model], Model]:
    """One row of everything the admin knows."""
    order, moment = wednesday.orders[0], evening.START
    Fence.objects.create(name="sweeper", token=7)
    Refund.objects.create(charge_key="c", key="r", order=order, amount_minor=899, due_at=moment)
    StrayCharge.objects.create(
        key="s", order=order, amount_minor=899, landed_at=moment, found_at=moment, found_by_box="box-a"
    )
    JobRun.objects.create(job_name="payout", run_slot=1, box="box-a", run=wednesday.runs["a"].run, at=moment)
    proofs.one()
    labruns.one("explored")
    account("somebody")
    return {model: model._default_manager.order_by("pk")[0] for model in MODELS}


def filled(model: type[Model], row: Model) -> dict[str, Any]:
    """A form that would be saved if one were allowed to."""
    forms: dict[type[Model], dict[str, Any]] = {
        Book: {"title": "Changed", "author": "Changed", "price_minor": 1, "stock": 99},
        Publisher: {"name": "Changed"},
        StockCount: {"copies": 41, "counted_by": "the boss", "at_0": "2020-01-01", "at_1": "00:00"},
    }
    keys = {"book": Book.objects.order_by("pk")[0].pk, "publisher": Publisher.objects.order_by("pk")[0].pk}
    raw = {field.name: field.value_to_string(row) for field in model._meta.concrete_fields if not field.is_relation}
    return {**raw, **keys, **forms.get(model, {})}


def everything() -> dict[str, list[dict[str, Any]]]:
    """All rows of the three rooms, to see that nothing was changed."""
    rooms = [model for model in MODELS if model._meta.app_label != "auth"]
    return {model._meta.label: list(model._default_manager.order_by("pk").values_list()) for model in rooms}


@pytest.mark.parametrize("person", PEOPLE)
def test_looking_is_what_the_table_says(person, come, rows):
    client = come(person)
    for model, row in rows.items():
        looked = expected(person, of("view", model), of("change", model))
        for page in (url(model, "changelist"), url(model, "change", row.pk), url(model, "history", row.pk)):
            assert outcome(client.get(page)) == looked, page


@pytest.mark.parametrize("person", PEOPLE)
def test_changing_is_what_the_table_says(person, come, rows):
    client, before = come(person), everything()
    for model, row in rows.items():
        page, wanted = url(model, "change", row.pk), expected(person, of("change", model))
        assert outcome(client.post(page, filled(model, row))) == wanted, page
        after = everything()
        assert wanted == YES or after == before, page
        before = after


@pytest.mark.parametrize("person", PEOPLE)
def test_adding_is_what_the_table_says(person, come, rows):
    client, before = come(person), everything()
    for model, row in rows.items():
        page = url(model, "add")
        wanted = expected(person, of("add", model))
        assert outcome(client.get(page)) == wanted, page
        assert outcome(client.post(page, filled(model, row))) == wanted, page
        after = everything()
        assert (after == before) == (wanted != YES), page
        before = after


@pytest.mark.parametrize("person", PEOPLE)
def test_nobody_deletes_by_page_or_by_action(person, come, rows):
    client, before = come(person), everything()
    for model, row in rows.items():
        page = url(model, "delete", row.pk)
        assert outcome(client.get(page)) == expected(person, of("delete", model)), page
        assert outcome(client.post(page, {"post": "yes"})) == expected(person, of("delete", model)), page
        chosen = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes", "index": "0"}
        client.post(url(model, "changelist"), chosen)
    assert everything() == before
    assert User.objects.filter(username="somebody").exists()


@pytest.fixture
def somebodys(rows: Any) -> dict[str, Any]:
    """What stands in the addresses of own pages: a book, and work of a class in which nobody here is."""
    school = School(rules={"opens_at": OPENS - DAY})
    return {
        "book": rows[Book].pk,
        "of": school.of.pk,
        "assignment": school.assignment.pk,
        "attempt": school.judged().pk,
        "check": "boxes",
    }


def address_of(page: Page, somebodys: dict[str, Any]) -> str:
    named = re.findall("<[a-z]+:([a-z]+)>", page.route)
    return reverse(f"admin:{page.name}", kwargs={name: somebodys[name] for name in named})


def to_whom_it_is_open(page: Page) -> str:
    """The work of a class is not there for people outside it, whatever their role."""
    return NOTHING if "<int:a" in page.route or "<int:of>" in page.route else YES


@pytest.mark.parametrize("person", PEOPLE)
@pytest.mark.parametrize("page", own_pages(), ids=lambda page: page.name)
def test_own_pages_ask_for_all_they_name(page, person, come, somebodys):
    may = PEOPLE[person]
    wanted = LOGIN if may is None else to_whom_it_is_open(page) if set(page.needs) <= set(may) else NO
    address, client = address_of(page, somebodys), come(person)
    assert outcome(client.get(address)) == wanted
    assert outcome(client.post(address)) == (wanted if may is None or "POST" in page.methods else NO)


@pytest.mark.parametrize("page", own_pages(), ids=lambda page: page.name)
def test_an_own_page_is_closed_when_one_of_its_permissions_is_missing(page, somebodys):
    for missing in page.needs:
        user = account(f"without {missing}")
        user.user_permissions.set(_permissions(set(page.needs) - {missing}))
        assert outcome(client_of(user).get(address_of(page, somebodys))) == NO, missing


def test_a_run_s_story_is_for_those_to_whom_the_evening_is_open(rows):
    """Its events, orders and settlements are other records than the run, with permissions of their own."""
    user = account("only runs")
    user.user_permissions.set(_permissions({"sweeper.view_sweeprun"}))
    client, run = client_of(user), next(run for run in SweepRun.objects.all() if run.settled)
    page = client.get(url(SweepRun, "change", run.pk)).content.decode()
    assert run.box in page
    assert "WED-" not in page
    assert "settled twice" not in page
    assert 'class="timeline' not in page
    assert reverse("admin:sweeper_timeline") not in client.get(url(SweepRun, "changelist")).content.decode()
    user = account("the evening too")
    user.user_permissions.set(_permissions(set(EVENING.needs)))
    client = client_of(user)
    page = client.get(url(SweepRun, "change", run.pk)).content.decode()
    assert "WED-13 was settled twice" in page
    assert reverse("admin:sweeper_timeline") in client.get(url(SweepRun, "changelist")).content.decode()


def test_a_superuser_may_not_touch_a_record_either(rows, admin_client):
    before = everything()
    changeable = {"shop.book", "shop.publisher", "auth.user", "auth.group"}
    for model, row in rows.items():
        if model._meta.label_lower in changeable:
            continue
        assert outcome(admin_client.post(url(model, "change", row.pk), filled(model, row))) == NO
        assert outcome(admin_client.post(url(model, "delete", row.pk), {"post": "yes"})) == NO
        if model is not StockCount:
            assert outcome(admin_client.post(url(model, "add"), filled(model, row))) == NO
    assert everything() == before


def test_a_book_s_stock_and_isbn_are_not_typed_in(come, rows):
    book = Book.objects.get(pk=rows[Book].pk)
    form = {**filled(Book, book), "isbn": evening.isbn(777), "stock": 99}
    assert outcome(come("Operator").post(url(Book, "change", book.pk), form)) == YES
    changed = Book.objects.get(pk=book.pk)
    assert (changed.title, changed.stock, changed.isbn) == ("Changed", book.stock, book.isbn)


def test_a_copy_that_comes_back_while_a_book_is_edited_stays(come, rows):
    """The form was read with the old stock; a release lands before it is saved."""
    book = Book.objects.get(pk=rows[Book].pk)

    def release(**_: object) -> None:
        Book.objects.filter(pk=book.pk).update(stock=F("stock") + 1)

    pre_save.connect(release, sender=Book)
    try:
        form = {**filled(Book, book), "price_minor": book.price_minor}
        assert outcome(come("Operator").post(url(Book, "change", book.pk), form)) == YES
    finally:
        pre_save.disconnect(release, sender=Book)
    changed = Book.objects.get(pk=book.pk)
    assert (changed.title, changed.stock) == ("Changed", book.stock + 1)


def test_who_counted_and_when_is_not_typed_in(come, rows):
    assert outcome(come("Operator").post(url(StockCount, "add"), filled(StockCount, rows[StockCount]))) == YES
    count = StockCount.objects.latest("pk")
    assert (count.copies, count.counted_by) == (41, "Operator")
    assert count.at.year > 2020


@pytest.mark.parametrize("person", ["Student", "Instructor", "Operator"])
def test_the_first_page_names_no_accounts(person, come, wednesday):
    page = come(person).get(reverse("admin:index")).content.decode()
    assert "/admin/shop/order/" in page
    assert "/admin/auth/" not in page


def test_staff_without_a_group_see_an_empty_house(come, wednesday):
    page = come("staff without a group").get(reverse("admin:index")).content.decode()
    assert "WED-" not in page
    assert "phantom" not in page
    assert "/admin/shop/" not in page


@pytest.mark.parametrize("person", ["Student", "staff without a group"])
def test_autocomplete_lists_books_only_to_those_who_may_see_them(person, come, wednesday):
    asked = {"app_label": "shop", "model_name": "stockcount", "field_name": "book", "term": "Salt"}
    assert outcome(come(person).get(reverse("admin:autocomplete"), asked)) == expected(person, "shop.view_book")


def _permissions(names: set[str]) -> Any:
    wanted = [name.split(".") for name in names]
    return [Permission.objects.get(content_type__app_label=app, codename=code) for app, code in wanted]
