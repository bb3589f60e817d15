"""The exercises that are there: every folder of the catalogue, with no list to keep."""

import hashlib
import logging
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from exercises import catalogue as package
from exercises.handed.answers import Answers, read
from exercises.handed.checks import Check

PARTS = ("statement.md", "answers.py", "checks.py")
log = logging.getLogger(__name__)


class NoExercise(LookupError):
    """There is none of this name, and which there are; or it can't be read, and why: no word for a student."""


@dataclass(frozen=True)
class Known:
    """An answer whose verdict is known. `kind`: right, wrong or cheat; `expected`: outcome and points by check."""

    name: str
    kind: str
    about: str
    answers: dict[str, Any]
    expected: dict[str, tuple[str, int]]


@dataclass(frozen=True)
class Exercise:
    """One folder. `slug` is its name with hyphens; `checks.py` has VERSION, PLACE and CHECKS."""

    folder: Path

    @property
    def slug(self) -> str:
        return self.folder.name.replace("_", "-")

    @cached_property
    def statement(self) -> str:
        """Markdown; its first line is the title."""
        return (self.folder / "statement.md").read_text()

    @property
    def title(self) -> str:
        return self.statement.partition("\n")[0].lstrip("# ").strip()

    @property
    def answers(self) -> type[Answers]:
        found: type[Answers] = self._module("answers").Answers
        return found

    @property
    def version(self) -> int:
        """Of the checks: rises whenever one of them decides otherwise than before."""
        return int(self._module("checks").VERSION)

    @property
    def place(self) -> int:
        return int(self._module("checks").PLACE)

    @property
    def checks(self) -> Sequence[Check]:
        found: Sequence[Check] = self._module("checks").CHECKS
        return found

    @property
    def points(self) -> int:
        return sum(check.points for check in self.checks)

    @property
    def digest(self) -> str:
        """Of this folder's own code. What it imports of the project is told by the project's version alone."""
        code = b"".join(file.read_bytes() for file in sorted(self.folder.glob("*.py")))
        return hashlib.sha256(code).hexdigest()[:16]

    def known(self) -> Iterator[Known]:
        """From `known/*.toml`, whose answers are read as a student's are. Raises NotAnswers."""
        for file in sorted((self.folder / "known").glob("*.toml")):
            told = tomllib.loads(file.read_text())
            read(self.answers, told["answers"])
            expected = {name: (said["outcome"], said["points"]) for name, said in told["expected"].items()}
            yield Known(file.stem, told["kind"], told["about"], told["answers"], expected)

    def _module(self, name: str) -> ModuleType:
        return import_module(f"{package.__name__}.{self.folder.name}.{name}")


def catalogue() -> dict[str, Exercise]:
    """By slug, in the order of the course. One that can't be read is left out, and the log says so once."""
    whole = _folders()
    for slug, why in unreadable().items():
        whole.pop(slug, None)
        _say_once(why)
    return dict(sorted(whole.items(), key=lambda one: (one[1].place, one[0])))


def unreadable() -> dict[str, str]:
    """Why an exercise is left out of the catalogue, in a sentence, by its slug."""
    said = {slug: _wrong(found) for slug, found in _folders().items()}
    return {slug: why for slug, why in said.items() if why}


def exercise(slug: str) -> Exercise:
    """Whatever state the others are in. Raises NoExercise."""
    found = _folders().get(slug)
    if found is None:
        raise NoExercise(f"There is no exercise {slug!r}: take one of {', '.join(catalogue()) or 'none'}.")
    if why := _wrong(found):
        _say_once(why)
        raise NoExercise(why)
    return found


def there(slug: str) -> Exercise | None:
    """None: its folder is gone or can't be read, and what was handed in of it is still there."""
    try:
        return exercise(slug)
    except NoExercise:
        return None


def _folders() -> dict[str, Exercise]:
    """By slug. Those beside ours are found where `catalogue.__path__` names them."""
    folders = [folder for path in package.__path__ for folder in sorted(Path(path).iterdir())]
    found = [Exercise(folder) for folder in folders if all((folder / part).is_file() for part in PARTS)]
    return {exercise.slug: exercise for exercise in found}


def _wrong(found: Exercise) -> str:
    """Why it can't be read; empty where it can. Its code is somebody's, and may fail in any way."""
    try:
        _ = found.title, found.answers.VERSION, found.version, found.place, found.points
    except Exception as broken:
        return f"The exercise {found.slug!r} can't be read: {type(broken).__name__}: {broken}"
    return ""


@cache
def _say_once(why: str) -> None:
    log.error("%s", why)
