"""Nonsense in an address or a form is answered, never a server error."""

import pytest
from django.test import Client

from tests.fakes import make_book

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "address",
    [
        "/admin/sweeper/event/?order=%00",
        "/admin/shop/order/?status__exact=%00",
        "/admin/shop/fence/%00/change/",
        "/admin/shop/shelf/?q=%00",
        "/admin/sweeper/timeline/?order=%00",
        "/admin/autocomplete/?app_label=shop&model_name=order&field_name=book&term=%00",
    ],
)
def test_a_nul_byte_is_a_bad_request(admin_client: Client, address: str) -> None:
    """No text column takes one, so no page asks the database about it."""
    assert admin_client.get(address).status_code == 400


def test_a_time_zone_that_is_none_shows_the_evening_as_it_stands(admin_client: Client) -> None:
    """Twenty-three hours and fifty-nine minutes off is no zone Postgres knows."""
    address = "/admin/sweeper/timeline/?from=2024-01-01T00:00:00%2B23:59&to=2024-01-01T00:00:01"
    assert admin_client.get(address).status_code == 200
    assert admin_client.get(address.replace("2024", "0001")).status_code == 200


@pytest.mark.parametrize(("book", "status"), [("x", 200), ("", 200), ("9" * 30, 200), ("\0", 400)])
def test_a_count_of_no_book_is_a_field_s_error(admin_client: Client, book: str, status: int) -> None:
    """The form comes back and says what is wrong with it."""
    make_book()
    answer = admin_client.post("/admin/shop/stockcount/add/", {"book": book, "copies": "1"})
    assert answer.status_code == status
    assert status == 400 or b"errorlist" in answer.content


def test_a_login_without_a_destination_leads_to_the_start_page(admin_user: object) -> None:
    """And not to a page that is not there."""
    answer = Client().post("/admin/login/", {"username": "admin", "password": "password"})
    assert answer.headers["Location"] == "/admin/"
