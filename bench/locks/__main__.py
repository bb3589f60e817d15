"""python -m bench.locks: every lock beside its floor and beside others. Status 1 where a goal is missed."""

import argparse
import logging
import sys
from collections.abc import Iterator
from random import Random

from bench.locks import contest, report
from bench.locks.world import World, opened
from marlow.servers.launcher import ServerError

ROUNDS = 300
# The groups of races, in their order, and the locks in each: a module here and its function.
GROUPS = {
    "redises.one": ("redis-naive", "redis-token"),
    "redises.five": ("redlock",),
    "postgres.advisory": ("postgres-advisory",),
    "postgres.slot": ("slot",),
    "postgres.rows": ("skip-locked",),
    "consensus.etcd": ("etcd",),
    "consensus.zookeeper": ("zookeeper",),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.locks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"turns of each contestant, {ROUNDS} by default")
    parser.add_argument(
        "--only", choices=[lock for locks in GROUPS.values() for lock in locks], help="this lock alone"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="rows for a machine, in the last line")
    form.add_argument("--markdown", action="store_true", help="the document docs/bench-locks.md")
    options = parser.parse_args()
    # What they say of each refusal would be measured with it.
    logging.getLogger("redis_lock").setLevel(logging.CRITICAL)
    with opened() as world:
        missing: dict[str, str] = {}
        rows = list(run(world, options.rounds, options.only, missing))
        if options.json:
            print(report.as_json(rows))
        elif options.markdown:
            print(report.document(rows, missing, world.versions, options.rounds), end="")
        else:
            report.show(rows, missing)
    return int(any(row.missed for row in rows))


def run(world: World, rounds: int, only: str | None, missing: dict[str, str]) -> Iterator[contest.Row]:
    """A row a race; locks whose server is missing go into `missing`, with what to install."""
    from bench.locks import consensus, postgres, redises

    rooms = {"redises": redises, "postgres": postgres, "consensus": consensus}
    chance = Random(contest.SEED)
    for group, locks in GROUPS.items():
        if only and only not in locks:
            continue
        room, _, function = group.partition(".")
        try:
            for race in getattr(rooms[room], function)(world):
                if not only or race.lock == only:
                    print(f"{race.lock}, {race.path} …", file=sys.stderr, flush=True)
                    yield contest.run(race, rounds, chance)
        except ServerError as error:
            missing |= dict.fromkeys(locks, str(error))
            print(f"{', '.join(locks)} left out: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
