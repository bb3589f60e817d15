"""Scripts to be played on a real server and a virtual one: a script is questions, a question the method of a side and
what it is called with.
"""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from tests.lab.sides import Script

BOXES = 3
box, lease, node = st.integers(0, BOXES - 1), st.integers(0, 3), st.integers(0, 5)
key, value, ttl = st.sampled_from(["k", "l"]), st.sampled_from(["v", "w"]), st.sampled_from(["short", "long"])


def question(*names: str, of: Sequence[st.SearchStrategy[Any]] = ()) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(st.sampled_from(names), box, *of)


on_redis = st.one_of(
    question("set_if_absent", "set_or_get", of=(key, value, ttl)),
    question("expire_if_equal", of=(key, value, ttl)),
    question("delete_if_equal", of=(key, value)),
    question("get", "delete", of=(key,)),
    st.tuples(st.just("remaining"), key),
)
on_nodes = st.one_of(
    question("set_or_get", of=(key, value, st.just("long"))),
    question("set_or_get", of=(key, value, st.just("long"))),
    question("expire_if_equal", of=(key, value, st.just("long"))),
    question("delete_if_equal", of=(key, value)),
    st.tuples(st.just("turn"), st.integers(0, 4)),
)
on_etcd = st.one_of(
    question("grant", of=(st.just("long"),)),
    question("create", of=(key, value, lease)),
    question("create", of=(key, value, lease)),
    question("keep_alive", "revoke", of=(lease,)),
    question("get", of=(key,)),
)
on_zookeeper = st.one_of(
    question("create", of=(key, value)),
    question("create", of=(key, value)),
    question("create_below", of=(node, value)),
    question("children", "get_parent", "delete_parent", of=(key,)),
    question("get", "delete", of=(node,)),
    question("session"),
    question("end"),
)
stepping = st.tuples(st.just("strike"), st.just("step"), st.sampled_from([-20.0, -5.0, 5.0, 20.0]))


def of(questions: st.SearchStrategy[tuple[Any, ...]]) -> st.SearchStrategy[Script]:
    """Never a short one, of which most would come to nothing."""
    return st.lists(questions, min_size=15, max_size=40)


def with_waits(parts: Sequence[Script]) -> Script:
    first, *others = parts
    return [*first, *(each for part in others for each in [("wait",), *part])]


# Two leases with a key each, of which one is kept alive, and two without, which write nothing when they end.
LEASES: Script = [
    *(("grant", 0, "short"), ("create", 0, "k", "v", 0), ("grant", 1, "short"), ("create", 1, "l", "w", 1)),
    *(("grant", 0, "short"), ("grant", 1, "short")),
    ("wait",),
    *(("get", 1, "k"), ("get", 0, "l"), ("create", 1, "k", "w", 1)),
    *(("keep_alive", 1, 1), ("keep_alive", 0, 2)),
    ("wait",),
    *(("get", 1, "k"), ("get", 0, "l"), ("keep_alive", 0, 0), ("revoke", 0, 0), ("create", 0, "k", "v", 0)),
    *(("revoke", 0, 2), ("revoke", 1, 3), ("create", 2, "k", "w", 1), ("create", 2, "k", "v", 0)),
    ("wait",),
    *(("get", 2, "k"), ("get", 0, "l"), ("keep_alive", 1, 1), ("grant", 2, "long"), ("create", 2, "k", "v", 4)),
]
