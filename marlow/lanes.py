"""Lanes in which cells of the lock table are played side by side: a process each, with a Postgres of its own."""

import queue
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from marlow.clock import monotonic
from marlow.servers.dialogue import Dialogue, Silent
from marlow.servers.hosts import Network
from marlow.servers.launcher import ServerError, free_port
from marlow.servers.postgres import EmbeddedPostgres
from marlow.settings import environment_for

READY_WITHIN = 60.0  # real seconds
CELL_WITHIN = 90.0  # of the longest cell, with room for a slow machine
# How long Postgres keeps the session of a box that vanished: short here, so that one can wait for it.
KEEPALIVES = {
    "MARLOW_TCP_KEEPALIVES_IDLE": "1",
    "MARLOW_TCP_KEEPALIVES_INTERVAL": "1",
    "MARLOW_TCP_KEEPALIVES_COUNT": "2",
    "MARLOW_TCP_USER_TIMEOUT": "3",
}
Told = dict[str, Any]  # what a lane says of a cell: seen, skipped, seconds


class Lane:
    """One lane in `folder`. With `hosts` the first box of every cell runs on a host of its own, to be cut off."""

    def __init__(self, folder: Path, hosts: bool = False) -> None:
        self.folder, self.hosts = folder, hosts
        self.closing = ExitStack()
        self.dialogue: Dialogue | None = None

    def play(self, cell: Sequence[Any]) -> Told:
        """Play one cell. Raises ServerError when the lane can't be started, Silent when it did not reach the end."""
        try:
            self.dialogue = self.dialogue or self._start()
            self.dialogue.say(cell)
            return self.dialogue.hear(CELL_WITHIN)
        except (ServerError, Silent):
            self.stop()
            raise

    def stop(self) -> None:
        self.dialogue = None
        self.closing.close()

    def _start(self) -> Dialogue:
        self.folder.mkdir(parents=True, exist_ok=True)
        address, clients, host = "127.0.0.1", "", []
        if self.hosts:
            network = self.closing.enter_context(Network())
            address, clients, host = network.address, network.subnet, [network.host().name]
        postgres = EmbeddedPostgres(self.folder / "postgres", address=address, clients=clients).start()
        self.closing.callback(postgres.stop)
        environment = environment_for(
            MARLOW_DEMO="1",
            MARLOW_STATE_DIR=str(self.folder),
            MARLOW_TIME_SCALE="1",
            MARLOW_CLOCK_FILE="",
            MARLOW_CLOCK_OFFSET="0",
            DATABASE_URL=postgres.url(),
            PROVIDER_URL=f"http://{address}:{free_port()}",
            **KEEPALIVES,
        )
        command = [sys.executable, "-m", "exercises.proof", "lane", str(self.folder), str(postgres.port), *host]
        dialogue = Dialogue("lane", command, self.folder, environment)
        self.closing.callback(dialogue.end)
        dialogue.hear(READY_WITHIN)
        return dialogue


def play_side_by_side(
    cells: Iterable[tuple[int, Sequence[Any], bool]],
    folder: Path,
    lanes: int,
    done: Callable[[int, Told], None],
) -> None:
    """Play (number, cell, needs hosts) in so many lanes, and one more for those that need hosts.

    `done` is called for each as it ends, in one thread at a time. Everything is stopped when this returns or raises.
    """
    plain: queue.SimpleQueue[tuple[int, Sequence[Any]]] = queue.SimpleQueue()
    hosted: queue.SimpleQueue[tuple[int, Sequence[Any]]] = queue.SimpleQueue()
    for number, cell, hosts in cells:
        (hosted if hosts else plain).put((number, cell))
    one_at_a_time, over = threading.Lock(), threading.Event()

    def work(lane: Lane, waiting: "queue.SimpleQueue[tuple[int, Sequence[Any]]]") -> None:
        while not over.is_set():
            try:
                number, cell = waiting.get_nowait()
            except queue.Empty:
                return
            told = _played(lane, cell)
            with one_at_a_time:
                if not over.is_set():
                    done(number, told)

    made = [(Lane(folder / f"lane-{number}"), plain) for number in range(1, lanes + 1)]
    made.append((Lane(folder / "lane-hosts", hosts=True), hosted))
    workers = [threading.Thread(target=work, args=each, daemon=True) for each in made]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        over.set()
        for lane, _ in made:
            lane.stop()


def _played(lane: Lane, cell: Sequence[Any]) -> Told:
    """A cell that could not be played for want of a server is skipped; one that failed is seen to have failed."""
    began = monotonic()
    try:
        return lane.play(cell)
    except ServerError as missing:
        return {"seen": None, "skipped": str(missing), "seconds": 0.0}
    except Silent as failed:
        return {"seen": {"error": str(failed)}, "skipped": "", "seconds": round(monotonic() - began, 2)}
