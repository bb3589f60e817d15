"""How the grades of one exercise are spread: figures, tenths of the points, and a picture of those."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, quantiles
from typing import Any

from grading.gradebook import Book, Cell, Stage
from grading.models import Assignment
from shop.words import count

INK, BAR = "#0a0b0c", "#3f7f6e"  # the first is replaced by whatever the reader's scheme makes of it
SCHEMES = "<style>svg { color: #26211a; } @media (prefers-color-scheme: dark) { svg { color: #ece4d4; } }</style>"
BINS = 10


@dataclass(frozen=True)
class Spread:
    """Of the complete grades of one exercise, in points; None where there are none. `bins`: how many grades fall into
    each tenth of the points that there were, the full ones into the last.
    """

    assignment: Assignment
    n: int
    incomplete: int
    mean: float | None
    median: float | None
    lower: float | None
    upper: float | None
    bins: Sequence[int]

    @property
    def tenths(self) -> list[tuple[str, int]]:
        """In words, with their numbers."""
        return [(f"{10 * at}–{10 * at + (10 if at == BINS - 1 else 9)} %", n) for at, n in enumerate(self.bins)]

    @property
    def told(self) -> str:
        """The picture in a sentence, for who does not see it."""
        if not self.n:
            return "No grade is complete yet."
        most = max(self.bins)
        where = ", ".join(name for name, n in self.tenths if n == most)
        return (
            f"Bars for tenths of the points; of {count(self.n, 'complete grade')} the most, {most}, are at {where}."
        )


def spreads(book: Book) -> list[Spread]:
    """An exercise each. Incomplete grades are counted, and kept out of the figures: they may still change."""
    return [_spread(one, [row.cells[at] for row in book.rows]) for at, one in enumerate(book.assignments)]


def _spread(assignment: Assignment, cells: Sequence[Cell]) -> Spread:
    points = [cell.points for cell in cells if cell.stage == Stage.COMPLETE]
    totals = [one.total for one in points]
    bins = [0] * BINS
    for one in points:
        bins[min(BINS - 1, BINS * one.total // one.of if one.of else 0)] += 1
    return Spread(
        assignment,
        len(points),
        sum(cell.stage in (Stage.OPEN, Stage.WAITS) for cell in cells),
        fmean(totals) if totals else None,
        median(totals) if totals else None,
        *_quartiles(totals),
        bins,
    )


def _quartiles(totals: Sequence[int]) -> tuple[float | None, float | None]:
    """The lower and the upper one, as a spreadsheet's QUARTILE.INC has them."""
    if len(totals) < 2:
        return (totals[0], totals[0]) if totals else (None, None)
    lower, _, upper = quantiles(totals, n=4, method="inclusive")
    return lower, upper


def picture(spread: Spread) -> str:
    """SVG, the same for the same grades; light or dark as its reader is. For `<img>` alone: it has styles."""
    import matplotlib  # here: it takes a second, and few pages show a picture
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    inked: Any = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK)
    with matplotlib.rc_context({"svg.hashsalt": "marlow", "svg.fonttype": "none", **inked}):
        figure = Figure(figsize=(6, 2.6), layout="constrained")
        axes = figure.add_subplot()
        axes.bar(range(BINS), list(spread.bins), width=0.9, color=BAR, edgecolor=INK, linewidth=0.6)
        axes.set_xticks([at - 0.5 for at in range(BINS + 1)], [str(10 * at) for at in range(BINS + 1)])
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        axes.set_ylim(0, max(1, *spread.bins) * 1.05)
        axes.set_xlabel("per cent of the points")
        axes.set_ylabel("grades")
        axes.spines[["top", "right"]].set_visible(False)
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    head, tag, rest = drawn.getvalue().replace(INK, "currentColor").partition("<defs>")
    return f"{head}{SCHEMES}{tag}{rest}"
