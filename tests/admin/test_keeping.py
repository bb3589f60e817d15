"""A run of the laboratory finds its way into the database that the admin reads, or says why not."""

import re
from typing import Any

import pytest
from django.conf import settings as configured
from django.db import connection

from exercises.models import LabRun
from exercises.scenarios.keep import NotKept, keep
from marlow.settings import environment_for
from tests.labruns import recorded

pytestmark = pytest.mark.django_db


def shop(name: str = "", port: Any = None) -> str:
    """The address of the tests' database, or of another one there."""
    at = connection.settings_dict
    return f"postgres://{at['USER']}:{at['PASSWORD']}@{at['HOST']}:{port or at['PORT']}/{name or at['NAME']}"


def use(settings: Any, url: str) -> None:
    settings.GIVEN_SERVERS = {**configured.GIVEN_SERVERS, "DATABASE_URL": url}
    settings.DATABASE_URL = url


@pytest.mark.django_db(transaction=True)
def test_a_run_is_kept_in_the_shop_s_database(settings):
    use(settings, shop())
    keep(recorded("pause"), environment_for)
    kept = LabRun.objects.get()
    assert {name: getattr(kept, name) for name in recorded("pause")} == recorded("pause")


@pytest.mark.parametrize(
    ("name", "port", "to_do"),
    [("", 1, "start it, or set DATABASE_URL."), ("postgres", None, "run manage.py migrate there.")],
)
def test_where_a_run_cannot_be_kept_it_is_said_what_to_do(settings, name, port, to_do):
    use(settings, shop(name, port))
    with pytest.raises(NotKept, match=re.escape(to_do)) as refused:
        keep(recorded("pause"), environment_for)
    assert str(refused.value).endswith("Then play it again with --keep.")
    assert "Traceback" not in str(refused.value)
