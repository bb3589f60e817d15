"""A ZooKeeper session, through kazoo."""

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.retry import KazooRetry

from marlow.clock import Clock
from sweeper.locks.ports import LockUnavailable, Node

QUIET = logging.getLogger("sweeper.locks.zookeeper")
QUIET.setLevel(logging.ERROR)  # connections come and go; whoever asks is told


class LiveZooKeeper:
    """One session, begun with the first question and kept alive by kazoo's own threads until `close`.

    `ttl` (virtual seconds) is how long the session outlives a client that is gone, within the bounds that the server
    sets. `timeout` is in real seconds, for the first connection and for each answer: kazoo by itself would wait for
    as long as the session lasts. A lost connection is tried again for as long as the session can live; nothing else
    is tried again here, for a node may have been made by a request that was not answered.
    """

    def __init__(self, hosts: str, clock: Clock, ttl: float, timeout: float = 2.0) -> None:
        self.hosts, self.timeout, self.lives = hosts, timeout, clock.real(ttl)
        self.opening = threading.Lock()
        self.client: KazooClient | None = None
        self.connected = ""  # the session's id while its client is connected

    def create(self, prefix: str, value: str) -> Node:
        """Make it and look around in one go: a session's questions are answered in the order in which they came."""
        parent, looking = prefix.rpartition("/")[0], list[Any]()

        def making(client: KazooClient) -> Any:
            made = client.create_async(
                prefix, value.encode(), ephemeral=True, sequence=True, makepath=True, include_data=True
            )
            looking.append(client.get_children_async(parent))
            return made

        path, stat = self._ask(making)
        beside = self._listed(lambda client: looking[0])
        if path.rpartition("/")[2] not in beside:  # its parents had to be made first, and it came after the look
            beside = self.children(parent)
        return Node(path, stat.czxid, f"{stat.ephemeralOwner:x}", beside)

    def children(self, parent: str) -> Sequence[str]:
        return self._listed(lambda client: client.get_children_async(parent))

    def get(self, path: str) -> str | None:
        try:
            value, _ = self._ask(lambda client: client.get_async(path))
        except _Gone:
            return None
        return str(value.decode(errors="replace"))

    def delete(self, path: str) -> bool:
        try:
            self._ask(lambda client: client.delete_async(path))
        except _Gone:
            return False
        return True

    def session(self) -> str:
        return self.connected

    def close(self) -> None:
        """End the session, and with it every node of ours that is left; not waiting longer than the timeout for it.
        A session whose server does not answer ends by itself.
        """
        client, self.client, self.connected = self.client, None, ""
        if client is not None:
            _end(client, self.timeout)

    def _listed(self, question: Callable[[KazooClient], Any]) -> Sequence[str]:
        try:
            return list(self._ask(question))
        except _Gone:
            return []

    def _ask(self, question: Callable[[KazooClient], Any]) -> Any:
        try:
            return question(self._open()).get(timeout=self.timeout)
        except NoNodeError as gone:
            raise _Gone("There is no such node.") from gone
        except (KazooException, KazooTimeoutError) as error:
            raise LockUnavailable(f"ZooKeeper did not answer: {type(error).__name__} {error}".rstrip()) from error

    def _open(self) -> KazooClient:
        """The client; a new one where there is none yet, or where kazoo has given up."""
        with self.opening:
            if self.client is not None and self.client.client_state == KeeperState.CLOSED:
                _end(self.client, 0)
                self.client = None
            if self.client is None:
                self.client = self._client()
                if not self.client.start_async().wait(self.timeout):
                    self._give_up(self.client)
            return self.client

    def _client(self) -> KazooClient:
        try:
            client = KazooClient(
                self.hosts,
                timeout=self.lives,
                handler=_Handler(self.timeout / (self.hosts.count(",") + 1)),
                connection_retry=KazooRetry(max_tries=-1, delay=0.05, max_delay=0.5, deadline=self.lives),
                command_retry=KazooRetry(max_tries=1),
                logger=QUIET,
            )
        except ValueError as error:
            raise LockUnavailable(
                f"{self.hosts!r} are no addresses of ZooKeeper: write them like one:2181,two:2181."
            ) from error
        client.add_listener(lambda state: self._hear(client, state))
        return client

    def _give_up(self, client: KazooClient) -> NoReturn:
        self.client = None
        _end(client, 0)
        raise LockUnavailable(f"No ZooKeeper at {self.hosts} answered within {self.timeout:g} s.")

    def _hear(self, client: KazooClient, state: str) -> None:
        """Told by kazoo's thread the moment it knows. After LOST kazoo begins another session, with another id."""
        session = client.client_id if state == KazooState.CONNECTED else None
        if client is self.client:
            self.connected = f"{session[0]:x}" if session else ""


class _Gone(LockUnavailable):
    """There is no node at that path."""


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """Bounds the wait for one server's connection and for its first word, for which kazoo takes the whole of the
    session's timeout: a server that hangs, or is still starting, would cost the session, however well the others are.
    """

    def __init__(self, timeout: float) -> None:
        super().__init__()
        self.timeout = timeout

    def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["timeout"] = min(self.timeout, kwargs["timeout"])
        return super().create_connection(*args, **kwargs)

    def select(self, reading: Sequence[Any], writing: Sequence[Any], failing: Sequence[Any], timeout: float) -> Any:
        """kazoo waits on one socket for what is due now, and between heartbeats on two: the other is its own bell."""
        if len(reading) + len(writing) == 1:
            timeout = min(self.timeout, timeout)
        return super().select(reading, writing, failing, timeout)


def _end(client: KazooClient, seconds: float) -> None:
    """Stop this client beside us and wait so long for it. kazoo itself waits for a silent server's last word."""

    def ending() -> None:
        with contextlib.suppress(Exception):  # nobody is left to be told; the session ends by itself
            client.stop()
            client.close()

    thread = threading.Thread(target=ending, daemon=True, name="ending a ZooKeeper session")
    thread.start()
    thread.join(seconds)
