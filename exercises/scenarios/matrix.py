"""The lock table in the laboratory: every cell that `manage.py prove` plays on real servers, in virtual time.

The cells, what is expected of them, how they are read, and the durations are the live ones'. The faults are the
laboratory's own, those of its menu where it has them. Each strikes where the live one does, at a place that is found
by what the first box does: it waits for the provider's answer, or it has looked at its lease for the last time and
stands before its write.
"""

from collections.abc import Callable, Container
from typing import Any

from exercises.lab.database import Database
from exercises.lab.scheduler import LabError
from exercises.proof.cells import Cell, table
from exercises.proof.director import FIRST, SECOND
from exercises.proof.places import STEP
from exercises.proof.plays import BEFORE_WRITE, GRACE, IN_TIME, LATE, TTL
from exercises.scenarios.boxes import Unplayable
from exercises.scenarios.faults import Kind
from exercises.scenarios.scene import Play, Scene

# Cells of the live table that have no counterpart here, and why.
WITHOUT = {
    ("leader-loss", "etcd"): "the laboratory's etcd answers or does not: it has no members, of which one could lead",
    (
        "pooler",
        "postgres-advisory",
    ): "every run of the laboratory has a session of its own, and nothing stands between",
    ("connection-ended", "redis-token"): "the laboratory's Redis is asked without a connection that could end",
}


def calm(scene: Scene) -> None:
    scene.answers_take(0.4)
    scene.begin()
    scene.wait_until_it_waits()
    scene.knock()
    scene.finish(FIRST, SECOND)


def overrun(scene: Scene) -> None:
    """The first box's answer comes when its lease has run out and the second box is at work."""
    scene.answers_take(LATE)
    scene.begin()
    scene.wait_until_it_waits()
    scene.answers_take(IN_TIME)
    scene.knock(LATE - 0.4)
    scene.finish(FIRST, SECOND)


def pause(scene: Scene) -> None:
    """It stands still between the look and the write, until the lease is over and the second is about to write."""
    first, second = (scene.gate(*place) for place in BEFORE_WRITE)
    scene.begin()
    scene.demand(first)
    scene.stop()
    first.open()
    if scene.knock(TTL + GRACE):
        scene.come(second)
    scene.go_on()
    scene.finish(FIRST)
    second.open()
    scene.finish(SECOND)


def kill(scene: Scene) -> None:
    _end(scene, Kind.CRASH, TTL + GRACE)


def power_loss(scene: Scene) -> None:
    """The box does nothing more; its session at Postgres lingers."""
    _end(scene, Kind.POWER, scene.setting.keepalive + GRACE)


def failover(scene: Scene) -> None:
    """The first box goes on asking the master that is gone; the second is sent to the new one."""

    def strike() -> None:
        scene.strike(Kind.FAILOVER)
        scene.boxes[FIRST].redis.server = scene.a_redis_that_is_gone()

    _strike_before_write(scene, strike)


def three_clocks_step(scene: Scene) -> None:
    _strike_before_write(scene, lambda: scene.strike(Kind.CLOCK))


def one_clock_steps(scene: Scene) -> None:
    _strike_before_write(scene, lambda: scene.servers.nodes[0].step(STEP))


def one_clock_steps_bare_majority(scene: Scene) -> None:
    """Nodes 3 and 4 are down when the lock is taken, and are back, without a key, when node 0's clock steps."""

    def strike() -> None:
        _start_nodes(scene, 3, 4)
        scene.servers.nodes[0].step(STEP)

    _stop_nodes(scene, 3, 4)
    _strike_before_write(scene, strike)


def node_restarts_bare_majority(scene: Scene) -> None:
    """The same, and node 0 comes back from a restart without its keys."""

    def strike() -> None:
        _stop_nodes(scene, 0)
        _start_nodes(scene, 0, 3, 4)

    _stop_nodes(scene, 3, 4)
    _strike_before_write(scene, strike)


