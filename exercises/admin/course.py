"""The course of a laboratory's run, drawn: by the clock, or by its steps where they all share a few moments."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from exercises.asked import faults, read
from shop.words import count
from sweeper.admin.scene import AT_MOST, Scene, kept_scene
from sweeper.calls import Call, held
from sweeper.events import Event, Kind
from sweeper.findings import Finding, Span, find, harm
from sweeper.kept import cut_off, deadline, raw_events, spans_of, with_ends
from sweeper.lanes import Below
from sweeper.scale import Scale, Steps, moment_of
from sweeper.shapes import Picture
from sweeper.timeline import draw
from sweeper.window import Window, closely, focus

ONE_SIGHT = timedelta(minutes=10)  # a longer run is drawn where it went wrong
FIRST, ROOM = 0.12, 0.28  # of the way from one step to the next: where events between them stand


@dataclass(frozen=True)
class Stepped(Finding):
    """A finding with the step after which it was so."""

    step: int = 0


@dataclass(frozen=True)
class Course:
    """What a page shows: `findings` in the order in which things happened, `part` the stretch that was drawn where
    that is not all.
    """

    scene: Scene
    findings: list[Finding]
    picture: Picture | None
    stepped: bool = False
    part: Window | None = None


def course(verdict: Any, steps: Any, lock: str) -> Course:
    """Of a verdict and steps as they were kept, readable or not. Asks the database for nothing."""
    scene, calls = kept_scene(verdict, lock), read(steps)[:AT_MOST]
    if not scene.spans:
        return Course(scene, [], None)
    if _by_steps(scene.events, calls):
        return _by_their_order(scene, calls, lock)
    return _by_the_clock(scene, calls, lock)


def story(verdict: Any, steps: Any, lock: str, wrong: Any) -> dict[str, Any]:
    """For `admin/exercises/course.html`: the picture and the sentences of a run that was kept, of a shop that is not
    this one.
    """
    shown = course(verdict, steps, lock)
    unread = len(raw_events(verdict)) - len(shown.scene.events)
    return {
        "kept": True,
        "stepped": shown.stepped,
        "unread": count(unread, "event") if unread else "",
        "picture": shown.picture,
        "part": shown.part,
        "lines": shown.scene.lines(),
        "findings": shown.findings,
        "harm": bool(wrong) or harm(shown.findings),
    }


def _by_steps(events: Sequence[Event], calls: Sequence[Call]) -> bool:
    """Whether time tells nothing apart: questions are answered in the moment in which they are asked, or none is."""
    if not calls or any(_step(event) is None for event in events):
        return False
    asked: dict[tuple[UUID, str], datetime] = {}
    answers = []
    for event in events:
        if event.kind is Kind.ASKED:
            asked[event.run, event.order] = event.at
        elif event.kind is Kind.ANSWERED and (event.run, event.order) in asked:
            answers.append(event.at == asked[event.run, event.order])
    return any(answers) or not answers


def _step(event: Event) -> int | None:
    """How many steps came before it; None where that is not on record."""
    step = event.data.get("step")
    return step if isinstance(step, int) and not isinstance(step, bool) and 0 <= step <= AT_MOST else None


def _by_the_clock(scene: Scene, calls: Sequence[Call], lock: str) -> Course:
    findings = sorted([*scene.findings, *faults(calls)], key=lambda finding: finding.at)
    window = closely(scene.spans)
    part = focus(scene.spans, scene.findings) if window.length > ONE_SIGHT else None
    drawn = part or window
    keys = held(scene.events, [deadline(event) for event in scene.events], lock)
    there = [key for key in keys if key.start <= drawn.end and (key.over or drawn.end) > drawn.start]
    spans = [span for span in scene.spans if span.start <= drawn.end and (span.end or drawn.end) >= drawn.start]
    picture = draw(
        Scale(drawn.start, drawn.end), spans, scene.events, findings, below=Below(calls, there) if calls else None
    )
    return Course(scene, findings, picture, part=part)


def _by_their_order(scene: Scene, calls: Sequence[Call], lock: str) -> Course:
    """Everything is moved to where it stands among the steps, and found and drawn there."""
    scale = Steps(times=_times(calls, scene.events))
    events = _moved(scene.events)
    calls = [replace(call, at=moment_of(call.number)) for call in calls]
    spans = [_with_lease(scale, span) for span in spans_of(events, lock)]
    found = [*find(spans, events, with_ends(events)), *cut_off(spans), *faults(calls)]
    found = sorted(found, key=lambda finding: finding.at)
    deadlines = [None if until is None else scale.after(until) for until in map(deadline, events)]
    picture = draw(scale, spans, events, found, below=Below(calls, held(events, deadlines, lock)))
    return Course(scene, list(_told(found, scene.findings)), picture, stepped=True)


def _times(calls: Sequence[Call], events: Sequence[Event]) -> list[datetime]:
    """When each step was, those that could not be read when the one before them was."""
    last = max([calls[-1].number, *(_step(event) or 0 for event in events)])
    known, times = {call.number: call.at for call in calls}, [calls[0].at]
    for number in range(1, last + 1):
        times.append(known.get(number, times[-1]))
    return times[1:]


def _moved(events: Sequence[Event]) -> list[Event]:
    """Between the step that came before them and the next one, side by side."""
    together: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        together[_step(event) or 0].append(event)
    return [
        replace(event, at=moment_of(step + FIRST + ROOM * place / len(those)))
        for step, those in together.items()
        for place, event in enumerate(those)
    ]


def _with_lease(scale: Steps, span: Span) -> Span:
    return span if span.lease_until is None else replace(span, lease_until=scale.after(span.lease_until))


def _told(moved: Sequence[Finding], told: Sequence[Finding]) -> list[Finding]:
    """Those found among the steps, with the times of day and the words of those found by the clock."""
    by_what: dict[tuple[Any, ...], list[Finding]] = defaultdict(list)
    for finding in told:
        by_what[finding.kind, finding.runs, finding.order].append(finding)
    found: list[Finding] = []
    for finding in moved:
        same = by_what[finding.kind, finding.runs, finding.order]
        words = same.pop(0).text if same else finding.text
        step = int((finding.at - moment_of(0)).total_seconds())
        found.append(Stepped(finding.kind, finding.at, finding.note, words, finding.runs, finding.order, step=step))
    return found
