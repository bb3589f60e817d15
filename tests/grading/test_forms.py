"""The form that is made from a type: each kind of field, rows without JavaScript, and whatever a browser may send."""

from datetime import time
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from exercises.handed.answers import Answers, Code, NotAnswers, Part, read
from exercises.handed.exercise import catalogue
from grading import forms
from grading.entries import Entry, Rows, everywhere

KNOWN = [(one, known) for one in catalogue().values() for known in one.known()]


class Step(Part):
    statement: Annotated[str, Code("sql")]
    number: int = Field(ge=1, le=6, strict=True, default=1)
    zero: Literal["stop", "go on"] = "stop"
    sure: bool = False


class Where(Part):
    box: Literal["box A", "box B"]
    at: time | None = None


class Toy(Answers):
    """One of everything."""

    claim: Literal["yes", "no"] = Field(title="Is it so?", description="As the run shows.")
    one_of_many: Literal[1, 2, 3, 4, 5, 6, 7]
    copies: Annotated[int, Field(ge=0, le=99, strict=True)]
    share: float | None = None
    why: str = Field(max_length=2000)
    name: str = "nobody"
    agreed: bool = True
    source: Annotated[str, Code("python")] | None = None
    where: Where
    steps: list[Step] = Field(min_length=1)
    words: list[str] = []
    named: dict[str, int] = {}


FULL = {
    "claim": "yes",
    "one_of_many": 7,
    "copies": 3,
    "share": 0.5,
    "why": "Because.\nSo.",
    "name": "",
    "agreed": False,
    "source": "class Lock:\n    pass\n",
    "where": {"box": "box B", "at": "21:52:00"},
    "steps": [
        {"statement": "select 1", "number": 2, "zero": "go on", "sure": True},
        {"statement": "select 2", "number": 3, "zero": "stop", "sure": False},
    ],
    "words": ["a", "b"],
    "named": {"x": 1},
}


def posted(form: forms.Form) -> dict[str, str]:
    """What a browser sends of a form as it stands."""
    return {forms.PREFIX + name: text for name, text in forms._texts(form.nodes, leave_out="")}


def at(form: forms.Form, path: str) -> Any:
    return next(node for node in everywhere(form.nodes) if node.path == path)


def test_every_kind_of_field_gets_its_input():
    form = forms.blank(Toy)
    kinds = {node.path: node.kind for node in everywhere(form.nodes)}
    assert kinds["claim"] == "choice"
    assert kinds["one_of_many"] == "pick"
    assert kinds["copies"] == "whole"
    assert (kinds["share"], kinds["why"], kinds["name"], kinds["agreed"]) == ("number", "text", "line", "tick")
    assert (kinds["source"], kinds["where.at"], kinds["named"]) == ("code", "line", "json")
    assert (kinds["where"], kinds["steps"], kinds["steps.0"]) == ("group", "rows", "group")
    assert (kinds["steps.0.statement"], kinds["steps.0.zero"], kinds["words.0"]) == ("code", "pick", "line")


def test_labels_help_bounds_and_languages_come_from_the_type():
    form = forms.blank(Toy)
    assert (at(form, "claim").label, at(form, "claim").help) == ("Is it so?", "As the run shows.")
    assert at(form, "one_of_many").label == "One of many"
    assert (at(form, "copies").least, at(form, "copies").most) == (0, 99)
    assert at(form, "steps.1.statement").language == "sql"
    assert (at(form, "copies").needed, at(form, "name").needed, at(form, "source").needed) == (True, False, False)
    assert (at(form, "name").text, at(form, "agreed").text, at(form, "steps.0.number").text) == ("nobody", "on", "1")


def test_what_a_filled_form_sends_is_what_was_handed_in():
    form = forms.filled(Toy, read(Toy, FULL).model_dump(mode="json"))
    assert read(Toy, forms.handed(Toy, posted(form)).answers()) == read(Toy, FULL)


@pytest.mark.parametrize(("exercise", "known"), KNOWN, ids=[f"{one.slug} {known.name}" for one, known in KNOWN])
def test_every_known_answer_can_be_handed_in_by_the_form(exercise, known):
    form = forms.filled(exercise.answers, known.answers)
    handed = forms.handed(exercise.answers, posted(form)).answers()
    assert read(exercise.answers, handed) == read(exercise.answers, known.answers)


