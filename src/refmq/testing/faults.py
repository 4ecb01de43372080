"""Faults on request: what a broker shall do wrong, with which requests, and how often."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from enum import Enum

from refmq.errors import UsageError
from refmq.protocol.codes import RequestCode, ResponseCode


class Kind(Enum):
    """What happens to a request."""

    RESPOND = "is answered with an error, and nothing is done"
    DELAY = "is served later"
    DROP = "is served, and its answer is lost"
    CLOSE = "closes the connection, and nothing is done"


@dataclass(frozen=True, slots=True)
class Rule:
    """A fault that is still to come."""

    kind: Kind
    request: int | None
    times: int
    code: int = 0
    remark: str = ""
    seconds: float = 0.0


class Faults:
    """The faults of a test cluster. Each counts the requests it strikes and is over after ``times`` of them."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self._lock = threading.Lock()
        self.happened: list[str] = []
        """What has struck, in words."""
        self.flush_is_frozen = False
        """Set by ``freeze_flush``: no flush of a broker's disk comes to its end."""

    def respond(self, request: str, code: str | int, *, times: int = 1, remark: str = "as the test wants it") -> None:
        """The next ``times`` requests of a kind are answered with an error: ``respond("SEND_MESSAGE_V2",
        "SYSTEM_BUSY", times=2)``. ``"*"`` means any request."""
        self._add(Rule(Kind.RESPOND, _request(request), times, code=_response(code), remark=remark))

    def delay(self, request: str, seconds: float, *, times: int = 1) -> None:
        """The next requests of a kind are served later. The seconds are those of the brokers' clock."""
        self._add(Rule(Kind.DELAY, _request(request), times, seconds=seconds))

    def drop_answer(self, request: str, *, times: int = 1) -> None:
        """The next requests of a kind are carried out, and nobody hears of it."""
        self._add(Rule(Kind.DROP, _request(request), times))

    def close_connection(self, request: str, *, times: int = 1) -> None:
        """The next requests of a kind cost their connection."""
        self._add(Rule(Kind.CLOSE, _request(request), times))

    def freeze_flush(self) -> None:
        """From now on no flush of a disk comes to its end, until ``thaw_flush``. A cluster that flushes before it
        answers (``TestCluster(sync_flush=True)``) then answers FLUSH_DISK_TIMEOUT."""
        self.flush_is_frozen = True

    def thaw_flush(self) -> None:
        self.flush_is_frozen = False

    def clear(self) -> None:
        """Forgets the faults that have not struck, and lets flushes go on."""
        self.thaw_flush()
        with self._lock:
            self._rules.clear()

    @property
    def waiting(self) -> int:
        """How many requests are still to be struck."""
        with self._lock:
            return sum(rule.times for rule in self._rules)

    def _add(self, rule: Rule) -> None:
        if rule.times < 1:
            raise UsageError(f"A fault happens at least once, not {rule.times} times.")
        with self._lock:
            self._rules.append(rule)

    def strike(self, request: int) -> Rule | None:
        """The fault for a request that has just come, if there is one. Called by the broker."""
        with self._lock:
            for index, rule in enumerate(self._rules):
                if rule.request is None or rule.request == request:
                    if rule.times == 1:
                        del self._rules[index]
                    else:
                        self._rules[index] = replace(rule, times=rule.times - 1)
                    self.happened.append(f"{RequestCode(request).name} {rule.kind.value}")
                    return rule
        return None


def _request(name: str) -> int | None:
    if name == "*":
        return None
    if name not in RequestCode.__members__:
        near = sorted(member for member in RequestCode.__members__ if name.upper()[:4] in member)[:6]
        raise UsageError(f"There is no request {name!r}; perhaps one of {', '.join(near) or 'those in RequestCode'}.")
    return int(RequestCode[name])


def _response(code: str | int) -> int:
    if isinstance(code, int):
        return code
    if code not in ResponseCode.__members__:
        raise UsageError(f"There is no response code {code!r}; those of refmq.protocol.codes.ResponseCode exist.")
    return int(ResponseCode[code])
