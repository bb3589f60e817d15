"""The fixture in a project that is not ours: its own settings, its own tests, pytest run on them from outside."""

import re
import shlex

import psycopg
import pytest
from django.conf import settings

from tests.lab.bank import SETTINGS, again, bank, databases, ran

__all__ = ["bank"]

pytest_plugins = ["pytester"]

LOSES = """
def test_nobody_loses(trial):
    trial(set_up, both(add_in_python), lost).holds_in_every_order()
"""


def test_a_failure_shows_what_when_and_how_to_see_it_again(bank: pytest.Pytester) -> None:
    """The sentence, the order, the text, and the line of the test: nothing of the laboratory's own code."""
    said = ran(bank, LOSES)
    said.assert_outcomes(failed=1)
    said.stdout.fnmatch_lines(
        [
            ">*trial(set_up, both(add_in_python), lost).holds_in_every_order()",
            "E * there are 110",
            "E *in 2 of 4 orders (all there are). The shortest:",
            "E * a *b",
            "E * SELECT bank_account",
            "E * SELECT bank_account",
            "E * UPDATE bank_account",
            "E * replay: *=*~*",
            "E * again:  pytest test_bank.py::test_nobody_loses --lab-replay *",
        ]
    )
    assert "exercises/lab" not in said.stdout.str()
    assert "PASSWORD" not in said.stdout.str(), "pytest shows what a test was given"


def test_what_a_failure_tells_to_type_shows_it_again(bank: pytest.Pytester) -> None:
    """One order, the same sentence and the same steps; the fixed function has other steps, which is said."""
    first = ran(bank, LOSES)
    command, *_ = re.findall(r"again:  pytest (.*)", first.stdout.str())  # in CI pytest's summary has it once more
    second = again(bank, *shlex.split(command))
    second.assert_outcomes(failed=1)
    assert "in this order:" in second.stdout.str()
    shown = [re.findall(r"E .*(?:SELECT|UPDATE) bank_account", run.stdout.str()) for run in (first, second)]
    assert shown[0] == shown[1] != []
    assert command in second.stdout.str()
    mended = ran(bank, LOSES.replace("add_in_python", "add_in_the_database"), *shlex.split(command))
    mended.assert_outcomes(failed=1)
    mended.stdout.fnmatch_lines(["E *record the schedule anew*"])


def test_each_of_its_words_passes_where_it_is_so_and_fails_where_not(bank: pytest.Pytester) -> None:
    """And where one order is replayed, of that order alone."""
    said = ran(
        bank,
        """
import pytest

def fails(claim, match):
    with pytest.raises(pytest.fail.Exception, match=match):
        claim()

def test_words(trial):
    right, wrong = trial(set_up, both(add_in_the_database), lost), trial(set_up, both(add_in_python), lost)
    assert right.holds_in_every_order().exhausted
    assert right.holds_in(1).schedules == 1
    fails(right.fails_in_some_order, "Fails nowhere. Held in 2 orders, all there are")
    fails(wrong.holds_in_every_order, "there are 110")
    fails(lambda: wrong.holds_in(6), "there are 110")
    assert wrong.holds_in(1).schedules == 1
    whole = wrong.fails_in_some_order(reduced=False)
    assert whole.schedules >= wrong.fails_in_some_order().schedules
    text = str(whole.shortest.schedule)
    once = trial(set_up, both(add_in_python), lost, replay=text)
    assert once.fails_in_some_order().schedules == 1
    fails(once.holds_in_every_order, "in this order")
    fails(trial(set_up, both(add_in_python), lost, replay="~").fails_in_some_order, "it holds")
    fails(trial(set_up, both(add_in_python), lost, replay="nonsense").holds_in_every_order, "is no schedule")
    fails(trial(set_up, {}, lost).holds_in_every_order, "nothing to try")
""",
    )
    said.assert_outcomes(passed=1)


def test_the_level_of_isolation_is_the_database_s_for_that_trial(bank: pytest.Pytester) -> None:
    said = ran(
        bank,
        """
def test_levels(trial):
    def at(level):
        return trial(set_up, both(add_in_a_transaction), lost, isolation=level)

    at("read committed").fails_in_some_order()
    at("serializable").holds_in_every_order()
    at("repeatable read").holds_in_every_order()
    at(None).fails_in_some_order()
    with pytest.raises(pytest.fail.Exception, match="no isolation level 'high': take one of"):
        at("high").holds_in_every_order()
""",
    )
    said.assert_outcomes(passed=1)


