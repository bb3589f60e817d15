"""Two boxes (or more) under the scheduler: the shop's own sweep, its own locks, over virtual servers and a real
Postgres.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from exercises.lab.fibre import Abandoned, Fibre, State, Waiting, current
from exercises.lab.scheduler import LabClock, LabError, Scheduler, at
from exercises.lab.servers import VirtualEtcd, VirtualRedis, VirtualZooKeeper
from exercises.lab.steps import Mode, Step, step, touching
from exercises.scenarios.ports import EtcdPort, Fate, RedisNodesPort, RedisPort, ZooKeeperPort
from exercises.scenarios.provider import ProviderPort, VirtualProvider
from exercises.wrong_fences import WRONG_FENCES
from exercises.wrong_locks import WRONG_LOCKS
from exercises.wrong_settles import SETTLES
from shop.settle import FORMS, Form
from sweeper.events import Event, Kind
from sweeper.journal import Memory, Run
from sweeper.locks import LOCKS
from sweeper.locks.base import Lock, Renewal
from sweeper.locks.live import LivePostgres
from sweeper.locks.ports import Beside, Ports
from sweeper.sweep import Rules, sweep


def noticed_after() -> float:
    """Seconds of silence after which Postgres ends a session, by the settings that every connection asks for."""
    interval, times = settings.MARLOW_TCP_KEEPALIVES_INTERVAL, settings.MARLOW_TCP_KEEPALIVES_COUNT
    return float(settings.MARLOW_TCP_KEEPALIVES_IDLE + interval * times)


class Unplayable(LabError):
    """These values make no scenario."""


ALL_FORMS = {**FORMS, **WRONG_FENCES, **SETTLES}  # the shop's, and what the laboratory knows beside them
ALL_LOCKS = {**LOCKS, **WRONG_LOCKS}
DAY = 86_400.0  # seconds
HEARTBEATS = 3  # of a ZooKeeper client, in the time after which its session would be over


@dataclass(frozen=True)
class Setting:
    """What is played. Durations in virtual seconds."""

    lock: str = "redis-naive"
    settle: str = "unguarded"
    question: str = "lookup"
    stop_on_lost_lease: bool = False
    renew: bool = False
    ttl: float = 120.0
    every: float = 120.0
    pending_for: float = 120.0
    keepalive: float = field(default_factory=noticed_after)  # until Postgres misses a box that is gone

    def __post_init__(self) -> None:
        if self.lock not in ALL_LOCKS:
            raise Unplayable(f"There is no lock {self.lock!r}: take one of {', '.join(ALL_LOCKS)}.")
        if self.settle not in ALL_FORMS:
            raise Unplayable(f"There is no form {self.settle!r}: take one of {', '.join(ALL_FORMS)}.")
        if ALL_FORMS[self.settle].fenced and not ALL_LOCKS[self.lock].mints_token:
            able = ", ".join(name for name, lock in ALL_LOCKS.items() if lock.mints_token)
            raise Unplayable(f"{self.settle} needs a token, and {self.lock} mints none: take one of {able}.")
        if self.renew and ALL_LOCKS[self.lock].renewal is Renewal.NEVER:
            raise Unplayable(f"{self.lock} has no lease that could be renewed: leave out --renew.")
        if self.question not in ("lookup", "cancel"):
            raise Unplayable(f"There is no question {self.question!r}: take lookup or cancel.")
        if not 0 < self.ttl <= DAY:
            raise Unplayable(f"A lease of {self.ttl:g} s makes no sense: take more than 0, and a day at the most.")

    @property
    def named(self) -> dict[str, str]:
        """As a verdict names it."""
        return {"lock": self.lock, "settle": self.settle, "question": self.question}

    @property
    def strategy(self) -> type[Lock]:
        return ALL_LOCKS[self.lock]

    @property
    def form(self) -> Form:
        return ALL_FORMS[self.settle]

    @property
    def rules(self) -> Rules:
        return Rules(
            ttl=self.ttl, pending_for=self.pending_for, stop_on_lost_lease=self.stop_on_lost_lease, job="sweeper"
        )


@dataclass
class Servers:
    """What stands in the laboratory's machine room."""

    scheduler: Scheduler
    provider: VirtualProvider = field(default_factory=VirtualProvider)

    def __post_init__(self) -> None:
        def now() -> datetime:
            return self.scheduler.now

        self.redis = VirtualRedis(now)
        self.redis.add_replica()
        self.nodes = [VirtualRedis(now) for _ in range(5)]
        self.etcd, self.zookeeper = VirtualEtcd(now), VirtualZooKeeper(now)

    def deadlines(self) -> set[datetime]:
        """When leases, sessions and keys will be over, in true time."""
        return {
            self.scheduler.now + timedelta(milliseconds=deadline - server.time())
            for server in (self.redis, *self.nodes, self.etcd, self.zookeeper)
            for deadline in server.deadlines()
        }


