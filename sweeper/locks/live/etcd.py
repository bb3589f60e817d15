"""An etcd cluster, asked through the HTTP gateway of its members."""

import json
import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests
from etcd3gw.client import Etcd3Client
from etcd3gw.exceptions import Etcd3Exception
from etcd3gw.lease import Lease

from marlow.clock import Clock
from sweeper.locks.live.gateway import Gateway
from sweeper.locks.ports import Created, LockUnavailable

Answer = TypeVar("Answer")

NOT_FOUND = 5  # gRPC's code for it: of the questions asked here, only those about a lease get it

NONSENSE = (AttributeError, LookupError, TypeError, ValueError)  # what reading an answer raises that is not etcd's


class _LeaseOver(LockUnavailable):
    """The cluster knows no such lease."""


class LiveEtcd:
    """Asks one member, and the next where that one gives no answer: refused, timed out, or without a leader.

    `timeout` is in real seconds and a member's, for connecting and for each answer. Members are asked in turn, so a
    question costs at most that times the members. A connection a member is kept open, and may be used at once by the
    run and by what renews beside it. A lease whose grant was never answered stays, with no key, until it runs out.
    """

    def __init__(self, urls: Sequence[str], clock: Clock, timeout: float = 1.0) -> None:
        self.clock = clock
        self.members = [_member(url, timeout) for url in urls]
        self.answering = 0  # the member that answered last

    def grant(self, ttl: float) -> int:
        seconds = max(1, math.ceil(self.clock.real(ttl)))
        return self._ask(lambda member: member.lease(seconds).id)

    def create(self, key: str, value: str, lease: int) -> Created:
        """Asked again of the next member where an answer was lost: the value tells our key from another's."""
        asked = _create_if_absent(key, value, lease)
        return self._ask(lambda member: _created(member.transaction(asked), value))

    def keep_alive(self, lease: int) -> bool:
        return self._ask(lambda member: Lease(lease, member).refresh() > 0)

    def revoke(self, lease: int) -> bool:
        """Raises LockUnavailable too where one member's answer was lost and the next finds the lease over: whether it
        was we who ended it is not known then.
        """
        try:
            return self._ask(lambda member: Lease(lease, member).revoke())
        except _LeaseOver:
            return False

    def get(self, key: str) -> str | None:
        values = self._ask(lambda member: member.get(key))
        return values[0].decode(errors="replace") if values else None

    def close(self) -> None:
        for member in self.members:
            member.session.close()

    def _ask(self, question: Callable[[Etcd3Client], Answer]) -> Answer:
        first, failures = self.answering, list[str]()
        for step in range(len(self.members)):
            at = (first + step) % len(self.members)
            member = self.members[at]
            try:
                answer = question(member)
            except Etcd3Exception as error:
                if _says_not_found(error) and not failures:
                    raise _LeaseOver("The lease is over.") from error
                failures.append(f"{member.base_url}: {error.detail_text or error}")
            except (requests.RequestException, *NONSENSE) as error:
                failures.append(f"{member.base_url}: {type(error).__name__}: {error}")
            else:
                self.answering = at
                return answer
        raise LockUnavailable(f"No member of etcd answered. {'; '.join(failures)}"[:1000])


def _member(url: str, timeout: float) -> Etcd3Client:
    try:
        at = urlsplit(url)
        host, port = at.hostname or "", at.port or 2379
    except ValueError:
        host = ""
    if not host or at.scheme not in ("http", "https"):
        raise LockUnavailable(f"{url!r} is no client URL of etcd: write it like http://one:2379.")
    # TLS is left to requests, which knows where this machine keeps its certificates.
    session: Any = requests.Session() if at.scheme == "https" else Gateway()
    return Etcd3Client(host, port, at.scheme, timeout=timeout, api_path="/v3/", session=session)


def _create_if_absent(key: str, value: str, lease: int) -> dict[str, Any]:
    """One transaction. In: key, value, lease. If there is no such key, put it with its lease; else read it."""
    name = b64encode(key.encode()).decode()
    put = {"key": name, "value": b64encode(value.encode()).decode(), "lease": lease}
    return {
        "compare": [{"key": name, "result": "EQUAL", "target": "CREATE", "create_revision": 0}],
        "success": [{"request_put": put}],
        "failure": [{"request_range": {"key": name}}],
    }


def _created(answer: Any, value: str) -> Created:
    """Out: whether the key was put and the revision that did it, or the key as it is and when it was made."""
    if answer.get("succeeded"):
        return Created(True, int(answer["header"]["revision"]), value)
    there = answer["responses"][0]["response_range"]["kvs"][0]
    holds = b64decode(there["value"]).decode(errors="replace")
    return Created(holds == value, int(there["create_revision"]), holds)


def _says_not_found(error: Etcd3Exception) -> bool:
    try:
        return bool(json.loads(error.detail_text or "")["code"] == NOT_FOUND)
    except NONSENSE:
        return False
