"""The form as a file: whatever an exercise's type asks for is on it, described and not answered."""

import tomllib
from types import SimpleNamespace
from typing import Any

import pytest

from exercises.handed.answers import NotAnswers, read
from exercises.handed.exercise import Exercise, catalogue
from exercises.handed.paper import on_paper
from grading import forms
from grading.blank import paper
from grading.entries import everywhere
from tests.grading.test_forms import Toy

ALL = list(catalogue().values())


def problems(of: Exercise, given: Any) -> set[str]:
    with pytest.raises(NotAnswers) as wrong:
        read(of.answers, given)
    return set(wrong.value.problems)


@pytest.mark.parametrize("of", ALL, ids=lambda one: one.slug)
def test_a_blank_names_and_describes_every_field_and_answers_none(of, tmp_path):
    text = paper(of)
    (file := tmp_path / "answer.toml").write_text(text)
    found, given = on_paper(file)
    assert found.slug == of.slug
    needed = {name for name, field in of.answers.model_fields.items() if field.is_required()}
    assert {path.partition(".")[0] for path in problems(of, given)} == needed
    for node in everywhere(forms.blank(of.answers).nodes):
        assert node.label.rstrip(".") in text
        assert all(line in text for line in node.help.splitlines())
    for known in of.known():
        for name in known.answers:
            assert f"{name} =" in text or f"answers.{name}]" in text


def test_each_kind_of_field_has_its_place():
    """Numbers, ticks and what may be left out have no empty value in TOML: they are behind a mark."""
    text = paper(SimpleNamespace(slug="toy", answers=Toy))
    assert tomllib.loads(text)["answers"] == {
        "claim": "",
        "why": "",
        "where": {"box": ""},
        "steps": [{"statement": ""}],
    }
    everything = tomllib.loads(
        "\n".join(line.removeprefix("# ") if " = " in line else line for line in text.splitlines())
    )
    assert set(everything["answers"]) > {"name", "words"}
    for told in (
        "# copies =",
        "A whole number from 0 to 99.",
        'One of: "yes", "no".',
        "true or false.",
        "One of: 1, 2",
    ):
        assert told in text
