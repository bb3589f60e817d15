"""How long a Postgres server keeps the session, and so the lock, of a box that vanished without a word.

The server's kernel decides (Linux, net/ipv4/tcp_timer.c), by the four `tcp_…` settings of the server's side.

*Idle*, everything the server sent was acknowledged. After `idle` seconds of silence a keepalive probe goes out, then
one every `interval`. The kernel looks at the score only when the next probe is due:

    silent for   idle   idle + interval   idle + 2 × interval   …
    probes out   0, +1  1, over?          2, over?              …

Without a user timeout it is over once `count` probes are out. **With** one, `count` no longer counts: it is over at
the first look at which at least one probe is out and the silence has lasted as long as the user timeout. So 5/1/3 is
over after 8 s alone, but after 6 s beside a user timeout of 3 s, and after 20 s beside one of 20 s.

*In flight*, a reply was not acknowledged. Keepalives stand still; it is sent again and again, and over once the user
timeout has gone by since the first time it was sent *again* (at least 0.2 s after the first time).

What these numbers do not cover: kernel timers ring late, by up to an eighth of the wait; a server that is working on
a statement learns of it only when that ends; and a box whose kernel lives answers every probe.
"""


def let_go_after(idle: int, interval: int, count: int, user_timeout: int, *, in_flight: bool) -> float | None:
    """Real seconds until the server ends the session of a box that vanished; None if these numbers set no bound.

    Counted from the last packet that the server heard of the box or, `in_flight`, from the sending of the reply that
    nobody acknowledges. All four in seconds. 0, as in Postgres, leaves a number to the kernel, whose own mean more
    than two hours idle and about a quarter of an hour in flight (0 as user timeout: none).
    """
    if in_flight:
        return float(user_timeout) or None
    if not idle or not interval:
        return None
    if user_timeout:
        probes = max(1, -((idle - user_timeout) // interval))  # rounded up: looked at when the next one is due
        return float(idle + interval * probes)
    return float(idle + interval * count) if count else None
