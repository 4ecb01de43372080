"""Every exception of refmq, in one place.

    RefmqError                 base: whatever refmq raises on purpose
      DecodeError              bytes that somebody else wrote are wrong; says where
        WireError              ... a peer sent them
        CorruptRecord          ... a file holds them
          DamagedLog           ... and good records follow, which nobody may drop without being told to
      DiskError                the disk did not do what it was asked; says which file
        DiskFull               ... no room; nothing was changed
        DiskFailed             ... an operation failed, and after a failed flush nothing is sure any more
        StoreInUse             ... another process holds the store directory
        StrayFile              ... a file of the store directory cannot belong to the store
      NetworkError             a peer could not be reached or did not answer; says which
        ConnectFailed          ... no connection was made: the request was surely not sent
        ConnectionLost         ... it closed before the answer: nobody knows what became of the request
        RequestTimedOut        ... no answer in time: nobody knows either
      BrokerError              a server answered, and not with success; says which, to what, and why
        TopicNotExist ...      ... one subclass for each answer that callers tell apart
      RouteNotFound            no nameserver knows a broker for the topic; says who was asked and what to do
      SendFailed               every attempt to send a message failed; says where and why
      SendNotDurable           the message is stored, but not as durably as the broker was told to make it
      NoReply                  a request was sent and nobody replied in time
      UsageError               we were called wrongly: an argument, a flag, a configuration value
        InvalidMessage         ... a message that no broker would take
        InvalidName            ... a topic or group that cannot exist
        ClosedError            ... something was used before it was opened or after it was closed
        ForkedError            ... something was used in a child of the process that opened it
        WrongLoopError         ... something was used on another event loop than the one it was opened on
      MissingTool              something outside refmq is needed and is not there; says how to get it
      CheckFound               a check ran to its end and found something to report

Whose fault it was can be told from the type alone. When refmq itself is wrong there is no class for it:
that is an ``AssertionError``, and it stops the process.

Messages are full sentences. The arguments of an exception are its fields, so two implementations agree on
an error when ``type(a) is type(b) and a.args == b.args``, and every exception survives pickling.
"""

from __future__ import annotations

__all__ = [
    "BrokerError",
    "CheckFound",
    "ClosedError",
    "ConnectFailed",
    "ConnectionLost",
    "CorruptRecord",
    "DamagedLog",
    "DecodeError",
    "DiskError",
    "DiskFailed",
    "DiskFull",
    "ForkedError",
    "InvalidMessage",
    "InvalidName",
    "MessageIllegal",
    "MissingTool",
    "NetworkError",
    "NoPermission",
    "NoReply",
    "RefmqError",
    "RequestTimedOut",
    "RouteNotFound",
    "SendFailed",
    "SendNotDurable",
    "StoreInUse",
    "StrayFile",
    "SubscriptionNotLatest",
    "SystemBusy",
    "TopicNotExist",
    "UsageError",
    "WireError",
    "WrongLoopError",
]


class RefmqError(Exception):
    """Base of every exception that refmq raises on purpose."""


class DecodeError(RefmqError):
    """Bytes that somebody else wrote do not mean anything. Raised as one of its two subclasses.

    ``field`` is the name of the field in the layout table of the module that decodes it, ``offset`` the
    position of its first byte (from the start of the frame or file that was given to the decoder), and
    ``expected`` and ``found`` say what the layout asks for and what was there instead.
    """

    _offset_name = "byte offset"

    def __init__(self, field: str, offset: int, expected: object, found: object) -> None:
        super().__init__(field, offset, expected, found)
        self.field = field
        self.offset = offset
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        return f"{self.field} at {self._offset_name} {self.offset} should be {self.expected} but is {self.found}"


class WireError(DecodeError):
    """A peer sent bytes that are not a valid frame, header or body."""


class CorruptRecord(DecodeError):
    """A file holds bytes that are not a valid record. ``offset`` is physical: from the start of the log."""

    _offset_name = "physical offset"


class DamagedLog(CorruptRecord):
    """The log is damaged where it was durable, and good records follow the damage. ``next_valid`` is the first one.

    Starting would mean to drop them; that needs a decision (``refmq store repair``, or the setting ``on_damage``).
    """

    def __init__(self, field: str, offset: int, expected: object, found: object, next_valid: int) -> None:
        super().__init__(field, offset, expected, found)
        self.args = (field, offset, expected, found, next_valid)
        self.next_valid = next_valid

    def __str__(self) -> str:
        return f"{super().__str__()}, and good records follow from physical offset {self.next_valid}"


class DiskError(RefmqError):
    """The disk did not do what it was asked. ``path`` is the file, ``operation`` what was tried."""

    def __init__(self, path: str, operation: str, reason: str) -> None:
        super().__init__(path, operation, reason)
        self.path = path
        self.operation = operation
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot {self.operation} {self.path}: {self.reason}"


class DiskFull(DiskError):
    """There is no room for what was to be written. Nothing was changed; freeing space is enough to go on."""


class DiskFailed(DiskError):
    """An operation on the disk failed."""


class FlushFailed(DiskFailed):
    """A flush failed. Nobody knows what is on the medium, and every later flush of the file fails as well: only a new
    start, which reads the file again, can tell."""


