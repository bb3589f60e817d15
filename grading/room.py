"""Where checks are judged: the laboratory's database, lent as a `Room` of the checks has it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from exercises.handed.checks import CouldNotDecide, Program
from exercises.lab.database import Database
from exercises.stage import NotAStage
from grading.sandbox.python import sandboxed
from marlow.servers.launcher import ServerError

Opening = Callable[[], AbstractContextManager[Database]]


class JudgesRoom:
    """`opening` is one of `exercises.scenarios.room`'s, or a KeptLaboratory."""

    def __init__(self, opening: Opening, say: Callable[[str], None] = lambda _: None) -> None:
        self.opening, self.say = opening, say

    @contextmanager
    def laboratory(self) -> Iterator[Database]:
        with ExitStack() as opened:
            try:
                database = opened.enter_context(self.opening())
            except (ServerError, NotAStage) as away:
                raise CouldNotDecide(f"The laboratory could not be opened: {away}") from away
            yield database

    def python(self, source: str, name: str) -> AbstractContextManager[Program]:
        return sandboxed(source, name)
