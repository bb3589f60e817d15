# Runs inside the sandbox, under the system's Python, with the standard library alone. What it is told and what it
# says are JSON, a line each. It reads the source once; every copy of itself that it forks is one instance of their
# class. Nothing here is trusted by the other side: their code can do to this process whatever it likes.
import json
import os
import random
import resource
import sys
from typing import Any

TOLD, SAID = os.dup(0), os.dup(1)
LONGEST = 200  # characters of what an exception says
SOURCE = "<answer>"


def silence() -> None:
    """Nothing that is printed goes anywhere, and nothing is read by accident."""
    nowhere = os.open("/dev/null", os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    os.close(nowhere)


class Lines:
    """Byte by byte from a buffer of its own: what one copy has not read yet belongs to the next."""

    def __init__(self) -> None:
        self.rest = b""

    def read(self) -> Any:
        while b"\n" not in self.rest:
            more = os.read(TOLD, 65536)
            if not more:
                os._exit(0)
            self.rest += more
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)


LINES = Lines()


def say(message: dict[str, Any]) -> None:
    text = json.dumps(message, allow_nan=False).encode() + b"\n"
    while text:
        text = text[os.write(SAID, text) :]


class Port:
    """What their class is made with: every method is one question to the other side, and its return is the answer."""

    _open = False  # nobody listens before a method is called

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        def ask(*arguments: Any) -> Any:
            if not self._open:
                raise RuntimeError("the port answers while a method is called, not while its object is made")
            say({"ask": name, "arguments": list(arguments)})
            told = LINES.read()
            if "end" in told:
                os._exit(0)
            return told["said"]

        return ask


def raised(error: BaseException) -> dict[str, Any]:
    """Its type, its words and the last of their lines that it came through."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == SOURCE:
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename == SOURCE:
        line = error.lineno
    try:
        words = str(error)[:LONGEST].encode("ascii", "backslashreplace").decode().replace("\0", " ")
    except BaseException:
        words = ""
    return {"raised": type(error).__name__[:LONGEST], "words": words, "line": line}


def copy(made: Any) -> None:
    """One instance and its calls, until the other side has had enough."""
    random.seed(0)
    try:
        port = Port()
        instance = made(port)
        port._open = True
    except BaseException as error:
        say(raised(error))
        return
    say({"ready": True})
    while True:
        told = LINES.read()
        if "end" in told:
            return
        try:
            answer = {"answer": getattr(instance, told["call"])(*told["arguments"])}
            json.dumps(answer, allow_nan=False)
        except BaseException as error:
            answer = raised(error)
        say(answer)


def main() -> None:
    silence()
    sys.path[:] = [path for path in sys.path if path]
    cpu, processes = int(sys.argv[1]), int(sys.argv[2])
    # This process, init and one copy: their code can neither fork nor start a thread in a copy.
    resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, most))
    if os.fork() == 0:  # where not even one copy can be made it is not their failure
        os._exit(0)
    os.wait()
    say({"hello": True})
    told = LINES.read()
    names = {"__name__": "answer", "__builtins__": __builtins__}
    try:
        exec(compile(told["source"], SOURCE, "exec"), names)  # noqa: S102  that is what all of this is for
    except BaseException as error:
        say(raised(error))
        return
    if told["name"] not in names:
        say({"missing": True})
        return
    made = names[told["name"]]
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    say({"read": True})
    while True:
        told = LINES.read()
        if "start" not in told:
            continue
        one = os.fork()
        if one == 0:
            try:
                resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
                copy(made)
            finally:
                os._exit(0)
        _, status, used = os.wait4(one, 0)
        say({"ended": os.waitstatus_to_exitcode(status), "cpu": used.ru_utime + used.ru_stime})


main()
