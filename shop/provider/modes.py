"""How the simulated provider behaves, by operation and by virtual time.

A control body is JSON. `default` and each operation hold a rule or null (null: the default's); what is left out is
fast. `schedule` is a list of such bodies, each with `at` (virtual time, ISO 8601 with its offset); from `at` on, an
entry replaces the whole body, it is not merged into the one before.

    {"default": {"mode": "fast"},
     "schedule": [{"at": "2026-02-11T20:50:00Z", "charge": {"mode": "slow", "latency": 10.6, "every": 5}}]}
"""

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from itertools import pairwise


class ControlError(ValueError):
    """The control body makes no sense; the sentence says what is allowed. Nothing was changed."""


class Mode(StrEnum):
    """What happens to one request."""

    FAST = "fast"  # at once
    SLOW = "slow"  # `latency` virtual seconds first (see `spacing`); if the client has gone by then, nothing is done
    DARK = "dark"  # accepted, never answered, nothing done
    REFUSING = "refusing"  # 503 at once, nothing done
    DECLINING = "declining"  # the card is declined, for good under that key
    FLAPPING = "flapping"  # fast, 503, fast, 503 …
    LATE = "late"  # never answered; the money moves `lands_after` virtual seconds after the request
    HTML = "html"  # 200 and an HTML page, nothing done
    GARBAGE = "garbage"  # 200 and JSON of another shape, nothing done
    WRONG_AMOUNT = "wrong_amount"  # done, and answered with one minor unit too many


class Operation(StrEnum):
    CHARGE = "charge"
    LOOKUP = "lookup"
    CANCEL = "cancel"
    REFUND = "refund"
    LIST = "list"


LONGEST = 31_536_000  # virtual seconds
ONLY_CHARGES = frozenset({Mode.DECLINING, Mode.LATE})


@dataclass(frozen=True)
class Rule:
    """A mode for every n-th request of an operation, `first` (from 0) being the first one hit; others are fast.

    `latency`, `spacing` and `lands_after` are virtual seconds. With `spacing`, slow answers on one connection come at
    least so far apart: a client that asks again at once is answered in step, however long it took to ask.
    """

    mode: Mode = Mode.FAST
    latency: float = 0.0
    spacing: float = 0.0
    lands_after: float = 0.0
    every: int = 1
    first: int = 0

    @property
    def counts(self) -> bool:
        """Whether the request's place in the row matters."""
        return self.mode is Mode.FLAPPING or self.every > 1 or self.first > 0

    def hit(self, index: int) -> "Rule":
        """What request number `index` (from 0) gets: this rule, or a plain fast or refusing one."""
        turn, off = divmod(index - self.first, self.every)
        if turn < 0 or off:
            return FAST
        if self.mode is Mode.FLAPPING:
            return Rule(Mode.REFUSING) if turn % 2 else FAST
        return self


FAST = Rule()


@dataclass(frozen=True)
class Phase:
    """The rules between one virtual time and the next. `at` is None for the body that stands before the schedule."""

    at: datetime | None = None
    default: Rule = FAST
    rules: dict[Operation, Rule | None] = field(default_factory=dict)

    def rule(self, operation: Operation) -> Rule:
        """A default that only makes sense for charges leaves the other operations fast."""
        rule = self.rules.get(operation) or self.default
        return FAST if rule.mode in ONLY_CHARGES and operation is not Operation.CHARGE else rule

    def body(self) -> dict[str, object]:
        rules = {operation: self.rules.get(operation) for operation in Operation}
        body: dict[str, object] = {name: rule and asdict(rule) for name, rule in rules.items()}
        return {"at": self.at and self.at.isoformat(), "default": asdict(self.default), **body}


