"""What a student hands in: typed, versioned, and refused with a sentence for each field that is wrong."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

MOST = 64 * 1024  # characters of an answer, as canonical JSON
ALSO_WRONG = {
    "missing": "This is missing: fill it in.",
    "extra_forbidden": "There is no such field: leave it out.",
    "too_short": "There are too few of these: add what is missing.",
    "too_long": "There are too many of these: leave some out.",
    "string_pattern_mismatch": "This is not written as it is asked for: look at the example beside the field.",
}


@dataclass(frozen=True)
class Code:
    """Marks a text (`Annotated[str, Code("python")]`) as a program, for the form's editor and for likeness."""

    language: str


class Part(BaseModel):
    """One thing of several that an answer lists. Nothing is taken that was not asked for, and nothing is altered."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)  # JSON has no NaN


class Answers(Part):
    """Base of every exercise's answers. A field's title and description are its label and its help in the form.

    `VERSION` rises when an answer of before can't be read any more; it is stored with each attempt.
    """

    VERSION: ClassVar[int] = 1


class NotAnswers(ValueError):
    """What was handed in is no answer to this exercise. `problems`: a sentence by field, `steps.0.statement`."""

    def __init__(self, problems: dict[str, str]) -> None:
        super().__init__("; ".join(f"{field}: {sentence}" for field, sentence in problems.items()))
        self.problems = problems


def read(answers: type[Answers], given: Any) -> Answers:
    """Raises NotAnswers."""
    try:
        found = answers.model_validate(given)
    except ValidationError as wrong:
        raise NotAnswers(problems(wrong)) from wrong
    except RecursionError as deep:
        raise NotAnswers({"answers": "This is nested too deeply: hand in what the form asks for."}) from deep
    for text in _texts(found.model_dump()):
        if "\x00" in text:
            raise NotAnswers({"answers": "This has a NUL character in it: take it out."})
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise NotAnswers({"answers": "This has half a character in it (a surrogate alone): take it out."})
    if (length := len(found.model_dump_json())) > MOST:
        raise NotAnswers({"answers": f"This is {length:,} characters long: {MOST:,} are taken at the most."})
    return found


def _texts(value: Any) -> Iterator[str]:
    """Every text of it. Postgres keeps neither a NUL nor half a character, neither in text nor in JSON."""
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _texts(part)
    if isinstance(value, str):
        yield value


def problems(wrong: ValidationError) -> dict[str, str]:
    """One sentence a field."""
    found: dict[str, str] = {}
    for error in wrong.errors(include_url=False, include_context=False, include_input=False):
        field = ".".join(map(str, error["loc"])) or "answers"
        said = str(error["msg"]).removeprefix("Value error, ").replace("Input should", "This should").rstrip(".")
        found.setdefault(field, ALSO_WRONG.get(error["type"], f"{said}."))
    return found
