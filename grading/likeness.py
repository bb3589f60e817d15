"""How alike the programs are that were handed in for one exercise: a hint for its instructors, and no verdict.

Compared with each other are all classes to which the exercise is given and which the viewer teaches. Of each student
it is the attempt that is the grade, or the last one where none is judged yet: two whole histories would be noise.
Compared by copydetect, which reads a program as its tokens, without names and comments. Nothing is written to a
disk, nothing leaves the machine, and no points hang on it. What the exercise's statement shows as code is no hint.
"""

import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel

from exercises.handed.answers import Code, NotAnswers, read
from exercises.handed.exercise import Exercise, there
from grading.grade import MADE, counting
from grading.models import Attempt, Submission
from grading.sight import taught

SHORTEST = 25  # tokens' characters in a row that count as the same; shorter ones are everybody's
LONGEST = 8000  # characters of one program that are compared: its beginning
MOST = 120  # students whose programs are compared, the latest to begin: two by two that is 7,140 times
FROM = 50  # per cent of either program that the other has too: below it nothing is told
TOLD = 100  # pairs, the most alike first


@dataclass(frozen=True)
class Pair:
    """One attempt of each of two students. `of_one`, `of_other`: per cent of each program that the other has too."""

    one: Attempt
    other: Attempt
    field: str
    of_one: int
    of_other: int

    @property
    def most(self) -> int:
        return max(self.of_one, self.of_other)


@dataclass(frozen=True)
class Program:
    """The code of one field of an answer; of a field in a list, all rows together. `field`: `steps.statement`."""

    field: str
    language: str
    text: str


def likeness(slug: str, *, by: Any) -> list[Pair]:
    """Nothing of a class that they do not teach. Fifty students with a page of code each take a second; the most that
    is compared, a quarter of a minute.
    """
    found = there(slug)
    if found is None:
        return []
    prints: dict[str, list[tuple[Attempt, Any]]] = defaultdict(list)
    for attempt in _compared(slug, by):
        for program in programs(found, attempt.answers):
            prints[program.field].append((attempt, _print(program, found)))
    pairs = [pair for field, those in prints.items() for pair in _alike(field, those)]
    return sorted(pairs, key=lambda pair: (-pair.most, pair.field, pair.one.pk, pair.other.pk))[:TOLD]


def _compared(slug: str, by: Any) -> Iterable[Attempt]:
    """An attempt of each student; of who is in several classes, one of each."""
    rows = Submission.objects.filter(assignment__exercise=slug, assignment__of__in=taught(by))
    work = rows.select_related("assignment").prefetch_related(*MADE).order_by("-pk")[:MOST]
    chosen = [one for one in map(_graded, work) if one is not None]
    attempts = Attempt.objects.filter(pk__in=[one.pk for one in chosen]).order_by("pk")
    return attempts.select_related("submission__student", "submission__assignment__of")


def _graded(submission: Submission) -> Attempt | None:
    return counting(submission) or max(submission.made.all(), key=lambda one: one.number, default=None)


def programs(found: Exercise, given: Any) -> list[Program]:
    """What is marked as code in these answers; nothing where they were of a version that can't be read any more."""
    try:
        answers = read(found.answers, given)
    except NotAnswers:
        return []
    texts: dict[tuple[str, str], list[str]] = defaultdict(list)
    for field, language, text in _marked(found.answers, answers, (), ()):
        texts[field, language].append(text)
    return [Program(*key, "\n".join(parts)) for key, parts in texts.items()]


def _marked(kind: Any, value: Any, marks: Sequence[Any], path: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """Field, language and text of everything that its type marks as code."""
    if get_origin(kind) is Annotated:
        kind, *more = get_args(kind)
        marks = [*marks, *more]
    if isinstance(value, BaseModel):
        for name, info in type(value).model_fields.items():
            yield from _marked(info.annotation, getattr(value, name), info.metadata, (*path, name))
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _marked(next(iter(get_args(kind)), Any), part, (), path)
    elif isinstance(value, str):
        inner = [mark for one in get_args(kind) if get_origin(one) is Annotated for mark in get_args(one)[1:]]
        for mark in (*marks, *inner):  # inner: of `Annotated[str, Code(…)] | None`
            if isinstance(mark, Code):
                yield ".".join(path), mark.language, value


def _print(program: Program, found: Exercise) -> Any:
    """The library's fingerprint, without what the statement shows: that is everybody's."""
    from copydetect.utils import get_token_coverage

    made = _fingerprint(program.text[:LONGEST], program.language)
    for shown in _shown(found, program.language):
        for known in _fingerprint(shown, program.language).hashes & made.hashes:
            made.hashes.discard(known)
            made.hash_idx.pop(known)
    made.token_coverage = get_token_coverage(made.hash_idx, SHORTEST, len(made.filtered_code))
    return made


def _shown(found: Exercise, language: str) -> list[str]:
    """The statement's fenced blocks of this language."""
    return re.findall(rf"^```{re.escape(language)}\n(.*?)^```", found.statement, re.DOTALL | re.MULTILINE)


def _fingerprint(text: str, language: str) -> Any:
    """Imported late: the library brings a drawing one along. A window of one keeps every fingerprint: which a wider
    one keeps hangs on Python's hashes, which are others in each process.
    """
    from copydetect import CodeFingerprint

    return CodeFingerprint("answer", SHORTEST, 1, language=language, fp=io.StringIO(text))


def _alike(field: str, prints: Sequence[tuple[Attempt, Any]]) -> Iterator[Pair]:
    from copydetect import compare_files

    for (one, first), (other, second) in combinations(prints, 2):
        if one.submission.student_id == other.submission.student_id:
            continue  # in two classes, or for a second year
        if first.hashes.isdisjoint(second.hashes):
            continue
        _, shares, _ = compare_files(first, second)
        of_one, of_other = (min(100, round(100 * float(share))) for share in shares)
        if max(of_one, of_other) >= FROM:
            yield Pair(one, other, field, of_one, of_other)
