"""A lock that is handed in: what the form refuses."""

import pytest

from exercises.catalogue.own_lock.answers import MOST, Answers
from exercises.handed.answers import NotAnswers, read

LOCK = "class Lock:\n    def acquire(self, name, ttl): ...\n    def release(self, name): ...\n"


def test_a_class_with_both_methods_is_taken() -> None:
    assert read(Answers, {"source": LOCK, "cannot_prevent": "nothing"})


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("class Lock", "This is no Python"),
        (LOCK.replace("release", "unlock"), "no class Lock"),
        (LOCK.replace("Lock", "Key"), "no class Lock"),
        (LOCK + "#" * MOST, "too long"),
        ("a = " + "(" * 5000, "no Python"),
        ("a = " + "-" * 15000 + "1", "too deeply"),
    ],
)
def test_what_is_no_lock_is_told(source: str, says: str) -> None:
    with pytest.raises(NotAnswers) as wrong:
        read(Answers, {"source": source, "cannot_prevent": "nothing"})
    assert says in wrong.value.problems["source"]
