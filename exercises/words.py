"""A verdict in plain words."""

from typing import Any

from shop.words import count

KINDS = [
    ("phantom", "phantom copy", "phantom copies"),
    ("lost", "lost copy", "lost copies"),
    ("double_settles", "order settled twice", "orders settled twice"),
    ("foreign_deletes", "key deleted that was another run’s", "keys deleted that were another run’s"),
    ("overlaps", "pair of sweeps at work at once", "pairs of sweeps at work at once"),
]


def in_words(verdict: dict[str, Any] | None) -> str:
    """One sentence, the copies first. A performance without a verdict has not ended, or was cut short."""
    if not verdict:
        return "No verdict: it was not played to its end."
    counted = [(verdict.get(name) or 0, one, many) for name, one, many in KINDS]
    named = [count(number, one, many) for number, one, many in counted if number]
    copies = verdict.get("phantom") or verdict.get("lost")
    head = "" if copies else "The shelf agrees with the catalogue"
    tail = _list(named)
    return f"{head}; {tail}." if head and tail else f"{head or tail}."


def harmless(verdict: dict[str, Any] | None) -> bool:
    """Whether the catalogue and the shelf agreed at the end."""
    return bool(verdict) and not (verdict or {}).get("phantom") and not (verdict or {}).get("lost")


def _list(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1] if parts else ""
