"""What is expected of the Wednesday under the advisory lock, and the failure that only this lock knows."""

from datetime import time
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field, ValidationInfo, field_validator

from exercises.handed.answers import Answers as Base

State = Literal["starts a run", "is in the middle of a run", "has nothing to do"]
Refused = Literal["nobody", "box A", "box B", "both"]
Copies = Annotated[int, Field(ge=0, le=99, strict=True)]
Failure = Literal[
    "the box freezes",
    "its process is killed",
    "its box loses power",
    "its lock session is lost",
    "Redis fails over",
    "the provider goes dark",
]
Where = Literal["box A", "box B", "no box"]
Keepalives = Literal["Marlow’s settings", "the operating system’s defaults"]
Seconds = Annotated[int, Field(ge=1, le=3600, strict=True)]

FREEZES, KILLED, POWER, SESSION, FAILOVER, DARK = get_args(Failure)
NO_BOX = "no box"
CLOCK = r"^2[12]:[0-5][0-9]:[0-5][0-9]$"
OPENS, CLOSES = "21:50:00", "22:00:00"


class Answers(Base):
    """Of box B the run that was started at 21:50:00 counts as its own."""

    VERSION: ClassVar[int] = 2

    box_a: State = Field(title="Box A at 21:52:00", description="Once its message of 21:52:00 has been dealt with.")
    box_b: State = Field(title="Box B at 21:52:00", description="Once its message of 21:52:00 has been dealt with.")
    refused: Refused = Field(
        title="Refused at 21:52:00", description="Whose message of 21:52:00 meets a lock that says no."
    )
    catalogue: Copies = Field(title="Friday’s catalogue", description="Copies of the novel that it still promises.")
    shelf: Copies = Field(title="Friday’s shelf", description="Copies of the novel that stand there.")
    failure: Failure = Field(
        title="The new failure",
        description="It stops the sweep for longer than Redis’s lease of 120 seconds would, and not under Redis.",
    )
    where: Where = Field(
        title="What it strikes", description="“No box” where it is Redis or the provider that fails."
    )
    at: str = Field(title="When", description=f"From {OPENS} to {CLOSES}, to the second: 21:52:00.", pattern=CLOCK)
    lasts: Seconds | None = Field(
        None,
        title="For how many seconds",
        description="Of a box that freezes, or a provider that goes dark; else leave it empty.",
        validate_default=True,
    )
    keepalives: Keepalives | None = Field(
        None,
        title="By whose keepalives Postgres misses the box",
        description="Of a box that loses power; else leave it empty.",
        validate_default=True,
    )

    @property
    def moment(self) -> time:
        return time.fromisoformat(self.at)

    @field_validator("where")
    @classmethod
    def _strikes(cls, where: str, info: ValidationInfo) -> str:
        failure = info.data.get("failure", "")
        if failure in (FAILOVER, DARK) and where != NO_BOX:
            raise ValueError(f"Where {failure}, no box is struck: choose “{NO_BOX}”.")
        if failure in (FREEZES, KILLED, POWER, SESSION) and where == NO_BOX:
            raise ValueError("This failure strikes a box: choose which.")
        return where

    @field_validator("at")
    @classmethod
    def _within_the_evening(cls, at: str) -> str:
        if not OPENS <= at <= CLOSES:
            raise ValueError(f"Name a time from {OPENS} to {CLOSES}.")
        return at

    @field_validator("lasts")
    @classmethod
    def _has_a_length(cls, lasts: int | None, info: ValidationInfo) -> int | None:
        failure = info.data.get("failure", "")
        if failure in (FREEZES, DARK) and lasts is None:
            raise ValueError(f"Say for how many seconds {failure}.")
        if failure in (KILLED, POWER, SESSION, FAILOVER) and lasts is not None:
            raise ValueError(f"Where {failure}, nothing of it has a length of yours: leave this empty.")
        return lasts

    @field_validator("keepalives")
    @classmethod
    def _is_missed(cls, keepalives: str | None, info: ValidationInfo) -> str | None:
        failure = info.data.get("failure", "")
        if failure == POWER and keepalives is None:
            raise ValueError("Say by whose keepalives Postgres finds out that the box is gone.")
        if failure not in ("", POWER) and keepalives is not None:
            raise ValueError("Only a box that loses power is missed by keepalives: leave this empty.")
        return keepalives
