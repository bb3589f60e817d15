"""What is handed in about the finer key: what it solves, an evening that it does not, and a settle that does."""

from datetime import datetime, time
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field, field_validator

from exercises.handed.answers import Answers as Base
from exercises.handed.answers import Code, Part
from exercises.handed.sql import LONGEST, Lent, NotLent, taken

Said = Literal["yes", "no"]
Who = Literal["box A", "box B"]
Does = Literal["starts", "is elected", "is refused", "lists", "asks", "puts back"]
LENT = Lent(
    reads=("shop_order", "shop_book"),
    writes={"shop_order": ("status", "settled_at", "settled_by_box", "settled_by_run"), "shop_book": ("stock",)},
    parameters={
        "order": "the row’s number in shop_order",
        "book": "its book’s number in shop_book",
        "now": "the box’s clock, a timestamptz",
        "box": "the box’s name, a text",
        "run": "the run’s uuid",
    },
)
CLOCK = r"^2[12]:[0-5][0-9]:[0-5][0-9]$"
OPENS = "21:50:00"


class Happens(Part):
    """One event of the evening."""

    at: str = Field(title="When", description="To the second: 21:52:00.", pattern=CLOCK)
    who: Who = Field(title="Who")
    does: Does = Field(title="Does what", description="What is not listed does not happen.")

    @property
    def moment(self) -> time:
        return time.fromisoformat(self.at)

    @field_validator("at")
    @classmethod
    def _not_before_it_opens(cls, at: str) -> str:
        if at < OPENS:
            raise ValueError(f"The evening begins at {OPENS}: name a time from then on.")
        return at


class Step(Part):
    """One statement of the settle."""

    statement: Annotated[str, Code("sql")] = Field(
        title="Statement",
        description=f"One SELECT or UPDATE, with {', '.join(f':{name}' for name in LENT.parameters)}.",
        max_length=LONGEST,
    )
    transaction: int = Field(
        title="Transaction", description="Steps of one number are committed together.", ge=1, le=6, strict=True
    )
    on_zero_rows: Literal["stop", "go on"] = Field(
        title="On zero rows",
        description="Stop: this transaction is rolled back, and no later step is taken.",
    )

    @field_validator("statement")
    @classmethod
    def _is_lent(cls, statement: str) -> str:
        try:
            taken(statement, LENT)
        except NotLent as refused:
            raise ValueError(str(refused)) from refused
        return statement


class Answers(Base):
    """Said of the Wednesday with `slot` in the place of the sweeper's key, and the settle as it was: unguarded."""

    elected_once: Said = Field(title="Does each slot have one run at most?", description="Elected, on that evening.")
    together: Said = Field(title="Are two runs at work at one time?")
    foreign_delete: Said = Field(title="Does a run delete what another one holds the lock by?")
    back_twice: Said = Field(title="Does a held copy go back twice?")
    events: list[Happens] = Field(
        title="An evening that still oversells",
        description=f"From {OPENS} on, in the order in which it happens.",
        min_length=1,
        max_length=40,
    )
    settle: list[Step] = Field(
        title="A settle that bears it", description="The steps that release one row.", min_length=1, max_length=6
    )

    @field_validator("events")
    @classmethod
    def _one_after_another(cls, events: list[Happens]) -> list[Happens]:
        for number, (before, after) in enumerate(pairwise(events), start=2):
            if after.moment < before.moment:
                raise ValueError(f"Event {number} ({after.at}) is earlier than the one above it ({before.at}).")
        return events

    @field_validator("settle")
    @classmethod
    def _none_again(cls, settle: list[Step]) -> list[Step]:
        for number, (before, after) in enumerate(pairwise(settle), start=2):
            if after.transaction < before.transaction:
                raise ValueError(
                    f"Step {number} is of transaction {after.transaction}, which is over by then: "
                    f"give it {before.transaction}, or a higher number."
                )
        return settle


def on_the_day(day: datetime, at: time) -> datetime:
    return datetime.combine(day.date(), at, day.tzinfo)
