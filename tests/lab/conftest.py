"""Real lock servers, as the tests of the servers have them, and the laboratory's own database."""

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from exercises.lab.database import Database
from exercises.lab.fixture import trial, trial_database
from tests.lab.database import lab_database
from tests.servers.conftest import etcd_urls, five, five_redises, nodes, zookeeper_hosts

__all__ = ["etcd_urls", "five", "five_redises", "nodes", "trial", "trial_database", "zookeeper_hosts"]


@pytest.fixture(scope="module")
def database(worker_id: str, django_db_blocker: DjangoDbBlocker) -> Iterator[Database]:
    """Lent for all of a file's tests: `django.db.connection` is the laboratory's meanwhile."""
    with django_db_blocker.unblock(), lab_database(worker_id) as lent:
        yield lent
