"""Other names and figures than those of the statement, for a lock to be a lock under them as well.

They are drawn from the program: another program is asked under others, so that whoever has read this file writes none
that knows its own. No draw is kinder than another one: of its two leases one is shorter and one longer than that of
the statement, and neither is of whole seconds.
"""

import hashlib
from datetime import timedelta

from exercises.catalogue.own_lock.playing import Terms
from exercises.scenarios.corner import START

SHORTER, LONGER = 20.5, 180.5  # virtual seconds, and up to 63 more; the statement's lease is between them


def drawn(source: str) -> tuple[Terms, ...]:
    """The same for the same program, on any machine."""
    die = hashlib.sha256(f"elsewhere {source}".encode()).digest()
    name = f"job-{die[4:8].hex()}"
    start = START + timedelta(days=1 + die[0] % 28, minutes=2 + 2 * die[1])
    return (
        Terms(name, SHORTER + die[2] % 64, start),
        Terms(name, LONGER + die[3] % 64, start),
    )
