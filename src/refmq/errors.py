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
      UsageError               we were called wrongly: an argument, a flag, a configuration value
      MissingTool              something outside refmq is needed and is not there; says how to get it
      CheckFound               a check ran to its end and found something to report

Whose fault it was can be told from the type alone. When refmq itself is wrong there is no class for it:
that is an ``AssertionError``, and it stops the process.

Messages are full sentences. The arguments of an exception are its fields, so two implementations agree on
an error when ``type(a) is type(b) and a.args == b.args``, and every exception survives pickling.
"""

from __future__ import annotations

__all__ = [
    "CheckFound",
    "ConnectFailed",
    "ConnectionLost",
    "CorruptRecord",
    "DamagedLog",
    "DecodeError",
    "DiskError",
    "DiskFailed",
    "DiskFull",
    "MissingTool",
    "NetworkError",
    "RefmqError",
    "RequestTimedOut",
    "StoreInUse",
    "StrayFile",
    "UsageError",
    "WireError",
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


class UsageError(RefmqError):
    """The caller used refmq wrongly: an argument, a flag or a configuration value that cannot be right."""


class MissingTool(RefmqError):
    """Something outside refmq is needed and was not found. ``remedy`` is one sentence on how to get it."""

    def __init__(self, tool: str, remedy: str) -> None:
        super().__init__(tool, remedy)
        self.tool = tool
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.tool} was not found. {self.remedy}"


class CheckFound(RefmqError):
    """A check ran to its end and found something. The command line turns this into exit code 3."""
