"""The laboratory's steps, read for people."""

import pytest

from exercises.asked import FAULTS, fault_in_words, read
from exercises.scenarios.faults import Kind


def test_steps_that_cannot_be_read_keep_their_numbers():
    calls = read([None, {"at": "2026-02-11T21:50:00+00:00", "who": "box-a/1", "step": "COMMIT"}, 3])
    assert [(call.number, call.server, call.kind) for call in calls] == [(2, "postgres", "commit")]


@pytest.mark.parametrize(
    ("step", "server", "said"),
    [
        ("redis SET NX GET lock:sweeper", "redis", "set the key, or say whose it is"),
        ("redlock compare-and-delete lock:sweeper", "redlock", "delete the key, if it is mine"),
        ("redis FLUSHALL now", "redis", "FLUSHALL now"),
        ("etcd keep the lease alive", "etcd", "keep the lease alive"),
        ("provider lookup wednesday-row-13", "provider", "did the money of row-13 move?"),
        ("provider {0.__class__} x", "provider", "{0.__class__} x"),
        ("try lock advisory", "postgres", "try lock advisory"),
        ("box-b/1 beside has ended", "", "box-b/1 beside has ended"),
    ],
)
def test_a_step_is_told_by_whom_it_asked_what(step, server, said):
    (call,) = read([{"at": "2026-02-11T21:50:00+00:00", "who": "box-a/1 beside", "step": step}])
    assert (call.server, call.words, call.who, call.box) == (server, said, "box-a/1", "box-a")


def test_every_fault_has_its_words():
    assert set(FAULTS) == {str(kind) for kind in Kind}
    assert fault_in_words("crash of box-a") == "box-a is killed"
    assert fault_in_words("flood of box-a") == "flood of box-a"
