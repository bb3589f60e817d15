"""The connections to five real Redises: all asked at once, whatever some of them do."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from marlow.clock import monotonic, real_sleep, wait_until
from marlow.servers.redis import EmbeddedRedis
from sweeper.locks.base import Released
from sweeper.locks.live import Addresses, LiveRedisNodes, open_ports
from sweeper.locks.ports import LockUnavailable
from sweeper.locks.redlock import Redlock
from tests.servers.five import AMPLE, KEY, Fast, Five, leased, over
from tests.servers.scripted import OLD, Scripted

Make = Callable[..., LiveRedisNodes]


class TestABadNode:
    def test_that_is_frozen_costs_one_timeout_however_many_there_are(self, five: Five, nodes: Make) -> None:
        """Two of them, for acquire and for release: one after the other they would cost twice as much."""
        lock = Redlock(over(nodes(timeout=1.5)))
        leased(lock.acquire("sweeper", 60)).release()
        five.freeze(0, 1)
        demand_one_timeout(lock)

    def test_behind_a_black_hole_costs_one_timeout_however_many_there_are(self, five: Five, nodes: Make) -> None:
        """Two addresses that swallow whatever is sent to them: they are connected to side by side."""
        with black_hole() as one, black_hole() as other:
            lock = Redlock(over(nodes(timeout=1.5, urls=[one, other, *five.urls[2:]])))
            for _ in range(2):
                demand_one_timeout(lock)

    def test_that_is_slow_does_not_give_the_others_more_time(self, five: Five, nodes: Make) -> None:
        """One deadline for all: a node that answers late does not start the time of a frozen one anew."""
        with answering(after=1.6) as slow:
            mine = nodes(timeout=2.0, urls=[slow, *five.urls[1:]])
            five.freeze(1)
            began = monotonic()
            assert mine.set_or_get(KEY, "x", 60) == ["x", None, "x", "x", "x"]
            assert monotonic() - began < 3.2

    @pytest.mark.parametrize("frozen", [1, 3])
    def test_s_late_set_was_released_when_it_lands(self, five: Five, nodes: Make, frozen: int) -> None:
        """A SET that timed out is run when the server wakes up, and what was sent after it removes the key again. The
        script goes there in full: nobody hears the server say that it does not know it.
        """
        five.freeze(*range(frozen))
        lock = Redlock(over(nodes(timeout=1.0)))
        if frozen < 3:
            assert leased(lock.acquire("sweeper", 60)).release().released is Released.OURS
        else:
            with pytest.raises(LockUnavailable):
                lock.acquire("sweeper", 60)
        five.thaw()
        assert five.come_to_run("eval", 1)
        assert five.ran("set") == [1] * 5
        assert five.values() == [None] * 5

    def test_s_late_reply_is_never_the_next_question_s_answer(self, five: Five, nodes: Make) -> None:
        """The connection on which it may still come is dropped."""
        five.ask("MSET", "first", "1", "second", "2")
        mine = nodes(timeout=0.5)
        assert mine.set_or_get("first", "mine", 60) == ["1"] * 5
        five.freeze(0)
        assert mine.set_or_get("first", "mine", 60) == [None, "1", "1", "1", "1"]
        assert mine.set_or_get("first", "mine", 60) == [None, "1", "1", "1", "1"]
        five.thaw()
        assert five.come_to_run("set", 3)
        mine.timeout = AMPLE
        assert mine.set_or_get("second", "mine", 60) == ["2"] * 5

    def test_s_late_reply_is_no_answer_while_the_next_question_waits_either(self, five: Five, nodes: Make) -> None:
        """It wakes up when it has been asked twice, and says both."""
        five.ask("MSET", "first", "1", "second", "2")
        mine = nodes(timeout=0.5)
        assert mine.set_or_get("first", "mine", 60) == ["1"] * 5
        five.freeze(0)
        assert mine.set_or_get("first", "mine", 60) == [None, "1", "1", "1", "1"]
        mine.timeout = 30.0
        with ThreadPoolExecutor() as beside:
            asking = beside.submit(mine.set_or_get, "second", "mine", 60)
            assert wait_until(lambda: five.ran("set", of=slice(1, None)) == [3] * 4, 5), "it was asked"
            five.thaw()
            assert asking.result() == ["2"] * 5

    def test_that_comes_back_is_asked_again(self, five: Five, nodes: Make) -> None:
        """By the next question, on a connection of its own."""
        mine = nodes()
        five.kill(0)
        assert mine.set_or_get(KEY, "x", 60) == [None, "x", "x", "x", "x"]
        five.servers[0].start()
        assert mine.delete_if_equal(KEY, "x") == [False, True, True, True, True]

    def test_that_answers_with_an_error_gave_no_answer(self, five: Five, nodes: Make) -> None:
        """No room, a replica, a password: no yes and no no."""
        five.servers[0].ask("RPUSH", KEY, "a list")
        assert nodes().delete_if_equal(KEY, "x") == [None, False, False, False, False]

    def test_that_is_older_than_seven_has_all_asked_in_its_words(self, five: Five, nodes: Make) -> None:
        """Those that had understood the first question have the value already, and it is ours."""
        held = b"$1\r\nx\r\n"
        with Scripted((OLD, b"+OK\r\n", held, b"$-1\r\n", held)) as old:
            mine = nodes(urls=[old.url, *five.urls[1:]])
            assert mine.set_or_get(KEY, "x", 60) == ["x"] * 5
            assert mine.set_or_get(KEY, "y", 60) == ["x"] * 5

    @pytest.mark.parametrize("secret", ["", ":open%20sesame@"])
    def test_is_called_and_asked_once(self, five: Five, nodes: Make, secret: str) -> None:
        """redis-py's clients retry by themselves, ten times and with pauses; what ours stands on does not."""
        with hanging_up() as (address, calls):
            mine = nodes(urls=[f"redis://{secret}{address}/0", *five.urls[1:]])
            assert mine.set_or_get(KEY, "x", 60) == [None, "x", "x", "x", "x"]
            assert len(calls) == 1

    def test_that_asks_for_a_password_and_a_number_gets_both(self, five: Five, nodes: Make, tmp_path: Path) -> None:
        """In the address, as everywhere."""
        server = EmbeddedRedis(tmp_path, name="guarded").start()
        server.ask("CONFIG", "SET", "requirepass", "open sesame")
        address = f"127.0.0.1:{server.port}"
        assert nodes(urls=[f"redis://:open%20sesame@{address}/3"]).set_or_get(KEY, "x", 60) == ["x"]
        assert nodes(urls=[f"redis://:open%20sesame@{address}/4"]).set_or_get(KEY, "y", 60) == ["y"]
        assert nodes(urls=[f"redis://:open%20sesame@{address}/3"]).set_or_get(KEY, "y", 60) == ["x"]
        assert nodes(urls=[f"redis://:closed@{address}/3"]).set_or_get(KEY, "y", 60) == [None]
        server.stop()


