"""What a statement touches, read from its text: enough to tell which two need not be tried both ways round.

This knows the shapes that Django's ORM writes and the few that the locks write by hand. What it does not know touches
everything, which costs orders and never misses one. What no text says it can't know: what a function, a trigger, a
rule or a view touches besides.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from exercises.lab.steps import EVERYTHING, Mode, Touch, touching

# A table's name, without its schema's.
TABLE = re.compile(
    r'\b(?:from|join|update|into)\s+(?:only\s+)?(?:"?[a-z_][a-z0-9_]*"?\.)?"?([a-z_][a-z0-9_]*)"?', re.IGNORECASE
)
# FROM a, b; DELETE FROM a USING b: tables that TABLE does not see.
UNSEEN = re.compile(
    r"\bfrom\b(?:(?!\b(?:where|group|order|having|limit|offset|for|union|returning)\b).)*?(?:,|\busing\b)",
    re.IGNORECASE,
)
# "shop_order"."id" = %s, alone or joined to the rest by AND: of no other row.
KEY = re.compile(
    r'(?:\bwhere|\band)\s+\(*"([a-z_0-9]+)"\."(id|name|key|token_name)" = (%s|\d+|\'[^\']*\')', re.IGNORECASE
)
OF_OTHERS_TOO = re.compile(r"\b(?:or|not(?! null)|case)\b", re.IGNORECASE)  # by which it may be of other rows
LOCKING = re.compile(r"\bfor (?:no key )?(?:update|share|key share)\b", re.IGNORECASE)
NOT_WAITING = re.compile(r"\b(?:skip locked|nowait)\b|pg_try_advisory", re.IGNORECASE)
ADVISORY = re.compile(r"\bpg_(?:try_)?advisory_(?:xact_)?(lock|unlock)(?:_shared|_all)?\b", re.IGNORECASE)
SESSION = re.compile(
    r"^\s*(?:savepoint|release savepoint|set (?!constraints)|show |begin|select set_config|select current_setting)",
    re.IGNORECASE,
)


BY_NAME = "advisory"  # what locks are called that belong to a session and not to rows
WRITING = ("INSERT", "UPDATE", "DELETE")
# What may let go of something though its transaction goes on: several statements in one, and the server's functions.
LETTING_GO = re.compile(r";|\bpg_(?!try_advisory)", re.IGNORECASE)
Place = tuple[str, tuple[str, int | str] | None]


@dataclass(frozen=True)
class Statement:
    """`writes` are what it will have written once it is committed. `frees`: somebody may go on after it, even where
    its transaction does.
    """

    label: str
    touches: frozenset[Touch]
    writes: frozenset[str] = frozenset()
    inserts: bool = False
    frees: bool = True


LOCAL = Statement("", frozenset())  # of its own session alone: no step
COMMIT = Statement("COMMIT", frozenset())
ROLLBACK = Statement("ROLLBACK", frozenset())


def read(sql: str, params: Any) -> Statement:
    text = " ".join(sql.split())
    shape = _shape(text)
    if shape is None:
        return LOCAL
    places, label, verb = shape
    names = [_named(table, key, params) for table, key in places]
    writes = frozenset(names[:1]) if verb in WRITING else frozenset[str]()
    keeps = verb in ("SELECT", *WRITING) and EVERYTHING not in names and not LETTING_GO.search(text)
    return Statement(label, _touches(text, names, verb), writes, verb == "INSERT", frees=not keeps)


@lru_cache(maxsize=1000)
def _shape(text: str) -> tuple[tuple[Place, ...], str, str] | None:
    """The tables, each with where its key's value is to be found, the label, and the verb. None: all its own."""
    if SESSION.match(text):
        return None
    verb = text.split(maxsplit=1)[0].upper()
    tables = list(dict.fromkeys(table.lower() for table in TABLE.findall(text)))
    if ADVISORY.search(text):
        return (((BY_NAME, None),), f"{'unlock' if 'unlock' in text else 'try lock'} advisory", verb)
    label = f"{verb} {', '.join(tables)}".strip()
    if not tables or verb not in ("SELECT", *WRITING) or UNSEEN.search(text):
        return ((EVERYTHING, None),), label, verb
    keys = {} if verb == "INSERT" else _keys(text)
    return tuple((table, keys.get(table)) for table in tables), label, verb


def _keys(text: str) -> dict[str, tuple[str, int | str]]:
    """Of each table whose rows are named by key: the column, and the parameter's place or the value itself. Not where
    another select within may be of other rows, nor by a column that this very statement changes.
    """
    before, where, condition = text.partition(" WHERE " if " WHERE " in text else " where ")
    if not where or OF_OTHERS_TOO.search(condition) or text.lower().count("select") > 1:
        return {}
    found: dict[str, tuple[str, int | str]] = {}
    for match in KEY.finditer(text, len(before)):
        table, column, value = match.groups()
        if f'"{column}" = ' in before.lower():
            continue
        found[table.lower()] = (column, text.count("%s", 0, match.start(3)) if value == "%s" else value.strip("'"))
    return found


def _named(table: str, key: tuple[str, int | str] | None, params: Any) -> str:
    if key is None:
        return table
    column, value = key
    if isinstance(value, int):
        if not isinstance(params, Sequence) or isinstance(params, Mapping) or value >= len(params):
            return table
        value = str(params[value])
    return f"{table}:{column}={value}"


def _touches(text: str, names: list[str], verb: str) -> frozenset[Touch]:
    if EVERYTHING in names:
        return touching(names, Mode.COMMIT) | touching(names, Mode.LOCK)
    if ADVISORY.search(text):
        return touching(names, Mode.COMMIT if "unlock" in text else Mode.PROBE)
    target, locking = names[:1], LOCKING.search(text)
    found = touching(names[verb == "INSERT" :], Mode.SNAPSHOT)
    if locking and NOT_WAITING.search(text):
        found |= touching(target, Mode.PROBE)
    elif locking or verb in WRITING:
        found |= touching(target, Mode.LOCK)
    if verb == "DELETE" or (locking and "no key" not in text.lower() and "share" not in text.lower()):
        found |= touching(target, Mode.GONE)
    return found
