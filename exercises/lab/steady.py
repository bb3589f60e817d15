"""The same order twice: what reads time or chance by itself is found out, and named."""

from collections.abc import Sequence
from itertools import zip_longest

from exercises.lab.scheduler import LabError, Option, Taken


class Unsteady(LabError):
    """The same choices, made again, came to something else."""


def demand_the_same(taken: Sequence[Taken], again: Sequence[Taken], end: object, other: object) -> None:
    """Of an order and its repetition: the steps, what they touch, and what they came to. Raises Unsteady."""
    for number, (one, two) in enumerate(zip_longest(taken, again)):
        if one != two:
            first, second = _apart(one, two)
            raise Unsteady(
                f"Played twice, an order was not the same. At step {number}, first: {first}. Then: {second}. "
                "Something here reads time or chance by itself, or finds other ids each time."
            )
    if end != other:
        raise Unsteady(
            f"Played twice, the same steps had two ends. First: {end}. Then: {other}. "
            "Something here reads time or chance by itself."
        )


def _apart(one: Taken | None, other: Taken | None) -> tuple[str, str]:
    """What could have been done at this step, as far as the two differ, in words."""
    if one is None or other is None:
        return _told(one.option if one else None), _told(other.option if other else None)
    for first, second in zip_longest(one.options, other.options):
        if first != second:
            return _told(first), _told(second)
    return f"{_told(one.option)} at {one.at:%H:%M:%S.%f}", f"{_told(other.option)} at {other.at:%H:%M:%S.%f}"


def _told(option: Option | None) -> str:
    if option is None:
        return "nothing more"
    rows = ", ".join(sorted({touch.what for touch in option.step.touches}))
    return f"{option.who}: {option.step.label}" + (f" (of {rows})" if rows else "")
