"""Orders to be settled, and which of the forms a test is about."""

import pytest

from shop.fence import raise_fence
from shop.models import Order
from shop.permit import Permit
from shop.settle import FORMS
from tests.fakes import make_book, make_order, make_permit

real_commits = pytest.mark.django_db(transaction=True, databases=["default", "journal"])

every_form = pytest.mark.parametrize("form", FORMS.values(), ids=lambda form: form.name)
guarded_forms = pytest.mark.parametrize(
    "form", [FORMS["guarded"], FORMS["fenced+guarded"]], ids=lambda form: form.name
)
unguarded_forms = pytest.mark.parametrize("form", [FORMS["unguarded"], FORMS["fenced"]], ids=lambda form: form.name)
fenced_forms = pytest.mark.parametrize("form", [FORMS["fenced"], FORMS["fenced+guarded"]], ids=lambda form: form.name)


def permit_for(form, token=1, **fields) -> Permit:
    """A permit the form can use; for a fenced one the fence is raised to its token."""
    if form.fenced:
        raise_fence("shelf", token)
        fields = {"fence": "shelf", "token": token, **fields}
    return make_permit(**fields)


def held_copy(status="pending") -> Order:
    """The only copy of a book, held by an order: stock is 0."""
    return make_order(make_book(), status)


def stock_of(order: Order) -> int:
    order.book.refresh_from_db()
    return order.book.stock


def status_of(order: Order) -> str:
    order.refresh_from_db()
    return order.status
