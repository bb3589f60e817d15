"""What a timeline is made of: shapes with their places, in the picture's units, and no HTML."""

from dataclasses import dataclass, field
from uuid import UUID

WIDTH = 1200.0
LANE_GAP = 16.0


@dataclass(frozen=True)
class Tick:
    x: float
    text: str


@dataclass(frozen=True)
class Bar:
    """A run. The lease is the thinner bar under it; `lease_over` is where it ends, if that is in the window."""

    run: UUID
    state: str
    x: float
    y: float
    width: float
    title: str
    lane: int = 1  # its box's, from 1
    caption: str = ""
    lease_x: float = 0.0
    lease_width: float = 0.0
    lease_over: float | None = None
    lease_text: str = ""
    chosen: bool = False


@dataclass(frozen=True)
class Mark:
    """One event on its run's bar. `kind` is `double` for a settle of an order that was settled more than once."""

    kind: str
    x: float
    y: float
    title: str
    order: str = ""
    label: str = ""
    often: int = 1
    faded: bool = False
    beside: str = ""  # words to its right
    above: str = ""


@dataclass(frozen=True)
class Lane:
    box: str
    number: int
    y: float
    height: float


@dataclass(frozen=True)
class Tie:
    """Joins two settles of one order."""

    order: str
    x1: float
    y1: float
    x2: float
    y2: float
    faded: bool = False


@dataclass(frozen=True)
class Band:
    """A stretch in which two runs were at work at once."""

    x: float
    width: float

    @property
    def end(self) -> float:
        return self.x + self.width


@dataclass(frozen=True)
class Note:
    """Words above the lanes, with a line down to their moment. `anchor` is SVG's text-anchor."""

    kind: str
    x: float
    y: float
    text: str
    anchor: str = "start"
    foot: float = 0.0  # where its line ends, below the lanes' top

    @property
    def text_x(self) -> float:
        return self.x + (7 if self.anchor == "start" else -7)

    @property
    def dot(self) -> float:
        return self.y - 4


@dataclass(frozen=True)
class ServerLane:
    """A server's lane, below the boxes', with a line of its own in it for each row of runs."""

    server: str
    name: str
    y: float
    height: float


@dataclass(frozen=True)
class Trip:
    """One question to a server: a mark on its lane, and a line up to the run that asked, where that is drawn."""

    kind: str
    lane: int  # the box's, from 1; 0: none of the boxes
    x: float
    y: float
    title: str
    top: float | None = None  # of the line


@dataclass(frozen=True)
class Wait:
    """A statement that another's lock held up, from asking to going on."""

    lane: int
    x: float
    y: float
    width: float
    title: str


@dataclass(frozen=True)
class Key:
    """The lock's key on its server: whose it was, and its end (`expired`, `released`, `deleted` by another)."""

    lane: int
    x: float
    y: float
    width: float
    title: str
    text: str = ""
    ending: str = ""
    words: str = ""  # at its end

    @property
    def end(self) -> float:
        return self.x + self.width

    @property
    def anchor(self) -> str:
        """SVG's text-anchor of the words at its end: they may not leave the picture."""
        return "end" if self.end > WIDTH - 120 else "middle"


@dataclass(frozen=True)
class Label:
    """A step's words, slanting up to it."""

    lane: int
    x: float
    y: float
    text: str


@dataclass
class Picture:
    width: float = WIDTH
    height: float = 0.0
    top: float = 0.0  # of the lanes
    prefix: str = ""  # what the labels leave out of the orders' references
    ticks: list[Tick] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    ties: list[Tie] = field(default_factory=list)
    bands: list[Band] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    foot: float = 0.0  # of the boxes' lanes; the servers' are below
    stepped: bool = False  # places are steps, not times
    moments: list[Tick] = field(default_factory=list)  # of a picture by steps: where time went on, and to what
    servers: list[ServerLane] = field(default_factory=list)
    trips: list[Trip] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)

    @property
    def ruled(self) -> float:
        """How far down the ticks' lines reach: over all lanes."""
        last = self.servers[-1] if self.servers else None
        return last.y + last.height if last else self.height

    @property
    def lanes_height(self) -> float:
        return self.foot - self.top
