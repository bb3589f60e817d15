"""What an advisory lock costs where connections are scarce."""

from pathlib import Path

from exercises.scenarios.crowd import Crowd, gather


def test_two_pods_of_twelve_find_room_beside_ninety_six_of_a_hundred_connections(tmp_path: Path) -> None:
    """Two connections a run, for as long as it lasts: the third pod's are one too many."""
    said: list[str] = []
    came = gather(tmp_path, said.append)
    assert came == Crowd(served=2, refusal=came.refusal)
    assert "too many clients" in came.refusal
    assert said[0] == "The application pools hold 96 of 100 connections."
