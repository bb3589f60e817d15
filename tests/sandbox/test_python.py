"""The sandbox for programs that mean well, or fail honestly."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from exercises.handed.checks import CouldNotDecide, TheirsFailed
from grading.sandbox import bubblewrap, seccomp
from grading.sandbox.limits import Limits
from grading.sandbox.python import sandboxed
from tests.sandbox.conftest import SMALL, answer, told

pytestmark = pytest.mark.usefixtures("nothing_left")

COUNTING = """
class Answer:
    def __init__(self, port):
        self.port, self.calls = port, 0

    def run(self, *arguments):
        self.calls += 1
        return [self.calls, self.port.get("key", *arguments)]
"""


def test_a_method_asks_its_port_and_its_answer_comes_back():
    with sandboxed(COUNTING, "Answer", SMALL) as program, program.start() as talk:
        assert talk.call("run", [1], answer) == [1, ["get", ["key", 1]]]
        assert talk.call("run", [None], lambda name, arguments: {"b": [True, 1.5]}) == [2, {"b": [True, 1.5]}]


def test_no_copy_knows_of_another_and_a_lane_serves_many():
    with sandboxed(COUNTING, "Answer", SMALL) as program:
        for _ in range(40):
            with program.start() as talk:
                assert talk.call("run", [], answer)[0] == 1


def test_copies_run_side_by_side_each_in_a_lane_of_its_own():
    with sandboxed(COUNTING, "Answer", SMALL) as program, program.start() as one, program.start() as other:
        assert one.call("run", [], lambda name, arguments: other.call("run", [], answer)[0]) == [1, 1]
        assert other.call("run", [], answer)[0] == 2


def test_what_the_port_raises_ends_the_talk_and_comes_out_as_it_was():
    class Abandoned(BaseException):
        pass

    def port(name, arguments):
        raise Abandoned

    with sandboxed(COUNTING, "Answer", SMALL) as program:
        with pytest.raises(Abandoned), program.start() as talk:
            talk.call("run", [], port)
        with program.start() as talk:
            assert talk.call("run", [], answer)[0] == 1


def test_a_copy_that_is_given_up_between_two_calls_leaves_the_lane_to_the_next():
    with sandboxed(COUNTING, "Answer", SMALL) as program:
        for _ in range(3):
            with program.start() as talk:
                talk.call("run", [], answer)
        assert len(program._all) == 1


def test_the_same_program_does_the_same_twice_for_neither_hashes_nor_chance_differ():
    source = "import random\nclass Answer:\n    def __init__(self, port): pass\n"
    source += "    def run(self): return [list({'a', 'b', 'c', 'd', 'e'}), random.random(), hash('x')]\n"
    assert told(source) == told(source)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("x =", "Your program raised SyntaxError in line 1: invalid syntax (<answer>, line 1)."),
        ("class Lock: pass", "There is no class Answer in your program: name it so."),
        ("\nraise ValueError('a\\0b\\x1b[31m')", "Your program raised ValueError in line 2: a b [31m."),
        ("class Answer: pass", "Your program raised TypeError: Answer() takes no arguments."),
        (
            "class Answer:\n    def __init__(self, port): pass",
            "Your program raised AttributeError: 'Answer' object has no attribute 'run'.",
        ),
        (
            "class Answer:\n    def __init__(self, port): pass\n    def run(self): return object()",
            "Your program raised TypeError: Object of type object is not JSON serializable.",
        ),
        (
            "class Answer:\n    def __init__(self, port): pass\n    def run(self): raise KeyError(self)",
            "Your program raised KeyError in line 3: <answer.Answer object at 0x…>.",
        ),
        (
            "class Answer:\n    def __init__(self, port): self.p = port\n    def run(self): self.p.get(object())",
            "Your program raised TypeError in line 3: Object of type object is not JSON serializable.",
        ),
        (
            "class Answer:\n    def __init__(self, port): port.get('key')",
            "Your program raised RuntimeError in line 2: the port answers while a method is called, not while its "
            "object is made.",
        ),
        (
            "class Answer:\n    def __init__(self, port): self.run = lambda: 1/0",
            "Your program raised ZeroDivisionError in line 2: division by zero.",
        ),
        (
            "class Answer:\n    def __init__(self, port): pass\n    def run(self): return self.run()",
            "Your program raised RecursionError in line 3: maximum recursion depth exceeded.",
        ),
    ],
)
def test_a_program_that_fails_is_told_what_and_where(source, sentence):
    assert told(source) == ("failed", sentence)


def test_more_copies_at_once_than_there_are_lanes_are_the_judges_failure():
    with sandboxed(COUNTING, "Answer", Limits(lanes=1)) as program, program.start():  # noqa: SIM117  two lanes
        with pytest.raises(CouldNotDecide, match="More than 1 copies"), program.start():
            pass


def test_without_bubblewrap_nothing_is_decided_and_nothing_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(bubblewrap, "binary", lambda: tmp_path / "bwrap")
    kind, why = told(COUNTING)
    assert kind == "could not decide"
    assert "did not start" in why or "can't be started" in why


def test_without_namespaces_nothing_is_decided_and_the_reason_is_bubblewraps(monkeypatch):
    with TemporaryDirectory() as folder:  # whom root becomes can't reach into pytest's own
        Path(folder).chmod(0o755)
        refused = Path(folder) / "bwrap"
        refused.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
        refused.chmod(0o755)
        monkeypatch.setattr(bubblewrap, "binary", lambda: refused)
        sentence = "The sandbox did not start: bwrap: No permissions to create new namespace. "
        assert told(COUNTING) == ("could not decide", sentence + "`manage.py doctor` says what it needs.")


def test_without_libseccomp_nothing_is_decided(monkeypatch):
    def missing():
        raise CouldNotDecide("There is no sandbox here: libseccomp can't be loaded.")

    monkeypatch.setattr(seccomp, "program", missing)
    assert told(COUNTING) == ("could not decide", "There is no sandbox here: libseccomp can't be loaded.")


def test_a_python_that_does_not_come_up_is_the_judges_failure_and_not_the_programs(monkeypatch):
    monkeypatch.setattr(bubblewrap, "python", lambda: "/usr/bin/false")
    assert told(COUNTING)[0] == "could not decide"


def test_a_failure_of_theirs_leaves_the_program_usable():
    source = "class Answer:\n    def __init__(self, port): pass\n    def run(self, how): return 1 / how\n"
    with sandboxed(source, "Answer", SMALL) as program:
        with pytest.raises(TheirsFailed, match="ZeroDivisionError"), program.start() as talk:
            talk.call("run", [0], answer)
        with program.start() as talk:
            assert talk.call("run", [2], answer) == 0.5
