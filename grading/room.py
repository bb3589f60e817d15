"""Where checks are judged: the laboratory's database, lent as a `Room` of the checks has it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from exercises.handed.checks import CouldNotDecide
from exercises.lab.database import Database
from exercises.stage import NotAStage
from marlow.servers.launcher import ServerError

Opening = Callable[[], AbstractContextManager[Database]]


class JudgesRoom:
    """`opening` is one of `exercises.scenarios.room`'s, or a KeptLaboratory."""

    def __init__(self, opening: Opening, say: Callable[[str], None] = lambda _: None) -> None:
        self.opening, self.say = opening, say

    @contextmanager
    def laboratory(self) -> Iterator[Database]:
        try:
            opened = self.opening()
            database = opened.__enter__()
        except (ServerError, NotAStage) as away:
            raise CouldNotDecide(f"The laboratory could not be opened: {away}") from away
        try:
            yield database
        except BaseException as error:
            if not opened.__exit__(type(error), error, error.__traceback__):
                raise
        else:
            opened.__exit__(None, None, None)
