"""Whether programs can be sandboxed on this machine: by doing it."""

from exercises.handed.checks import CouldNotDecide, TheirsFailed
from grading.sandbox.bubblewrap import ASK
from grading.sandbox.cgroup import cgroup
from grading.sandbox.limits import Limits
from grading.sandbox.python import sandboxed

ECHO = "class Echo:\n    def __init__(self, port): self.port = port\n    def say(self): return self.port.hear()\n"
UNBOUND = (
    "the memory of several copies of one program together is not bounded, for no cgroup can be written: "
    "each process is, by its rlimit"
)
IN_A_CONTAINER = 'in a container, `security_opt: ["seccomp=unconfined", "apparmor=unconfined"]`'
FORBIDDEN = (
    f"User namespaces are not allowed to whoever judges: {IN_A_CONTAINER}; on a host, ask `sysctl` for "
    "user.max_user_namespaces, kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns."
)
MASKED = (
    "Parts of /proc are hidden here, and then the kernel lets nobody mount another: in a container, "
    '`security_opt: ["systempaths=unconfined"]`.'
)
# Words of bubblewrap's and what they come from.
ADVICE = {
    **{"mount proc": MASKED, "max_user_namespaces": MASKED},
    **{"namespace": FORBIDDEN, "uid map": FORBIDDEN, "RTM_NEWADDR": FORBIDDEN, "newroot": FORBIDDEN},
}


def starts() -> str:
    """Why it does not, and what to do; nothing where it does."""
    try:
        with sandboxed(ECHO, "Echo") as program, program.start() as talk:
            heard = talk.call("say", [], lambda name, arguments: "well")
    except (CouldNotDecide, TheirsFailed) as failed:
        why = str(failed).removesuffix(ASK)
        return " ".join([why, *[advice for words, advice in ADVICE.items() if words in why][:1]])
    return "" if heard == "well" else "A program in the sandbox did not hear what it was told."


def bounded_together() -> bool:
    """Whether a cgroup can be written."""
    made = cgroup(Limits())
    try:
        return bool(made.folders)
    finally:
        made.close()
