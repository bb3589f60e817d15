"""How much a student's program may use."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """`cpu`: seconds of each process, `cpu_altogether`: of all copies of one program; `wall`: real seconds that one
    call may keep the judge waiting, `altogether`: that all calls of one program may, less than a check may take
    (GRADING_CHECK_LIMIT); `memory`: bytes of address space of a process, `total`: of memory of all of
    them, where a cgroup can be written; `processes`: in one lane, two of them the sandbox's own; `questions`: of one
    call; `message`: bytes; `deep`: levels of nesting; `lanes`: copies at once; `starts`: copies that a lane serves.
    """

    cpu: int = 2
    cpu_altogether: int = 40
    wall: float = 20.0
    altogether: float = 100.0
    memory: int = 256 * 1024**2
    total: int = 256 * 1024**2
    processes: int = 3
    questions: int = 1_000
    message: int = 64 * 1024
    deep: int = 20
    lanes: int = 16
    starts: int = 400