def test_an_assertion_in_wrong_is_a_sentence_and_an_unforeseen_error_a_failure(bank: pytest.Pytester) -> None:
    """Or functions that died of a mistake would hold in every order. The database's own errors are outcomes."""
    said = ran(
        bank,
        """
class Broke(Exception): pass

def breaks():
    Account.objects.get(pk=1)
    raise Broke("no money")

def asserts(errors):
    assert Account.objects.get(pk=1).balance == 120

def unique():
    Account.objects.create(pk=7, balance=1)

def right(errors):
    return None

def test_asserts(trial):
    trial(set_up, both(add_in_python), asserts).holds_in_every_order()

def test_dies(trial):
    trial(set_up, {"a": breaks}, right).holds_in_every_order()

def test_may_die(trial):
    trial(set_up, {"a": breaks}, right, may_raise=(Broke,)).holds_in_every_order()
    trial(set_up, both(unique), right).holds_in_every_order()
""",
    )
    said.assert_outcomes(passed=1, failed=2)
    said.stdout.fnmatch_lines(["E *assert 110 == 120", "E *a ended with Broke: no money"])


def test_an_error_of_the_test_s_own_keeps_its_traceback(bank: pytest.Pytester) -> None:
    """Down to the line that raised it, and without the laboratory's part."""
    said = ran(
        bank,
        """
def forgets():
    Account.objects.get(pk=99)

def test_forgets(trial):
    trial(forgets, both(add_in_python), lost).holds_in_every_order()
""",
    )
    said.assert_outcomes(failed=1)
    said.stdout.fnmatch_lines(["test_bank.py:*: in forgets", "*Account.objects.get(pk=99)", "E *DoesNotExist*"])
    assert "exercises/lab" not in said.stdout.str()


def test_a_trial_of_which_nothing_is_claimed_is_no_passing_test(bank: pytest.Pytester) -> None:
    """It tried nothing."""
    said = ran(
        bank,
        """
def test_says_nothing(trial):
    trial(set_up, both(add_in_python), lost)
""",
    )
    said.assert_outcomes(passed=1, errors=1)
    said.stdout.fnmatch_lines(["*nothing claimed of it*"])


def test_chance_is_found_out(bank: pytest.Pytester) -> None:
    """With the first step that was another one."""
    said = ran(
        bank,
        """
coin = iter(range(1000))

def tosses():
    if next(coin) % 2:
        Account.objects.filter(pk=1).update(balance=1)
    else:
        Account.objects.filter(pk=1).delete()

def test_chance(trial):
    trial(set_up, {"a": tosses}, lambda errors: None).holds_in_every_order(twice=True)
""",
    )
    said.assert_outcomes(failed=1)
    said.stdout.fnmatch_lines(["E *At step *DELETE*UPDATE*reads time or chance by itself*"])


def test_what_is_committed_there_reaches_nobody(bank: pytest.Pytester) -> None:
    """Not the tests beside it, not those after it, not another trial; and no database is left."""
    said = ran(
        bank,
        """
def one_only(errors):
    return None if Account.objects.count() == 1 else "rows of another trial"

def leaves():
    Account.objects.create(pk=2, balance=2)

def only_one():
    Account.objects.create(pk=1, balance=1)

@pytest.mark.django_db
def test_inside(trial):
    Account.objects.create(pk=5, balance=5)
    trial(set_up, {"a": leaves}, lambda errors: None).holds_in_every_order()
    assert list(Account.objects.values_list("pk", flat=True)) == [5]

@pytest.mark.django_db
def test_beside():
    assert not Account.objects.exists()
    assert connection.settings_dict["NAME"].startswith("test_bank")

def test_after(trial):
    trial(lambda: None, {"a": only_one}, one_only).holds_in(1)

def test_without_asking_for_a_database():
    with pytest.raises(RuntimeError, match="Database access not allowed"):
        Account.objects.count()
""",
        "-vv",
    )
    said.assert_outcomes(passed=4)
    assert databases() == set()


def test_workers_side_by_side_have_a_database_each(bank: pytest.Pytester) -> None:
    """And what --reuse-db keeps is used again."""
    said = ran(
        bank,
        """
@pytest.mark.parametrize("number", range(4))
def test_name(trial, number, worker_id):
    names = set()
    def named():
        names.add(connection.settings_dict["NAME"])
        Account.objects.count()
    trial(set_up, {"a": named}, lambda errors: None).holds_in_every_order()
    (name,) = names
    assert name.startswith("lab_test_bank") and name.endswith(f"_{worker_id}")
""",
        *("-n", "2", "--reuse-db"),
    )
    said.assert_outcomes(passed=4)
    kept = databases()
    assert len(kept) == 2
    try:
        again(bank, "-n", "1", "--reuse-db").assert_outcomes(passed=4)
        assert databases() == kept
    finally:
        with psycopg.connect(settings.DATABASE_URL, autocommit=True) as server:
            for name in databases():
                server.execute(f'drop database "{name}"')


def test_without_a_postgres_it_fails_and_skips_nothing(bank: pytest.Pytester) -> None:
    bank.makepyfile(settings=SETTINGS + 'DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3"}}')
    said = ran(bank, LOSES)
    said.assert_outcomes(errors=1)
    said.stdout.fnmatch_lines(["The laboratory needs a real Postgres; DATABASES*is sqlite."])
