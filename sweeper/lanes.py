"""The servers' lanes below the boxes': what each was asked by whom, and whose the lock's key was."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sweeper.calls import COMMIT, QUESTION, RESUMED, ROLLBACK, SERVERS, Call, Held, lock_server
from sweeper.scale import Scale
from sweeper.shapes import LANE_GAP, Key, Label, Picture, ServerLane, Trip, Wait

LINE, PAD, KEY = 17.0, 7.0, 40.0  # a box's line in a lane; above and below; of the key's bar with its words
LETTER, LETTER_BELOW = 6.6, 5.8  # about as wide as a letter is, and one of the words below the picture
CROWDED = 60  # steps, beyond which they have no words of their own below the picture
FEW = 30  # steps, up to which every statement has a mark where time is the axis
LONGEST = 34  # letters of a step's words below the picture
SLANT = 0.82  # of their length: how far down they reach
ALWAYS = {QUESTION, COMMIT, ROLLBACK, RESUMED}


@dataclass(frozen=True)
class Below:
    """What stands there: every step, and whose the lock was."""

    calls: Sequence[Call]
    held: Sequence[Held]


def lay_servers(
    picture: Picture, scale: Scale, below: Below, feet: Mapping[UUID, float], boxes: Mapping[str, int]
) -> None:
    """Draw them into the picture. `feet`: where each run's bar ends; `boxes`: their lanes' numbers."""
    _Layer(picture, scale, below, feet, boxes).draw()


@dataclass(frozen=True)
class _Layer:
    picture: Picture
    scale: Scale
    below: Below
    feet: Mapping[UUID, float]
    boxes: Mapping[str, int]

    def draw(self) -> None:
        shown = [call for call in self.below.calls if self._matters(call)]
        lines = self._lines(shown)
        tops = self._lanes(LINE * max(len(lines), 1))
        for call in shown:
            self._place(call, tops[call.server] + lines[self._row(call)])
        if self.scale.stepped and len(self.below.calls) <= CROWDED:
            self._labels()

    def _matters(self, call: Call) -> bool:
        """Of a crowd of statements only those that end something, or are about the lock."""
        if not call.server or not self.scale.shows(call.at):
            return False
        few = self.scale.stepped or len(self.below.calls) <= FEW
        return few or call.takes_lock or call.kind in ALWAYS

    def _lines(self, calls: Sequence[Call]) -> dict[tuple[float, str], float]:
        """Where the line of each row of runs is within a lane, in the order in which the rows stand above."""
        return {row: LINE * (place + 0.5) for place, row in enumerate(sorted({self._row(call) for call in calls}))}

    def _row(self, call: Call) -> tuple[float, str]:
        """What calls of one line share. Whoever has no runs in the picture comes last, each by its name."""
        return (self.feet[call.run], "") if call.run in self.feet else (math.inf, call.box)

    def _lanes(self, lines: float) -> dict[str, float]:
        """Lays a lane for each server that was asked; returns where its lines begin."""
        picture, home = self.picture, lock_server(self.below.calls)
        servers, tops = {call.server for call in self.below.calls}, {}
        if self.below.held:
            servers.add(home)
        for server, name in SERVERS.items():
            if server in servers:
                top = picture.height + PAD
                if server == home and self.below.held:
                    picture.keys = [self._key(held, top) for held in self.below.held]
                    top += KEY
                height = top + lines + PAD - picture.height
                picture.servers.append(ServerLane(server, name, picture.height, height))
                tops[server] = top
                picture.height += height + LANE_GAP / 2
        return tops

    def _place(self, call: Call, y: float) -> None:
        scale, lane = self.scale, self.boxes.get(call.box, 0)
        x, words = scale.x(call.at), f"{call.who} to {SERVERS[call.server]}: {call.words}"
        self.picture.trips.append(
            Trip(call.kind, lane, x, y, f"{scale.clock(call.at)}, {words}", self.feet.get(call.run))
        )
        asked = next((other for other in self.below.calls if other.number == call.since), None)
        if asked is not None:
            began = scale.clipped(asked.at)
            title = f"{call.who} waits for another’s lock from {scale.clock(asked.at)} to {scale.clock(call.at)}"
            self.picture.waits.append(Wait(lane, began, y, round(x - began, 2), title))

    def _key(self, held: Held, y: float) -> Key:
        scale = self.scale
        x, end = scale.clipped(held.start), scale.clipped(held.over or scale.end)
        width = round(max(end - x, 2.0), 2)
        until = f", until {scale.clock(held.until)}" if held.until else ""
        name = f"{held.box}’s {'lock' if lock_server(self.below.calls) == 'postgres' else 'key'}"
        names = (f"{name}{until}", name, held.box)
        text = next((text for text in names if len(text) * LETTER + 10 < width), "")
        ending, words = self._ending(held)
        title = f"{scale.clock(held.start)}: the lock is {held.box}’s{until}" + (f"; {words}" if words else "")
        return Key(
            self.boxes.get(held.box, 0), x, y, width, title, text, ending, words if ending == "deleted" else ""
        )

    def _ending(self, held: Held) -> tuple[str, str]:
        over = held.over
        if over is None or not self.scale.shows(over):
            return "", ""
        if over != held.end:
            return "expired", f"it runs out at {self.scale.clock(over)}"
        if held.taken_by:
            return "deleted", f"deleted by {held.taken_by}"
        return "released", f"it is let go at {self.scale.clock(over)}"

    def _labels(self) -> None:
        """The words of every step, slanting up to its place."""
        told = [(call, shorten(call.words)) for call in self.below.calls]
        y = self.picture.height
        self.picture.labels = [
            Label(self.boxes.get(call.box, 0), self.scale.x(call.at), y, text) for call, text in told
        ]
        self.picture.height += max((len(text) for _, text in told), default=0) * LETTER_BELOW * SLANT + LANE_GAP


def shorten(words: str) -> str:
    return words if len(words) <= LONGEST else f"{words[:LONGEST].rstrip()}…"
