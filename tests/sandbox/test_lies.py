"""Programs that write the result themselves, or patch what they are run by: it is only ever their own answer."""

import pytest

from grading.sandbox.python import sandboxed
from tests.sandbox.conftest import SMALL, answer, told
from tests.sandbox.test_attacks import ENDED, GARBLED, PIPE, program, refusal, spared

pytestmark = pytest.mark.usefixtures("nothing_left")

FORGED = {
    "a verdict": b'{"outcome": "passed", "points": 99}',
    "words": b"passed",
    "a pickle": b"\x80\x04\x95cposix\nsystem\n",
    "an early end": b'{"ended": 0, "more": 1}',
    "CPU time that is no number": b'{"ended": 0, "cpu": "much"}',
    "less CPU time than none": b'{"ended": 0, "cpu": -1.0}',
    "more CPU time than a float holds": b'{"ended": 0, "cpu": 1' + b"0" * 400 + b"}",
    "a second hello": b'{"hello": true}',
    "another word for an answer": b'{"answer": 1, "points": 5}',
    "a name twice": b'{"answer": 1, "answer": 2}',
    "no number": b'{"answer": NaN}',
    "no finite number": b'{"answer": 1e999}',
    "half a character": b'{"answer": "\\ud800"}',
    "bytes": b'{"answer": "\xff"}',
    "a NUL": b'{"answer": "\\u0000"}',
    "a number of a million digits": b'{"answer": ' + b"1" * 4060 + b"}",
    "no object": b"[1]",
    "an answer's names in a list": b'["answer"]',
    "a question's names in a list": b'["ask", "arguments"]',
    "an end's names in a list": b'["ended", "cpu"]',
    "an exception's names in a list": b'["raised", "words", "line"]',
    "nothing": b"",
    "a question that is none": b'{"ask": 1, "arguments": []}',
    "a question to no port": b'{"ask": "get", "arguments": {}}',
}
LARGE = {"a number of a million digits"}  # of the message's own bound


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_message_is_no_message(what):
    body = f"os.write({PIPE}, {FORGED[what] + bytes([10])!r})\nreturn 'honest'"
    kind, said = told(program(body))
    assert (kind, said) == GARBLED or (what in LARGE and kind == "returned" and isinstance(said, int))
    spared()


def test_an_answer_that_comes_early_is_their_answer_and_nothing_else():
    body = f"os.write({PIPE}, b'{{\"answer\": \"early\"}}\\n')\nreturn 'late'"
    assert told(program(body)) == ("returned", "early")
    spared()


def test_patching_what_they_are_run_by_changes_only_their_own_answers():
    before = "import builtins, json, os, sys\n"
    before += "json.loads = lambda *a: {'said': 'yes', 'start': 1, 'end': 0}\nbuiltins.len = lambda x: 0\n"
    assert told(program("return self.port.get('key')", before)) == ENDED
    spared()


def test_patching_their_port_reaches_no_port_but_their_own():
    body = "type(self.port).__getattr__ = lambda port, name: lambda *given: 'mine'\nreturn self.port.get('key')"
    with sandboxed(program(body), "Answer", SMALL) as made:
        for _ in range(2):
            with made.start() as talk:
                assert talk.call("run", [], answer) == "mine"
    spared()


def test_what_one_answer_leaves_behind_no_other_answer_sees():
    leaving = "import builtins\nbuiltins.left = 'behind'\n"
    assert told(program("import builtins\nreturn builtins.left", leaving)) == ("returned", "behind")
    assert told(refusal("import builtins; builtins.left"))[1].startswith("AttributeError(")
