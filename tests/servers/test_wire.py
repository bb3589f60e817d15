"""The one Redis as the locks ask it: over a bare socket, once, and never taking one answer for another's."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from marlow.clock import RealClock, real_sleep
from marlow.servers.redis import EmbeddedRedis
from sweeper.locks.live import LiveRedis
from sweeper.locks.ports import LockUnavailable
from tests.servers.fork import in_a_fork
from tests.servers.scripted import OLD, Scripted

Saying = Callable[..., LiveRedis]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    """A Redis of this test's own."""
    server = EmbeddedRedis(tmp_path).start()
    yield server
    server.stop()


@pytest.fixture
def saying() -> Iterator[Saying]:
    """A port to somebody who answers the questions of one connection after another with these bytes."""
    with ExitStack() as closing:

        def make(*answers: bytes | tuple[bytes, ...], timeout: float = 5.0) -> LiveRedis:
            server = closing.enter_context(Scripted(answers))
            live = LiveRedis(server.url, RealClock(), timeout)
            closing.callback(live.close)
            return live

        yield make


def test_a_key_is_set_or_told(own: EmbeddedRedis) -> None:
    """In one command: a refusal says who has it, and changes nothing."""
    live = LiveRedis(own.url, RealClock())
    assert live.set_or_get("k", "box-b:1", 60) is None
    assert live.set_or_get("k", "box-a:2", 600) == "box-b:1"
    assert own.ask("GET", "k") == "box-b:1"
    assert 50_000 < own.ask("PTTL", "k") <= 60_000
    assert own.ask("INFO", "commandstats")["cmdstat_set"]["calls"] == 2
    live.close()


def test_a_redis_before_seven_is_asked_twice(saying: Saying) -> None:
    """It refuses the words, not the lock; from then on it is asked in those that it knows."""
    live = saying(OLD, b"$-1\r\n", b"$7\r\nbox-b:1\r\n", b"+OK\r\n", b"$-1\r\n", b"$-1\r\n")
    assert live.set_or_get("k", "box-a:2", 60) == "box-b:1"
    assert live.set_or_get("k", "box-a:2", 60) is None
    assert live.set_or_get("k", "box-a:2", 60) == "", "it went between the two: no name, and still a refusal"


def test_another_error_is_no_older_redis(saying: Saying) -> None:
    """A replica, a full memory: an error and never a grant."""
    live = saying(b"-READONLY You can't write against a read only replica.\r\n", b"+OK\r\n")
    with pytest.raises(LockUnavailable, match="read only replica"):
        live.set_or_get("k", "box-a:2", 60)
    assert not live.before_seven


def test_an_answer_in_pieces_is_waited_for(saying: Saying) -> None:
    """And read whole."""
    assert saying((b"$7\r\nbo", b"x-b:", b"1\r\n")).get("k") == "box-b:1"


@pytest.mark.parametrize("said", [b"$1\r\na\r\n$1\r\nb\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_who_says_too_much_or_nonsense_is_not_believed(saying: Saying, said: bytes) -> None:
    """What is left over would be taken for the next question's answer; that one goes over a new connection."""
    live = saying(said, b"$1\r\nc\r\n")
    with pytest.raises(LockUnavailable):
        live.get("k")
    assert live.get("k") == "c"


def test_who_speaks_before_being_asked_is_not_heard(saying: Saying) -> None:
    """Nor is one that has hung up meanwhile asked: another connection is opened, with no error in between."""
    live = saying((b"$1\r\na\r\n", b"$1\r\nb\r\n"), (b"$1\r\nc\r\n", b""), b"$1\r\nd\r\n")
    assert live.get("k") == "a"
    real_sleep(0.2)
    assert live.get("k") == "c"
    real_sleep(0.2)
    assert live.get("k") == "d"


def test_who_says_nothing_costs_one_timeout(saying: Saying) -> None:
    """And the answer that comes too late is nobody's."""
    live = saying((b"$1", b"\r\n", b"a"), b"$1\r\nb\r\n", timeout=1.0)
    with pytest.raises(LockUnavailable, match="Timeout"):
        live.get("k")
    assert live.get("k") == "b"


def test_a_redis_that_came_back_is_asked_without_an_error(own: EmbeddedRedis) -> None:
    """The connection to the one that was killed is not used; scripts go to the new one in full."""
    live = LiveRedis(own.url, RealClock())
    assert live.set_or_get("k", "box-b:1", 60) is None
    assert live.delete_if_equal("k", "box-b:1")
    assert own.running
    own.running.kill()
    own.start()
    assert not live.delete_if_equal("k", "box-b:1"), "it remembers nothing"
    assert "cmdstat_evalsha" not in own.ask("INFO", "commandstats")
    live.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_a_connection_of_its_own(own: EmbeddedRedis) -> None:
    """On a shared one each would read the other's answers."""
    own.ask("MSET", "parent", "p", "child", "c")
    live = LiveRedis(own.url, RealClock())
    assert live.get("parent") == "p"
    wrong: list[str | None] = []
    asking = threading.Thread(
        target=lambda: wrong.extend(found for _ in range(2000) if (found := live.get("parent")) != "p")
    )
    asking.start()
    assert in_a_fork(lambda: all(live.get("child") == "c" for _ in range(500)))
    asking.join()
    assert wrong == []
    live.close()
