"""Whether programs can be sandboxed on this machine: by doing it."""

from exercises.handed.checks import CouldNotDecide, TheirsFailed
from grading.sandbox.cgroup import cgroup
from grading.sandbox.limits import Limits
from grading.sandbox.python import sandboxed

ECHO = "class Echo:\n    def __init__(self, port): self.port = port\n    def say(self): return self.port.hear()\n"
UNBOUND = (
    "the memory of several copies of one program together is not bounded, for no cgroup can be written: "
    "each process is, by its rlimit"
)


def starts() -> str:
    """Why it does not, and what to do; nothing where it does."""
    try:
        with sandboxed(ECHO, "Echo") as program, program.start() as talk:
            heard = talk.call("say", [], lambda name, arguments: "well")
    except (CouldNotDecide, TheirsFailed) as failed:
        return str(failed)
    return "" if heard == "well" else "A program in the sandbox did not hear what it was told."


def bounded_together() -> bool:
    """Whether a cgroup can be written."""
    made = cgroup(Limits())
    try:
        return bool(made.folders)
    finally:
        made.close()
