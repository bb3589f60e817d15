"""What runs beside a run, live: a thread."""

import threading
from collections.abc import Callable

from marlow.clock import Clock
from sweeper.locks.ports import Beside, Spawn


class _Told:
    """Waits on an event, so that being told to end cuts the waiting short."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.ended = clock, threading.Event()

    def wait(self, seconds: float) -> bool:
        return self.ended.wait(self.clock.real(seconds))


def spawning(clock: Clock) -> Spawn:
    """A `spawn` over threads that wait by this clock."""

    def spawn(work: Callable[[Beside], None]) -> Callable[[], None]:
        told = _Told(clock)
        thread = threading.Thread(target=work, args=(told,), daemon=True, name="beside the run")
        thread.start()

        def end() -> None:
            told.ended.set()
            thread.join()

        return end

    return spawn
