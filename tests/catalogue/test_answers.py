"""What is no answer is refused with a sentence for each field, whatever the type leaves open."""

from typing import Any

import pytest

from exercises.handed.answers import MOST, Answers, NotAnswers, read


class Open(Answers):
    """As little typed as an exercise's answers can be."""

    text: str
    more: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"text": "a\x00b"}, "NUL"),
        ({"text": "a\ud800b"}, "half a character"),
        ({"text": "", "more": {"deep": [{"deeper": "\udfff"}]}}, "half a character"),
        ({"text": "", "more": {"\ud800": 1}}, "half a character"),
        ({"text": "", "more": {"a\x00": 1}}, "NUL"),
        ({"text": "x" * (MOST + 1)}, "characters long"),
    ],
)
def test_a_text_that_no_database_keeps_is_refused(given, said):
    with pytest.raises(NotAnswers, match=said):
        read(Open, given)


def test_every_character_that_is_whole_is_kept():
    text = "é \U0001f4da \ufffd \u2028 \x7f"
    assert read(Open, {"text": text}).model_dump()["text"] == text
