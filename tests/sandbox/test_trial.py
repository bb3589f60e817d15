"""What `doctor` says of the sandbox."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from grading.sandbox import bubblewrap, trial
from grading.sandbox.cgroup import Cgroup
from marlow import doctor
from marlow.doctor import State


def found() -> list[tuple[State, str, str]]:
    return [(finding.state, finding.found, finding.do) for finding in doctor.sandbox()]


@pytest.fixture
def saying(monkeypatch):
    """A bubblewrap that says this and ends."""
    with TemporaryDirectory() as folder:  # whom root becomes can't reach into pytest's own
        Path(folder).chmod(0o755)
        refused = Path(folder) / "bwrap"
        monkeypatch.setattr(bubblewrap, "binary", lambda: refused)

        def says(words: str) -> None:
            refused.write_text(f'#!/bin/sh\necho "bwrap: {words}" >&2\nexit 1\n')
            refused.chmod(0o755)

        yield says


def test_here_it_is_started_and_starts():
    assert found()[0] == (State.OK, "starts (bubblewrap, namespaces, seccomp)", "")


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("Can't mount proc on /newroot/proc: Operation not permitted", trial.MASKED),
        ("cannot open /proc/sys/user/max_user_namespaces: Read-only file system", trial.MASKED),
        ("No permissions to create new namespace", trial.FORBIDDEN),
        ("setting up uid map: Permission denied", trial.FORBIDDEN),
        ("loopback: Failed RTM_NEWADDR: Operation not permitted", trial.FORBIDDEN),
    ],
)
def test_where_it_does_not_start_the_reason_stands_beside_what_to_do(saying, words, advice):
    saying(words)
    does_not = "does not start (answers in Python can't be judged here)"
    assert found() == [(State.NOTE, does_not, f"The sandbox did not start: bwrap: {words}. {advice}")]


def test_what_nobody_has_met_yet_is_told_as_bubblewrap_said_it(saying):
    saying("a bad day")
    assert found()[0][2] == "The sandbox did not start: bwrap: a bad day."


def test_without_a_cgroup_it_says_what_is_not_bounded(monkeypatch):
    monkeypatch.setattr(trial, "cgroup", lambda limits: Cgroup(()))
    assert found()[1] == (State.NOTE, trial.UNBOUND, "Let the judging worker write to a cgroup.")
