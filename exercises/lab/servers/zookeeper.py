"""A ZooKeeper ensemble, as one that answers or does not: sessions, and the nodes that go with them."""

from collections.abc import Sequence
from dataclasses import dataclass

from exercises.lab.servers.machine import Machine, NotAllowed, Now, SessionOver

ROOT = "/"
NOBODY = 0  # owns the nodes that go with no session


@dataclass(frozen=True)
class Made:
    path: str
    czxid: int


@dataclass
class _Session:
    timeout: int  # milliseconds, as the deadline
    deadline: int


@dataclass
class _Node:
    value: str
    owner: int
    births: int = 0  # of children, however many are left: the next sequence number


class VirtualZooKeeper(Machine):
    """A session lives for its timeout after anything was heard of it, and is still alive at its deadline. On the real
    server it ends on a tick, some time after that.

    Every change has a transaction id that rises for ever, whereas the sequence number in a node's name is its
    parent's: it begins anew when the parent does. Sessions run by a clock that never steps. `start` gives every
    session its whole timeout anew; the data stays.
    """

    name = "ZooKeeper"

    def __init__(self, now: Now) -> None:
        super().__init__(now)
        self.zxid = 0
        self._nodes = {ROOT: _Node("", NOBODY)}
        self._sessions: dict[int, _Session] = {}
        self._opened = 0

    def open(self, timeout: float) -> int:
        """A new session's id. `timeout` in seconds."""
        self._asked()
        self._change()
        self._opened += 1
        lives = round(timeout * 1000)
        self._sessions[self._opened] = _Session(lives, self.time() + lives)
        return self._opened

    def keep_alive(self, session: int) -> None:
        """A heartbeat. Raises SessionOver, as every question in a session does."""
        self._hear(session)

    def close(self, session: int) -> None:
        """End it, and remove its nodes. One that is over stays so."""
        self._asked()
        if session in self._sessions:
            self._end(session)

    def create(self, session: int, prefix: str, value: str) -> Made:
        """An ephemeral sequential node; parents are made where they are missing, and go with nobody. Raises
        NotAllowed below an ephemeral node.
        """
        self._hear(session)
        parent = _parent(prefix)
        self._make_path(parent)
        path = f"{prefix}{self._nodes[parent].births:010d}"
        self._make(path, _Node(value, session))
        return Made(path, self.zxid)

    def children(self, session: int, parent: str) -> Sequence[str]:
        """Names, sorted; none where the parent does not exist."""
        self._hear(session)
        return sorted(path.rpartition("/")[2] for path in self._below(parent))

    def get(self, session: int, path: str) -> str | None:
        self._hear(session)
        return self._nodes[path].value if path in self._nodes else None

    def delete(self, session: int, path: str) -> bool:
        """Whoever made it. False: it was gone. Raises NotAllowed while there is something below it."""
        self._hear(session)
        if path not in self._nodes:
            return False
        if path == ROOT or self._below(path):
            raise NotAllowed(f"{path} is not empty.")
        self._change()
        del self._nodes[path]
        return True

    def deadlines(self) -> list[int]:
        return sorted({session.deadline for session in self._sessions.values()})

    def _hear(self, session: int) -> None:
        self._asked()
        if session not in self._sessions:
            raise SessionOver("The session is over.")
        self._renew(self._sessions[session])

    def _expire(self) -> None:
        """In the order in which they ran out."""
        time = self.time()
        over = [(session.deadline, name) for name, session in self._sessions.items() if time > session.deadline]
        for _, name in sorted(over):
            self._end(name)

    def _begin(self) -> None:
        for session in self._sessions.values():
            self._renew(session)

    def _renew(self, session: _Session) -> None:
        session.deadline = self.time() + session.timeout

    def _end(self, session: int) -> None:
        del self._sessions[session]
        self._change()
        self._nodes = {path: node for path, node in self._nodes.items() if node.owner != session}

    def _make_path(self, path: str) -> None:
        if path not in self._nodes:
            self._make_path(_parent(path))
            self._make(path, _Node("", NOBODY))

    def _make(self, path: str, node: _Node) -> None:
        parent = self._nodes[_parent(path)]
        if parent.owner != NOBODY:
            raise NotAllowed(f"Nothing goes below {_parent(path)}: it is ephemeral.")
        if path in self._nodes:
            raise NotAllowed(f"{path} is there already.")
        self._change()
        parent.births += 1
        self._nodes[path] = node

    def _below(self, parent: str) -> list[str]:
        return [path for path in self._nodes if path != ROOT and _parent(path) == parent]

    def _change(self) -> None:
        self.zxid += 1


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or ROOT