def server_restart(scene: Scene) -> None:
    """A Redis comes back empty, etcd and ZooKeeper with their data; of Postgres every session has ended."""
    server = scene.lock_server()
    if server is None:
        _lose_while_asking(scene, 4.0, 3.5)
        return

    def strike() -> None:
        server.stop()
        server.start()

    _strike_before_write(scene, strike)


def connection_ended(scene: Scene) -> None:
    _lose_while_asking(scene, 2.0, 1.5)


PLAYS: dict[str, Play] = {
    "calm": calm,
    "overrun": overrun,
    "overrun-renewed": overrun,
    "pause": pause,
    "pause-renewed": pause,
    "kill": kill,
    "power-loss": power_loss,
    "failover": failover,
    "three-clocks-step": three_clocks_step,
    "one-clock-steps-bare-majority": one_clock_steps_bare_majority,
    "one-clock-steps": one_clock_steps,
    "node-restarts-bare-majority": node_restarts_bare_majority,
    "server-restart": server_restart,
    "connection-ended": connection_ended,
}


def cells() -> list[Cell]:
    """Those of the live table that the laboratory plays, in its order."""
    return [cell for cell in table() if (cell.fault, cell.lock) not in WITHOUT]


def chosen(
    locks: Container[str] | None, faults: Container[str] | None, settles: Container[str] | None
) -> tuple[list[Cell], list[str]]:
    """The cells of these names (None: of any), and in words which of the live table's are not to be had. Raises
    Unplayable where there is none to play.
    """

    def wanted(cell: Cell) -> bool:
        asked = ((locks, cell.lock), (faults, cell.fault), (settles, cell.settle))
        return all(names is None or name in names for names, name in asked)

    missing = dict.fromkeys((cell.fault, cell.lock) for cell in table() if wanted(cell)).keys() & WITHOUT.keys()
    reasons = [f"{fault} of {lock}: {WITHOUT[fault, lock]}" for fault, lock in sorted(missing)]
    found = [cell for cell in cells() if wanted(cell)]
    if not found:
        why = "; ".join(reasons) or "leave out one of --lock, --fault and --settle"
        raise Unplayable(f"The laboratory has no such cell: {why}.")
    return found, reasons


def play(database: Database, cell: Cell) -> dict[str, Any]:
    """What was seen, in the words of the table; `error` where the play could not be played to its end. The database
    is the laboratory's, lent.
    """
    try:
        return Scene(database, cell).play(PLAYS[cell.fault])
    except LabError as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _end(scene: Scene, kind: Kind, seconds: float) -> None:
    """The first box does nothing more from just before its write on; the second has so long to do its work."""
    first = scene.gate(*BEFORE_WRITE[0])
    scene.begin()
    scene.demand(first)
    scene.strike(kind)
    scene.knock_until_settled(seconds)


def _strike_before_write(scene: Scene, strike: Callable[[], object]) -> None:
    """Both boxes stand before their write, if the second is let in at all; the first goes on first."""
    first, second = (scene.gate(*place) for place in BEFORE_WRITE)
    scene.begin()
    scene.demand(first)
    strike()
    if scene.knock(2.0):
        scene.come(second)
    first.open()
    scene.finish(FIRST)
    second.open()
    scene.finish(SECOND)


def _lose_while_asking(scene: Scene, answer: float, knock: float) -> None:
    """The first box's session ends while it waits `answer` seconds; the second knocks for `knock` from then on."""
    scene.answers_take(answer)
    scene.begin()
    scene.wait_until_it_waits()
    scene.strike(Kind.LOST)
    scene.knock(knock)
    scene.finish(FIRST, SECOND)


def _stop_nodes(scene: Scene, *nodes: int) -> None:
    for node in nodes:
        scene.servers.nodes[node].stop()


def _start_nodes(scene: Scene, *nodes: int) -> None:
    """They keep nothing on disk."""
    for node in nodes:
        scene.servers.nodes[node].start()
