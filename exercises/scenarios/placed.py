"""A journal that knows between which steps its events came."""

from exercises.lab.scheduler import Scheduler
from sweeper.events import Event
from sweeper.journal import Memory


class Placed(Memory):
    """`places` are of each event: how many steps everybody together had taken before it. In a moment in which many
    steps lie, nothing else tells which came first.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self.scheduler = scheduler
        self.places: list[int] = []

    def write(self, event: Event) -> None:
        super().write(event)
        self.places.append(len(self.scheduler.taken))
