"""What is done to the first box or to the lock's server while it holds the lock, one function a fault.

Each has the first box take the lock and brings it to a known place, strikes, lets the second box knock, and sees both
to their end. Durations are real seconds, for the clock of a cell is the real one.
"""

from collections.abc import Callable
from typing import Any

from django.db import connections

from exercises.proof.crew import BoxProcess
from exercises.proof.director import FIRST, SECOND, Director, Lost
from exercises.proof.gate import Gate, gates
from exercises.proof.places import Places
from sweeper.events import Kind

TTL = 1.0  # of a lease that is meant to run out
OVERRUN, LATE = 2.0, 3.0  # of a lease that is overrun, and the answer that comes too late for it
IN_TIME = 1.5  # the second box's answer: after the first has let go, and within its own lease
LONG = 30.0  # of a lease that is not meant to run out
GRACE = 3.0  # how much later than its ttl a lock may come free: servers look at their clocks now and then
BEFORE_WRITE = (FIRST, Kind.SETTLING), (SECOND, Kind.SETTLING)  # past the last look at the lease

Play = Callable[[Director, Places], None]


def calm(director: Director, places: Places) -> None:
    director.answers_take(0.4)
    director.begin()
    director.wait_for(Kind.ASKED)
    director.knock()
    director.finish()


def overrun(director: Director, places: Places) -> None:
    """The first box's answer comes when its lease has run out and the second box is at work.

    first   0 takes the lock, asks · · · · · · · 2.0 lease over · · 3.0 answer, writes, lets go
    second      refused, refused, …              2.0 takes it, asks · · · · · · · · · 3.5 answer, writes
    """
    director.answers_take(LATE)
    director.begin()
    director.wait_for(Kind.ASKED)
    director.answers_take(IN_TIME)
    director.knock(LATE - 0.4)
    director.finish()


def pause(director: Director, places: Places) -> None:
    """SIGSTOP between the look and the write, SIGCONT when the lease is over and the second box is about to write."""
    with gates(*BEFORE_WRITE) as (first, second):
        director.begin()
        _demand(first)
        director.first.stop()
        first.open()
        if director.knock(TTL + GRACE):
            second.reached(3)
        director.first.go_on()
        director.finish_first()
        second.open()
        director.finish_second()


def kill(director: Director, places: Places) -> None:
    with gates(BEFORE_WRITE[0]) as (first,):
        director.begin()
        _demand(first)
        director.first.kill()
        first.open()
        director.knock_until_settled(TTL + GRACE)


def power_loss(director: Director, places: Places) -> None:
    """The link of the first box's host goes down, without a FIN; the box itself knows nothing of it."""
    with gates(BEFORE_WRITE[0]) as (first,):
        director.begin()
        _demand(first)
        places.cut()
        director.knock_until_settled(max(TTL + GRACE, places.let_go_within))
        director.first.kill()


def failover(director: Director, places: Places) -> None:
    """The replica has not received the key when it is promoted; the second box is sent to the new master."""
    places.pair.hold_back()

    def strike() -> None:
        places.pair.promote()
        director.changed = {"LOCK_REDIS_URL": places.pair.replica.url}

    _strike_before_write(director, strike)


def three_clocks_step(director: Director, places: Places) -> None:
    _strike_before_write(director, lambda: places.step_clocks(0, 1, 2))


def one_clock_steps(director: Director, places: Places) -> None:
    _strike_before_write(director, lambda: places.step_clocks(0))


def one_clock_steps_bare_majority(director: Director, places: Places) -> None:
    """Nodes 3 and 4 are down when the lock is taken, and are back, without a key, when node 0's clock steps."""

    def strike() -> None:
        places.start_nodes(3, 4)
        places.step_clocks(0)

    places.stop_nodes(3, 4)
    _strike_before_write(director, strike)


def node_restarts_bare_majority(director: Director, places: Places) -> None:
    """The same, and node 0 comes back from a restart without its keys."""

    def strike() -> None:
        places.stop_nodes(0)
        places.start_nodes(0, 3, 4)

    places.stop_nodes(3, 4)
    _strike_before_write(director, strike)


def leader_loss(director: Director, places: Places) -> None:
    _strike_before_write(director, places.kill_leader)


def server_restart(director: Director, places: Places) -> None:
    if places.postgres_holds_the_lock:
        _while_asking(director, places.restart_postgres, 4.0, 3.5)
    else:
        _strike_before_write(director, places.restart)


def connection_ended(director: Director, places: Places) -> None:
    _while_asking(director, places.end_connection, 2.0, 1.5)


def pooler(director: Director, places: Places) -> None:
    """The box's statements reach whichever session is free; its unlock, another one than its lock."""
    pooled = BoxProcess("box-pooled", places.folder.parent, {"DATABASE_URL": places.pooled_url})
    try:
        pooled.tell(director.settings, open=True)
        director.seen["starts"] = "error" not in pooled.answer()
        with gates(("box-pooled", Kind.SETTLING)) as (gate,):
            pooled.tell(director.settings)
            _demand(gate)
            with places.next_in_line(gate.open):
                pooled.answer()
        director.seen["left_behind"] = _advisory_locks_held()
    finally:
        pooled.dialogue.end()


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
    "one-clock-steps": one_clock_steps,
    "one-clock-steps-bare-majority": one_clock_steps_bare_majority,
    "node-restarts-bare-majority": node_restarts_bare_majority,
    "leader-loss": leader_loss,
    "server-restart": server_restart,
    "connection-ended": connection_ended,
    "pooler": pooler,
}
# Whose lease must not run out by itself: what ends it is the fault.
LONG_LEASE = set(PLAYS) - {"overrun", "overrun-renewed", "pause", "pause-renewed", "kill", "power-loss"}


def settings_for(fault: str) -> dict[str, Any]:
    """What a play needs of the sweeper's settings: lease, slot (calm: one slot for all), renewal."""
    ttl = LONG if fault in LONG_LEASE else OVERRUN if fault.startswith("overrun") else TTL
    return {
        "SWEEPER_TTL": ttl,
        "SWEEPER_EVERY": 3600.0 if fault == "calm" else min(ttl, OVERRUN),
        "SWEEPER_RENEW_LEASE": fault.endswith("-renewed"),
    }


def _strike_before_write(director: Director, strike: Callable[[], object]) -> None:
    """Both boxes stand before their write, if the second is let in at all; the first goes on first."""
    with gates(*BEFORE_WRITE) as (first, second):
        director.begin()
        _demand(first)
        strike()
        if director.knock(2.0):
            second.reached(3)
        first.open()
        director.finish_first()
        second.open()
        director.finish_second()


def _while_asking(director: Director, strike: Callable[[], object], answer: float, knock: float) -> None:
    """The fault strikes while the first box waits `answer` seconds; the second knocks for `knock` from then on."""
    director.answers_take(answer)
    director.begin()
    director.wait_for(Kind.ASKED)
    strike()
    director.knock(knock)
    director.finish()


def _demand(gate: Gate) -> None:
    if not gate.reached():
        raise Lost(f"No box came to {gate.name} within ten seconds; the boxes' logs say more.")


def _advisory_locks_held() -> int:
    """Session locks with one key, held by anybody: the gates' have two."""
    with connections["default"].cursor() as cursor:
        cursor.execute("select count(*) from pg_locks where locktype = 'advisory' and objsubid = 1 and granted")
        return int(cursor.fetchone()[0])