def test_empty_rows_are_not_handed_in_and_problems_keep_to_their_rows():
    sent = posted(forms.blank(Toy))
    sent["answers.steps.2.statement"], sent["answers.steps.2.number"] = "select 1", "77"
    form = forms.handed(Toy, sent)
    assert form.answers()["steps"] == [{"statement": "select 1", "number": 77, "zero": "stop", "sure": False}]
    with pytest.raises(NotAnswers) as wrong:
        read(Toy, form.answers())
    form.tell(wrong.value.problems)
    assert "less than or equal to 6" in at(form, "steps.0.number").problem
    assert at(form, "claim").problem == "This is missing: fill it in."
    assert at(form, "where.box").problem == "This is missing: fill it in."
    assert form.loose == []


def test_a_row_more_and_a_row_less_lose_nothing_of_the_others():
    sent = posted(forms.filled(Toy, FULL))
    longer = forms.with_row(Toy, sent, "steps")
    assert len(at(longer, "steps").rows) == 3
    assert at(longer, "steps.2.statement").focus
    assert at(longer, "steps.1.statement").text == "select 2"
    shorter = forms.without_row(Toy, posted(longer), "steps.0")
    assert [row["statement"] for row in shorter.answers()["steps"]] == ["select 2"]
    assert at(shorter, "steps.0.number").text == "3"
    assert shorter.answers()["words"] == ["a", "b"]
    assert shorter.answers()["agreed"] is False


def test_rows_end_somewhere_and_a_row_that_is_not_there_is_no_row():
    sent = {**posted(forms.filled(Toy, FULL)), "answers.steps.rows": "9999"}
    form = forms.with_row(Toy, sent, "steps")
    assert len(at(form, "steps").rows) == forms.MOST_ROWS
    assert at(form, "steps").full
    for path in ("nothing", "steps.99", "", "steps.x", "claim"):
        assert forms.without_row(Toy, sent, path).answers()["claim"] == "yes"
        assert forms.with_row(Toy, sent, path).answers()["claim"] == "yes"


def test_nothing_typed_is_lost_when_it_is_wrong():
    sent = {
        **posted(forms.filled(Toy, FULL)),
        "answers.copies": "many",
        "answers.named": "{broken",
        "answers.claim": "?",
    }
    form = forms.handed(Toy, sent)
    with pytest.raises(NotAnswers) as wrong:
        read(Toy, form.answers())
    form.tell(wrong.value.problems)
    assert {node.path for node in form.problems} == {"copies", "named", "claim"}
    assert (at(form, "copies").text, at(form, "named").text) == ("many", "{broken")
    assert at(form, "source").text == FULL["source"]


def test_a_problem_of_no_field_is_told_above_them():
    form = forms.blank(Toy)
    form.tell({"answers": "This is too long.", "steps.0.statement.function-after": "No SQL.", "elsewhere.1": "Odd."})
    assert form.loose == ["This is too long.", "Odd."]
    assert at(form, "steps.0.statement").problem == "No SQL."


def test_line_ends_are_those_of_programs():
    form = forms.handed(Toy, {"answers.source": "a\r\nb\r\n"})
    assert form.answers()["source"] == "a\nb\n"


def test_answers_of_another_version_fill_what_still_fits():
    form = forms.filled(Toy, {"claim": "yes", "steps": "once a text", "where": 3, "gone": [1]})
    assert at(form, "claim").text == "yes"
    assert forms.filled(Toy, ["no dict"]).answers().keys() == forms.blank(Toy).answers().keys()


paths = st.sampled_from([node.path for node in everywhere(forms.blank(Toy).nodes)] + ["steps.rows", "words.rows", ""])
texts = st.one_of(
    st.text(max_size=30), st.sampled_from(["-1", "1e9", "9" * 400, "NaN", "\x00", "[" * 5000, "٣", "²"])
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(paths.map(lambda path: forms.PREFIX + path), texts, max_size=12), paths)
def test_whatever_is_sent_is_read_or_refused_with_sentences(sent, path):
    for form in (forms.handed(Toy, sent), forms.with_row(Toy, sent, path), forms.without_row(Toy, sent, path)):
        try:
            read(Toy, form.answers())
        except NotAnswers as wrong:
            form.tell(wrong.problems)
            assert form.problems or form.loose
        assert all(isinstance(node, Entry | Rows) or node.kind == "group" for node in everywhere(form.nodes))