@dataclass(frozen=True)
class Control:
    """The standing phase and the scheduled ones, in order of time."""

    standing: Phase = Phase()
    schedule: tuple[Phase, ...] = ()

    def phase(self, now: datetime) -> tuple[int, Phase]:
        """The phase at this virtual time and its number (0: the standing one)."""
        passed = [phase for phase in self.schedule if phase.at is not None and phase.at <= now]
        return len(passed), passed[-1] if passed else self.standing

    def body(self) -> dict[str, object]:
        """The control as JSON that `read_control` takes back, every field written out."""
        standing = {name: value for name, value in self.standing.body().items() if name != "at"}
        return {**standing, "schedule": [phase.body() for phase in self.schedule]}


def read_control(body: object) -> Control:
    """Raise ControlError for anything that is not a control body."""
    standing = dict(_object(body, "the control", {"default", "schedule", *Operation}))
    entries = standing.pop("schedule", None)
    entries = [] if entries is None else entries
    if not isinstance(entries, list):
        raise ControlError("schedule is a list of entries, each with an `at`.")
    schedule = tuple(_entry(entry, f"schedule[{place}]") for place, entry in enumerate(entries))
    times = [phase.at for phase in schedule if phase.at is not None]
    if any(later <= earlier for earlier, later in pairwise(times)):
        raise ControlError("schedule is in order of `at`, each later than the one before.")
    return Control(_phase(standing, ""), schedule)


def read_moment(text: object, where: str) -> datetime:
    """A virtual time from ISO 8601 with an offset, in UTC. Raise ControlError for anything else."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
        if moment is not None and moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        moment = None
    raise ControlError(f"{where} is an ISO 8601 time with its offset, for example 2026-02-11T21:50:00Z.")


def _entry(entry: object, where: str) -> Phase:
    fields = dict(_object(entry, where, {"at", "default", *Operation}))
    return _phase(fields, f"{where}.", read_moment(fields.pop("at", None), f"{where}.at"))


def _phase(fields: dict[str, object], where: str, at: datetime | None = None) -> Phase:
    rules = {name: _rule(value, where + name) for name, value in fields.items()}
    for name, rule in rules.items():
        if rule and rule.mode in ONLY_CHARGES and name not in ("charge", "default"):
            raise ControlError(f"{where}{name}: {rule.mode} is for charge (or default, where it means charge).")
    default = rules.pop("default", None) or FAST
    return Phase(at, default, {Operation(name): rule for name, rule in rules.items()})


def _rule(value: object, where: str) -> Rule | None:
    if value is None:
        return None
    fields = _object(value, where, {"mode", "latency", "spacing", "lands_after", "every", "first"})
    rule = Rule(
        _mode(fields.get("mode"), where),
        _seconds(fields.get("latency", 0), f"{where}.latency"),
        _seconds(fields.get("spacing", 0), f"{where}.spacing"),
        _seconds(fields.get("lands_after", 0), f"{where}.lands_after"),
        _whole(fields.get("every", 1), f"{where}.every", least=1),
        _whole(fields.get("first", 0), f"{where}.first", least=0),
    )
    if rule.mode is Mode.SLOW and not rule.latency:
        raise ControlError(f"{where}: slow needs a latency above 0, in virtual seconds.")
    if rule.mode is Mode.LATE and not rule.lands_after:
        raise ControlError(f"{where}: late needs a lands_after above 0, in virtual seconds.")
    return rule


def _object(value: object, where: str, allowed: set[str]) -> dict[str, object]:
    names = ", ".join(sorted(allowed))
    if not isinstance(value, dict):
        raise ControlError(f"{where} is a JSON object; allowed in it: {names}.")
    unknown = sorted(set(value) - allowed)
    if unknown:
        raise ControlError(f"{where} has no {', '.join(unknown)}; allowed: {names}.")
    return value


def _mode(value: object, where: str) -> Mode:
    if not isinstance(value, str) or value not in set(Mode):
        raise ControlError(f"{where}.mode can't be {json.dumps(value)}; allowed: {', '.join(Mode)}.")
    return Mode(value)


def _seconds(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST:
        raise ControlError(f"{where} is a number of virtual seconds, 0 or more and at most {LONGEST}, a year.")
    return float(value)


def _whole(value: object, where: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ControlError(f"{where} is a whole number, {least} or more.")
    return value