class Box:
    """One box: its clock, its ways to the servers, and the runs on it."""

    def __init__(self, name: str, offset: float, servers: Servers, setting: Setting, journal: Memory) -> None:
        self.name, self.setting, self.journal = name, setting, journal
        self.scheduler = servers.scheduler
        self.clock = LabClock(self.scheduler, offset)
        self.provider = ProviderPort(servers.provider, self.clock, self._ask)
        self.redis = RedisPort(servers.redis, self._ask)
        self.nodes = RedisNodesPort(servers.nodes, self._ask)
        self.etcd = EtcdPort(servers.etcd, self._ask)
        self.servers = servers
        self.runs: list[Fibre] = []
        self.fates: dict[str, bool] = {}  # by fibre: what becomes of the question it is about to ask
        self._values = 0

    def _ask(self, label: str, names: tuple[str, ...], writes: bool) -> Fate:
        """The step of a question to one of the virtual servers."""
        at(Step(label, touching(names, Mode.WRITE if writes else Mode.READ)))
        asking = current()
        return None if asking is None else self.fates.pop(asking.name, None)

    def cron(self, moment: datetime) -> Fibre:
        """The schedule's message for this moment: one run, by a worker that is free."""
        number = len(self.runs) + 1
        name = f"{self.name}/{number}"
        run = Run(
            run=uuid.uuid5(uuid.NAMESPACE_OID, name),
            box=self.name,
            message=name,
            lock=self.setting.lock,
            settle=self.setting.settle,
            question=self.setting.question,
        )
        fibre = self.scheduler.start(self.name, name, lambda: self._sweep(run, name), moment)
        self.runs.append(fibre)
        return fibre

    def _sweep(self, run: Run, name: str) -> None:
        self.journal.begin(run, self.clock.now())
        self.journal.write(Event(self.clock.now(), run.box, run.run, Kind.STARTED))
        session = ZooKeeperPort(self.servers.zookeeper, self._ask, self.setting.ttl)  # a run's own, as live
        try:
            sweep(
                run,
                lock=self._lock(run, name, session),
                form=self.setting.form,
                provider=self.provider,
                clock=self.clock,
                journal=_Living(self.journal),
                rules=self.setting.rules,
            )
        finally:
            session.close()

    def _lock(self, run: Run, name: str, session: ZooKeeperPort) -> Lock:
        ports = Ports(
            clock=self.clock,
            box=self.name,
            run=str(run.run),
            every=self.setting.every,
            new_value=self._new_value,
            redis=self.redis,
            nodes=self.nodes,
            postgres=LivePostgres(),
            etcd=self.etcd,
            zookeeper=session,
            spawn=lambda work: self._beside(work, name),
            renew=self.setting.renew,
        )
        if self.setting.lock == "zookeeper":
            self._keep_session(name, session)
        return self.setting.strategy(ports)

    def _new_value(self) -> str:
        self._values += 1
        return f"v{self._values}"

    def _keep_session(self, name: str, session: ZooKeeperPort) -> None:
        """What the client's own threads do for as long as the run lives."""
        running = current()

        def heart(beside: Beside) -> None:
            while not beside.wait(self.setting.ttl / HEARTBEATS):
                if running is None or running.state is State.DONE:
                    return
                session.keep_alive()

        self._beside(heart, f"{name} heartbeat")

    def _beside(self, work: Callable[[Beside], None], name: str) -> Callable[[], None]:
        told = _Told(self.scheduler)
        fibre = self.scheduler.start(self.name, f"{name} beside", lambda: work(told))
        told.fibre = fibre

        def end() -> None:
            told.end()
            waiting = current()
            if waiting is not None and fibre.state is not State.DONE:
                waiting.blocked(Waiting(lambda: fibre.state is State.DONE, "join"), step(f"{name} beside has ended"))

        return end


class _Told:
    """How work beside a run waits: until its time, or until it is told to end."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler, self.ended = scheduler, False
        self.fibre: Fibre | None = None

    def wait(self, seconds: float) -> bool:
        fibre = current()
        if fibre is None:
            raise Abandoned
        if not self.ended:
            fibre.sleep_until(self.scheduler.now + timedelta(seconds=seconds))
        return self.ended

    def end(self) -> None:
        self.ended = True
        if self.fibre is not None and self.fibre.state is State.ASLEEP:
            self.fibre.wakes = self.scheduler.now


class _Living:
    """The journal as a run writes it: what was abandoned has no more to say."""

    def __init__(self, journal: Memory) -> None:
        self.journal = journal

    def begin(self, run: Run, at: datetime) -> None:
        self.journal.begin(run, at)

    def write(self, event: Event) -> None:
        fibre = current()
        if fibre is None or not fibre.abandoned:
            self.journal.write(event)


def as_told(events: list[Event]) -> list[dict[str, Any]]:
    """The journal as it is compared: runs by their names, not by ids."""
    names: dict[uuid.UUID, str] = {}
    for event in events:
        names.setdefault(event.run, f"{event.box}/{1 + sum(name.startswith(event.box) for name in names.values())}")
    return [{**event.as_json(), "run": names[event.run]} for event in events]
