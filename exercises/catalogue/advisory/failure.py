"""The failure that was named, played on the very Wednesday under this lock and under Redis.

A sweep is stopped from the failure, or from the last that a run with the lock did after it, until a run with the lock
next does something; from the failure on, and until the evening's end at 22:10:00. Longer than Redis's lease means
longer than 120.001 s: a key is alive at its deadline and gone a millisecond later, box A's messages come that
millisecond after the mark, and so a holder that fails at 21:50:00, with its key just set, costs exactly that under
Redis. What one lease may cost is not longer than a lease.
"""

from datetime import timedelta

from exercises.catalogue.advisory import answers as said
from exercises.catalogue.advisory.answers import Answers
from exercises.lab.database import Database
from exercises.scenarios import stop
from exercises.scenarios.boxes import Setting
from exercises.scenarios.mishap import Mishap, What
from exercises.scenarios.replay import BEHIND, Outcome, play
from exercises.scenarios.stop import Stop
from exercises.scenarios.wednesday import AFTERMATH, START
from sweeper.telling import clock

LEASE = timedelta(seconds=120)
LONGER_THAN = LEASE + BEHIND
# Seconds of silence after which Postgres ends a session: as Marlow ships (30 s, then three times 10 s), and as the
# kernel has it where nobody asks for anything else (two hours, then nine times 75 s). Not this machine's settings:
# an answer gets the same verdict everywhere.
SILENCE = {"Marlow’s settings": 30 + 3 * 10, "the operating system’s defaults": 7200 + 9 * 75}
WHAT = {
    said.FREEZES: What.FREEZE,
    said.KILLED: What.KILL,
    said.POWER: What.POWER,
    said.SESSION: What.SESSION,
    said.FAILOVER: What.FAILOVER,
    said.DARK: What.DARK,
}
BOXES = {"box A": "box-a", "box B": "box-b"}
# What there is to learn from a failure that strikes, and stops nothing for so long.
SHORT = {
    What.FREEZE: "The box goes on with a lock that it never lost, and a lease would have kept the others out for as "
    "long. What would have ended the stop if the box had not?",
    What.KILL: "A process that is killed leaves a kernel behind, which closes its connections: Postgres hears of it "
    "at once, and the next message gets the lock. Look for an end that Postgres does not hear of.",
    What.POWER: "Postgres hears nothing from the box, asks, and ends the session sooner than a lease would have run "
    "out: with these keepalives it waits for {silence} s. What if nobody had asked for them?",
    What.SESSION: "A session that ends takes its lock with it: the run finds out and stops, and the next message "
    "gets the lock. Look for the opposite, a session that lives on while nobody works in it.",
    What.FAILOVER: "This lock does not stand in Redis, so nothing there can hold it up. Where does it stand?",
    What.DARK: "A question without an answer costs the sweep ten seconds and leaves its row for the next run; but "
    "runs end, and the lock goes from one to the next, as under Redis. Look for what keeps the lock from going on.",
}


def named(answers: Answers) -> Mishap:
    what = WHAT[answers.failure]
    lasts = SILENCE[answers.keepalives] if answers.keepalives else answers.lasts or 0
    return Mishap(what, answers.moment, BOXES.get(answers.where, ""), lasts)


class Played:
    """Both evenings. The database is the laboratory's, lent."""

    def __init__(self, database: Database, setting: Setting, redis: Setting, mishap: Mishap) -> None:
        self.mishap, self.moment = mishap, mishap.moment(START)
        self.advisory = play(database, setting, mishap=mishap)
        self.redis = play(database, redis, mishap=mishap)
        self.stopped, self.under_redis = self._longest(self.advisory), self._longest(self.redis)

    @property
    def is_new(self) -> bool:
        return self.stopped.lasted > LONGER_THAN >= self.under_redis.lasted

    @property
    def sentence(self) -> str:
        """What there is to learn from it."""
        if self.is_new:
            return self._why_it_is_new()
        if self.stopped.lasted > LONGER_THAN:
            return "The sweep stops for so long under Redis as well: look for what only this lock can suffer."
        box = self.mishap.box
        if box and box not in stop.holders(self.advisory.events, self.moment):
            return (
                f"At {self.mishap.at:%H:%M:%S} {_name(box)} does not have the lock, so whatever happens to it then "
                "holds nobody up. Look in the journal which run has the lock, and from when until when it does."
            )
        return SHORT[self.mishap.what].format(silence=self.mishap.lasts)

    @property
    def told(self) -> str:
        """Both evenings, for the evidence."""
        lines = (("the advisory lock", self.stopped), ("Redis", self.under_redis))
        return "\n".join([f"At {self.mishap.at:%H:%M:%S} {self.mishap.words}.", *(_line(*line) for line in lines)])

    def _longest(self, outcome: Outcome) -> Stop:
        return stop.longest(outcome.events, self.moment, AFTERMATH)

    def _why_it_is_new(self) -> str:
        goes_on = stop.following(self.redis.events, self.stopped.begins, AFTERMATH)
        until = "" if self.stopped.over else ", and the evening ends with the lock still held"
        return (
            f"From {clock(self.stopped.begins)} nobody sweeps for {self.stopped.seconds} s{until}; under Redis the "
            f"key runs out, and somebody sweeps again after {goes_on.seconds} s. An advisory lock has no lease: it "
            "lasts as long as its session, and the session for as long as Postgres takes its client to be there."
        )


def _name(box: str) -> str:
    return next(name for name, known in BOXES.items() if known == box)


def _line(lock: str, stopped: Stop) -> str:
    until = "" if stopped.over else ", where the evening ends"
    return (
        f"Under {lock} nobody sweeps for {stopped.seconds} s at the longest from then on: "
        f"from {clock(stopped.begins)} to {clock(stopped.ends)}{until}."
    )