class StoreInUse(DiskError):
    """Another process holds the lock of the store directory."""


class StrayFile(DiskError):
    """A file in the store directory has a name, size or place that no file of this store can have."""


class NetworkError(RefmqError):
    """A peer could not be reached or did not answer. ``address`` is the peer, ``reason`` what happened."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address = address
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.address}: {self.reason}"


class ConnectFailed(NetworkError):
    """No connection could be made, so the request was surely not sent."""


class ConnectionLost(NetworkError):
    """The connection closed before the answer came. Whether the request was carried out, nobody knows."""


class RequestTimedOut(NetworkError):
    """No answer came in time. Whether the request was carried out, nobody knows."""


class BrokerError(RefmqError):
    """A server answered with an error. ``request`` is the name of the request, ``name`` that of the response code."""

    def __init__(self, address: str, request: str, code: int, name: str, remark: str) -> None:
        super().__init__(address, request, code, name, remark)
        self.address = address
        self.request = request
        self.code = code
        self.name = name
        self.remark = remark

    def __str__(self) -> str:
        reason = self.remark or "no reason given"
        return f"{self.address} answered {self.request} with {self.name} ({self.code}): {reason}"


class TopicNotExist(BrokerError):
    """The broker does not know the topic. Create it (``Admin.create_topic``), or let the broker create topics itself
    (``autoCreateTopicEnable``)."""


class NoPermission(BrokerError):
    """The broker, the topic or the account does not permit this: look at the topic's permission and the access key."""


class SystemBusy(BrokerError):
    """The broker has too much to do and refused the request. Nothing happened; try again in a moment."""


class MessageIllegal(BrokerError):
    """The broker refuses the message as it is: too long, or with properties it cannot keep."""


class SubscriptionNotLatest(BrokerError):
    """The broker has not heard of the newest subscription of the group yet; the next heartbeat tells it."""


class RouteNotFound(RefmqError):
    """No nameserver knows a broker that serves the topic. ``hint`` is what to do next."""

    def __init__(self, topic: str, asked: tuple[str, ...], known: str, hint: str) -> None:
        super().__init__(topic, asked, known, hint)
        self.topic = topic
        self.asked = asked
        self.known = known
        self.hint = hint

    def __str__(self) -> str:
        asked = ", ".join(self.asked) or "no nameserver"
        return f"No route to topic {self.topic}: asked {asked}; {self.known}. {self.hint}"


class SendFailed(RefmqError):
    """A message could not be sent. ``attempts`` tells each attempt and its reason. ``maybe_stored`` says that one of
    them ended without an answer: then nobody knows whether the message is stored."""

    def __init__(self, topic: str, attempts: tuple[str, ...], took_s: float, maybe_stored: bool) -> None:
        super().__init__(topic, attempts, took_s, maybe_stored)
        self.topic = topic
        self.attempts = attempts
        self.took_s = took_s
        self.maybe_stored = maybe_stored

    def __str__(self) -> str:
        tried = "; ".join(self.attempts) or "there was no time for an attempt"
        known = "It may be stored all the same" if self.maybe_stored else "It is surely not stored"
        return f"A message to {self.topic} was not acknowledged within {self.took_s:.3f} s: {tried}. {known}."


class SendNotDurable(RefmqError):
    """The message is stored; what is missing is a flush or a copy that the broker is set to wait for. ``result`` is the
    full result of the send. Sending again makes a second message."""

    def __init__(self, status: str, result: object) -> None:
        super().__init__(status, result)
        self.status = status
        self.result = result

    def __str__(self) -> str:
        return f"The message is stored, but the broker answered {self.status}: a crash may still lose it."


class NoReply(RefmqError):
    """A request was sent and nobody replied in time. ``sent`` says whether a broker has stored the request."""

    def __init__(self, topic: str, waited_s: float, sent: bool) -> None:
        super().__init__(topic, waited_s, sent)
        self.topic = topic
        self.waited_s = waited_s
        self.sent = sent

    def __str__(self) -> str:
        end = "a broker has it, so somebody may still be at work" if self.sent else "no broker has acknowledged it"
        return f"No reply to the request on {self.topic} within {self.waited_s:g} s; {end}."


class UsageError(RefmqError):
    """The caller used refmq wrongly: an argument, a flag or a configuration value that cannot be right."""


class InvalidMessage(UsageError):
    """No broker would take this message. Nothing was sent."""


class InvalidName(UsageError):
    """The name of a topic or group that cannot exist."""


class ClosedError(UsageError):
    """A producer, consumer or admin was used before ``async with`` opened it or after it was closed."""


class ForkedError(UsageError):
    """A producer, consumer or admin was used in a child of the process that opened it. Open one in each process."""


class WrongLoopError(UsageError):
    """A producer, consumer or admin was used on another event loop than the one on which it was opened."""


class MissingTool(RefmqError):
    """Something outside refmq is needed and was not found; the name of several joins them with "and". ``remedy`` is one
    sentence on how to get it."""

    def __init__(self, tool: str, remedy: str) -> None:
        super().__init__(tool, remedy)
        self.tool = tool
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.tool} {'were' if ' and ' in self.tool else 'was'} not found. {self.remedy}"


class CheckFound(RefmqError):
    """A check ran to its end and found something. The command line turns this into exit code 3."""