class TestTheConnections:
    def test_send_durations_in_real_milliseconds(self, five: Five, nodes: Make) -> None:
        """At twenty times the speed a lease of 120 lives for six real seconds."""
        nodes(clock=Fast()).set_or_get(KEY, "x", 120)
        assert all(3000 < lives <= 6000 for lives in five.lives())

    def test_may_be_shared_by_threads(self, five: Five, nodes: Make) -> None:
        """A renewal beside the run: every question gets the answers to itself."""
        five.ask("MSET", "0", "0", "1", "1", "2", "2", "3", "3")
        mine, wrong = nodes(), []

        def ask(number: str) -> None:
            wrong.extend(
                answer for _ in range(200) if (answer := mine.set_or_get(number, "mine", 60)) != [number] * 5
            )

        threads = [threading.Thread(target=ask, args=(str(number),)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []

    @pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # the fork is what is tested
    def test_are_not_a_forked_child_s(self, five: Five, nodes: Make) -> None:
        """It opens its own: on shared ones each would read the other's answers."""
        five.ask("MSET", "parent", "p", "child", "c")
        mine = nodes()
        assert mine.set_or_get("parent", "mine", 60) == ["p"] * 5
        child = os.fork()
        if child == 0:
            right = False
            try:
                right = all(mine.set_or_get("child", "mine", 60) == ["c"] * 5 for _ in range(200))
            finally:
                os._exit(0 if right else 1)
        assert all(mine.set_or_get("parent", "mine", 60) == ["p"] * 5 for _ in range(200))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert mine.set_or_get("parent", "mine", 60) == ["p"] * 5

    def test_are_opened_for_a_run_and_closed_behind_it(self, five: Five, nodes: Make) -> None:
        """Live ports of this lock have them."""
        plain = over(nodes())
        with open_ports("redlock", plain, Addresses(redlock=tuple(five.urls)), 60) as opened:
            opened.nodes.delete_if_equal(KEY, "x")
            assert clients(five) == [2] * 5
        assert wait_until(lambda: clients(five) == [1] * 5, 5)


def demand_one_timeout(lock: Redlock) -> None:
    """Acquire and release are one question each, and a node's timeout is 1.5 s: two of them would be 3."""
    began = monotonic()
    lease = leased(lock.acquire("sweeper", 60))
    acquired = monotonic()
    assert lease.release().released is Released.OURS
    assert acquired - began < 2.8
    assert monotonic() - acquired < 2.8


def clients(five: Five) -> list[int]:
    """How many each of them has, the one that asks included."""
    return [int(told["connected_clients"]) for told in five.ask("INFO", "clients")]


@contextmanager
def black_hole() -> Iterator[str]:
    """An address that swallows every attempt to connect: nobody takes calls, and the line is full."""
    with ExitStack() as closing:
        listening = closing.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):
            caller = closing.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(listening.getsockname())
        yield f"redis://127.0.0.1:{listening.getsockname()[1]}/0"


@contextmanager
def taking_calls(take: Callable[[socket.socket], object]) -> Iterator[str]:
    """An address where somebody takes each call, does this with it, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    call, _ = listening.accept()
                    with call:
                        take(call)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextmanager
def hanging_up() -> Iterator[tuple[str, list[socket.socket]]]:
    """An address where nobody says anything, and the calls that were taken there."""
    calls: list[socket.socket] = []
    with taking_calls(calls.append) as address:
        yield address, calls


@contextmanager
def answering(after: float) -> Iterator[str]:
    """A node that has no such key at its first question after so many real seconds, and is gone after that."""

    def answer(call: socket.socket) -> None:
        if call.recv(1000):
            real_sleep(after)
            call.sendall(b"$-1\r\n")

    with taking_calls(answer) as address:
        yield f"redis://{address}/0"
