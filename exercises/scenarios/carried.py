"""Parts of an exploration and what came of them, as JSON: what goes to a worker, and what comes back."""

from dataclasses import asdict
from typing import Any

from exercises.lab.explore import Branch, Fork, Path
from exercises.scenarios.corner import Corner
from exercises.scenarios.faults import Fault, Kind
from exercises.scenarios.part import Beyond, Bounds, Part, Tally
from exercises.scenarios.written import read, written

Json = Any


def corner_to(corner: Corner) -> str:
    """As a schedule names it."""
    return written(corner, (), ())


def corner_from(text: str) -> Corner:
    return read(text)[0]


def bounds_to(bounds: Bounds) -> Json:
    return {**asdict(bounds), "kinds": [str(kind) for kind in bounds.kinds]}


def bounds_from(carried: Json) -> Bounds:
    return Bounds(**{**carried, "kinds": tuple(Kind(kind) for kind in carried["kinds"])})


def part_to(part: Part) -> Json:
    return {"faults": [str(fault) for fault in part.faults], "path": _path_to(part.path)}


def part_from(carried: Json) -> Part:
    return Part(_faults(carried["faults"]), _path_from(carried["path"]))


def beyond_to(beyond: Beyond) -> Json:
    return {
        "sets": [[str(fault) for fault in faults] for faults in beyond.sets],
        "forks": [[_path_to(fork.path), list(fork.opened), list(fork.pending)] for fork in beyond.forks],
        "wanted": [[_path_to(path), who] for path, who in beyond.wanted],
    }


def beyond_from(carried: Json) -> Beyond:
    return Beyond(
        tuple(_faults(faults) for faults in carried["sets"]),
        tuple(Fork(_path_from(path), tuple(opened), tuple(left)) for path, opened, left in carried["forks"]),
        tuple((_path_from(path), who) for path, who in carried["wanted"]),
    )


def tally_to(tally: Tally) -> Json:
    """Of the shortest failure only its text, for that is all of it."""
    return {
        "schedules": tally.schedules,
        "alike": tally.alike,
        "plans": tally.plans,
        "depth": tally.depth,
        "failures": [[list(what), number] for what, number in tally.failures.items()],
        "outcomes": [list(outcome) for outcome in tally.outcomes],
        "shortest": tally.shortest and tally.shortest[0],
    }


def add(tally: Tally, carried: Json) -> str:
    """What a part came to, added to what there is; returns the text of its shortest failure, if any."""
    tally.schedules += carried["schedules"]
    tally.alike += carried["alike"]
    tally.plans += carried["plans"]
    tally.depth = max(tally.depth, carried["depth"])
    tally.outcomes |= {_tuple(outcome) for outcome in carried["outcomes"]}
    for what, number in carried["failures"]:
        tally.failures[tuple(what)] = tally.failures.get(tuple(what), 0) + number
    return carried["shortest"] or ""


def _faults(texts: list[str]) -> tuple[Fault, ...]:
    return tuple(Fault.read(text) for text in texts)


def _path_to(path: Path) -> Json:
    return [[branch.who, list(branch.tried)] for branch in path]


def _path_from(carried: Json) -> Path:
    return tuple(Branch(who, tuple(tried)) for who, tried in carried)


def _tuple(carried: Json) -> Any:
    return tuple(_tuple(one) for one in carried) if isinstance(carried, list) else carried
