"""One lane of cells: a process that plays those it is sent, one after another, in a database of its own.

Cells come in as lines of JSON, `[lock, fault, settle, stop]`, and go out as a line each: `seen`, `skipped` (why it
could not be played here) and `seconds`.
"""

import json
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from shutil import rmtree
from typing import Any, TextIO
from urllib.parse import urlsplit

import httpx
from django.conf import settings
from django.core.management import call_command
from django.db import connections

from exercises.proof.cells import Cell
from exercises.proof.crew import BoxProcess
from exercises.proof.director import FIRST, QUESTION, SECOND, Director
from exercises.proof.gate import hang_gates
from exercises.proof.places import Places
from exercises.proof.plays import PLAYS, settings_for
from exercises.proof.shopfloor import furnish
from marlow.clock import monotonic
from marlow.servers.hosts import Host
from marlow.servers.launcher import ServerError, launch
from marlow.servers.postgres import EmbeddedPostgres

LET_GO_WITHIN = 6.0  # real seconds until a vanished box's session is over, by the keepalives that lanes are given


def play_all(orders: TextIO, answers: TextIO, folder: str, port: int, host: str = "") -> None:
    """Until the orders end. `host` names the network namespace in which the first box is to run, if any."""
    with Lane(Path(folder), port, Host(host, "") if host else None) as lane:
        answers.write(json.dumps({"ready": True}) + "\n")
        answers.flush()
        for line in orders:
            lock, fault, settle, stop = json.loads(line)
            answers.write(json.dumps(lane.play(Cell(lock, fault, settle, stop))) + "\n")
            answers.flush()


class Lane:
    """The lane's provider and its two boxes, which stay from cell to cell."""

    def __init__(self, folder: Path, port: int, host: Host | None) -> None:
        self.folder, self.host = folder, host
        address = urlsplit(settings.DATABASE_URL).hostname or "127.0.0.1"
        self.postgres = EmbeddedPostgres(folder / "postgres", port=port, address=address)
        self.closing = ExitStack()
        self.boxes: dict[str, BoxProcess] = {}

    def __enter__(self) -> "Lane":
        call_command("migrate", verbosity=0)
        hang_gates()
        self.closing.callback(self.postgres.stop)  # if it is ours by now: a cell may have restarted it
        self._start_provider()
        return self

    def __exit__(self, *error: object) -> None:
        self._end_boxes()
        connections.close_all()
        self.closing.close()

    def play(self, cell: Cell) -> dict[str, Any]:
        """What was seen, or why it could not be played; an error is told as one and costs the boxes their lives."""
        began = monotonic()
        try:
            return {"seen": self._play(cell), "skipped": "", "seconds": round(monotonic() - began, 2)}
        except ServerError as missing:
            return {"seen": None, "skipped": str(missing), "seconds": 0.0}
        except Exception as error:
            self._end_boxes()
            connections.close_all()
            return {
                "seen": {"error": f"{type(error).__name__}: {error}"[:800]},
                "skipped": "",
                "seconds": round(monotonic() - began, 2),
            }

    def _play(self, cell: Cell) -> dict[str, Any]:
        servers = self.folder / "servers"
        rmtree(servers, ignore_errors=True)
        if self.host:
            self.host.mend()
        with closing(Places(cell, servers, self.postgres, self.host, LET_GO_WITHIN)) as places:
            places.open()
            furnish()
            first, second = self._box(FIRST), self._box(SECOND)
            sweeping = {
                **settings_for(cell.fault),
                **places.addresses,
                "SWEEPER_LOCK": cell.lock,
                "SWEEPER_SETTLE": cell.settle,
                "SWEEPER_QUESTION": QUESTION,
                "SWEEPER_STOP_ON_LOST_LEASE": cell.stop,
            }
            director = Director(cell, first, second, sweeping, self._control)
            director.answers_take(0)
            PLAYS[cell.fault](director, places)
            return director.verdict()

    def _box(self, name: str) -> BoxProcess:
        """The box of that name, started where it is not alive."""
        inside = ["ip", "netns", "exec", self.host.name] if self.host and name == FIRST else []
        box = self.boxes.get(name)
        if box is None or not box.dialogue.alive():
            box = self.boxes[name] = BoxProcess(name, self.folder, inside=inside)
        return box

    def _end_boxes(self) -> None:
        while self.boxes:
            self.boxes.popitem()[1].dialogue.end()

    def _start_provider(self) -> None:
        url = urlsplit(settings.PROVIDER_URL)
        command = [sys.executable, "-m", "shop.provider.server", "--host", str(url.hostname), "--port", str(url.port)]
        command += ["--store", str(self.folder / "provider.sqlite3")]
        running = launch("provider", command, self.folder, self._provider_answers, seconds=30)
        self.closing.callback(running.stop)

    def _provider_answers(self) -> bool:
        try:
            return httpx.get(f"{settings.PROVIDER_URL}/healthz", timeout=2).status_code == 200
        except httpx.HTTPError:
            return False

    def _control(self, body: dict[str, Any]) -> None:
        httpx.put(f"{settings.PROVIDER_URL}/control", json=body, timeout=5).raise_for_status()
