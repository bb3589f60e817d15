"""A run as a text, and the text played again."""

from collections.abc import Sequence

from exercises.lab.database import Database
from exercises.lab.schedule import Schedule
from exercises.lab.scheduler import LabError, Taken
from exercises.scenarios.boxes import Setting
from exercises.scenarios.corner import Corner, Played, play
from exercises.scenarios.faults import Fault


class CannotReplay(LabError):
    """This text names no run of this laboratory."""


def written(corner: Corner, faults: Sequence[Fault], taken: Sequence[Taken]) -> str:
    """`corner;redis-naive;unguarded;lookup;2;2;1;0;120;pause@box-a:7;9=box-b/1~5d2f91c0`: what was played, boxes,
    orders, messages, latency, lease, faults, and the schedule. Behind the question: `+stop`, `+renew` where on.
    """
    setting = corner.setting
    flags = "".join(f"+{name}" for name, on in (("stop", setting.stop_on_lost_lease), ("renew", setting.renew)) if on)
    parts = [
        *("corner", setting.lock, setting.settle, setting.question + flags),
        *(str(corner.boxes), str(corner.orders), str(corner.messages), f"{corner.latency:g}", f"{setting.ttl:g}"),
        *("+".join(str(fault) for fault in faults), str(Schedule.of(taken))),
    ]
    return ";".join(parts)


def read(text: str) -> tuple[Corner, tuple[Fault, ...], Schedule]:
    """Raises CannotReplay, Unreadable."""
    kind = text.strip().partition(";")[0]
    if kind != "corner":
        raise CannotReplay(f"There is no scenario {kind!r} to replay: copy the whole schedule, from `corner;` on.")
    try:
        _, lock, settle, asked, boxes, orders, messages, latency, ttl, faults, schedule = text.strip().split(";")
        question, *flags = asked.split("+")
        setting = Setting(
            lock,
            settle,
            question,
            stop_on_lost_lease="stop" in flags,
            renew="renew" in flags,
            ttl=float(ttl),
            every=float(ttl),
        )
        corner = Corner(setting, int(boxes), int(orders), int(messages), float(latency))
        planned = tuple(Fault.read(fault) for fault in faults.split("+") if fault)
    except ValueError as error:
        raise CannotReplay(f"{text!r} can't be replayed: copy it whole, from `corner;` to its mark.") from error
    return corner, planned, Schedule.read(schedule)


def replay(database: Database, text: str) -> Played:
    """The same run again. Raises CannotReplay, Unreadable, and Diverged where the code does something else now."""
    corner, faults, schedule = read(text)
    if not schedule.mark:  # nothing would tell that this is not what was recorded
        raise CannotReplay(f"{text!r} ends before its mark: copy the whole schedule.")
    played = play(database, corner, schedule.policy(), faults)
    schedule.demand(played.taken)
    return played


def length(text: str) -> tuple[int, ...]:
    """By which of two failures is shorter: turns and faults, then boxes, orders, messages, then letters."""
    return text.count("=") + text.count("@"), *map(int, text.split(";")[4:7]), len(text)
