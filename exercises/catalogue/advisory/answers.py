"""What is expected of the Wednesday under the advisory lock."""

from typing import Annotated, Literal

from pydantic import Field

from exercises.handed.answers import Answers as Base

State = Literal["starts a run", "is in the middle of a run", "has nothing to do"]
Refused = Literal["nobody", "box A", "box B", "both"]
Copies = Annotated[int, Field(ge=0, le=99, strict=True)]


class Answers(Base):
    """Of box B the run that was started at 21:50:00 counts as its own."""

    box_a: State = Field(title="Box A at 21:52:00", description="Once its message of 21:52:00 has been dealt with.")
    box_b: State = Field(title="Box B at 21:52:00", description="Once its message of 21:52:00 has been dealt with.")
    refused: Refused = Field(
        title="Refused at 21:52:00", description="Whose message of 21:52:00 meets a lock that says no."
    )
    catalogue: Copies = Field(title="Friday’s catalogue", description="Copies of the novel that it still promises.")
    shelf: Copies = Field(title="Friday’s shelf", description="Copies of the novel that stand there.")
