"""What a program does, learnt from the program: each conversation with it is held once, however many orders it is in.

The laboratory plays thousands of runs, and in most of them a copy is asked and told what another one was before. So
what it said then is what it says now. Where one has not been there yet a fresh copy is started, told the same, and
heard on; one that does something else meanwhile does not do the same twice, and that is its failure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from exercises.handed.checks import Json, Port, Program, Talk, TheirsFailed

MOST = 20  # questions of one call
TOO_MANY = f"Your lock asked more than {MOST} questions in one call: try once, and then say yes or no."
NOT_THE_SAME = (
    "Your lock was asked and told the same twice, and did not do the same: use no clock and no chance but the port’s."
)


@dataclass(frozen=True)
class Call:
    """Of a method, by the laboratory."""

    name: str
    arguments: tuple[Json, ...]


@dataclass(frozen=True)
class Heard:
    """What the port answered."""

    value: Json


@dataclass(frozen=True)
class Asks:
    name: str
    arguments: tuple[Json, ...]


@dataclass(frozen=True)
class Returns:
    value: Json


@dataclass(frozen=True)
class Fails:
    sentence: str


Told = tuple[Call | Heard, ...]
Said = Asks | Returns | Fails


class Conduct:
    """Of one program. `salt`: of the chance it is lent, so that no program knows what it will be given."""

    def __init__(self, program: Program, salt: str = "") -> None:
        self.program, self.salt = program, salt
        self._known: dict[Told, Said] = {}

    def after(self, told: Told) -> Said:
        """What a copy says that has been told all this. Raises CouldNotDecide."""
        if told not in self._known:
            self._known[told] = self._learn(told)
        return self._known[told]

    def _learn(self, told: Told) -> Said:
        try:
            with self.program.start() as talk:
                return _Conversation(talk, told, self._known).to_its_end()
        except TheirsFailed as failed:
            return Fails(str(failed))


class Copy:
    """One instance, as far as its run has come."""

    def __init__(self, conduct: Conduct) -> None:
        self.conduct = conduct
        self.told: Told = ()

    def call(self, name: str, arguments: Sequence[Json], port: Port) -> Json:
        """As a `Talk` has it; a call that is broken off leaves nothing that runs."""
        self.told = (*self.told, Call(name, tuple(arguments)))
        asked = 0
        while not isinstance(said := self.conduct.after(self.told), Returns):
            if isinstance(said, Fails):
                raise TheirsFailed(said.sentence)
            if asked == MOST:
                raise TheirsFailed(TOO_MANY)
            asked += 1
            self.told = (*self.told, Heard(port(said.name, list(said.arguments))))
        return said.value


class _Asked(Exception):
    """It went on behind what it has been told, with a question."""

    def __init__(self, question: Asks) -> None:
        super().__init__(question.name)
        self.question = question


class _Conversation:
    """With a fresh copy, of which all but the last word is known."""

    def __init__(self, talk: Talk, told: Told, known: dict[Told, Said]) -> None:
        self.talk, self.told, self.known = talk, told, known
        self.place = 0

    def to_its_end(self) -> Said:
        """Raises TheirsFailed, CouldNotDecide."""
        said: Said | None = None
        while self.place < len(self.told):
            call = self.told[self.place]
            if said is not None:
                self._demand_the_same(said)
            if not isinstance(call, Call):
                _not_the_same()
            self.place += 1
            try:
                said = Returns(self.talk.call(call.name, call.arguments, self._hear))
            except _Asked as asked:
                return asked.question
        assert said is not None  # noqa: S101  whoever is told nothing has not been asked
        return said

    def _hear(self, name: str, arguments: list[Json]) -> Json:
        asks = Asks(name, tuple(arguments))
        if self.place == len(self.told):
            raise _Asked(asks)
        self._demand_the_same(asks)
        heard = self.told[self.place]
        if not isinstance(heard, Heard):
            _not_the_same()
        self.place += 1
        return heard.value

    def _demand_the_same(self, said: Said) -> None:
        if self.known[self.told[: self.place]] != said:
            _not_the_same()


def _not_the_same() -> NoReturn:
    raise TheirsFailed(NOT_THE_SAME)
