"""Types of refmq_fast. The functions are there when ``AVAILABLE`` is true; importing them otherwise raises
``ImportError`` with ``REASON``."""

from collections.abc import Callable
from os import PathLike
from typing import Generic, Self, TypeAlias, TypeVar

from typing_extensions import Buffer

from refmq.errors import DiskError
from refmq.model.disk import Disk, DiskFile
from refmq.model.step import EventFields

Emit: TypeAlias = Callable[[EventFields], None]

AVAILABLE: bool
REASON: str

def crc32(data: Buffer, value: int = 0, /) -> int:
    """The CRC-32 of ``data``, continued from ``value``; the same number as ``zlib.crc32``.

    Large buffers are read with the GIL released: do not write to one while this runs.
    """

def crc32_portable(data: Buffer, value: int = 0, /) -> int:
    """As ``crc32``, by tables alone: what runs on a processor without carry-less multiplication."""

def crc32_is_accelerated() -> bool:
    """Whether ``crc32`` uses carry-less multiplication on this processor."""

def digest_rows(rows: Buffer, roles: Buffer, topics: Buffer, groups: Buffer, keys: Buffer, /) -> bytes:
    """The cells of the digest of some rows of a trace, as `refmq.verify.spark.digest` lays them out. Reads with the GIL
    released: do not write to what it reads."""

def survey_rows(
    rows: Buffer,
    roles: Buffer,
    topics: Buffer,
    groups: Buffer,
    keys: Buffer,
    counts: Buffer,
    actors: Buffer,
    state: Buffer,
    cells: Buffer,
    places: Buffer,
    /,
) -> int:
    """Adds rows to a survey, as `refmq.verify.spark.survey` lays it out: how many were taken. The last five are written
    to, with the GIL released."""

def read_log_units(data: Buffer, position: int, check_crc: bool, /) -> tuple[bytes, bytes, int]:
    """Records of a log, their keys, and where reading stopped, as `refmq.verify.spark.log_pieces` lays them out. Reads
    with the GIL released: do not write to what it reads."""

def scan_records(
    data: bytes | memoryview, position: int, in_file: int, page_bytes: int, check_crc: bool, /
) -> tuple[int, int, int]:
    """What `refmq.store.scan.ScanRecords` says."""

CommandT = TypeVar("CommandT")

class FrameCodec(Generic[CommandT]):
    """Turns frames into commands and back, where that is surely right; ``None`` leaves it to ``refmq.protocol.frame``.

    ``command`` is a class with the slots of ``refmq.protocol.command.RemotingCommand``; ``languages`` and
    ``serializations`` are the values of its two enumerations in their order. Nothing in it changes: any thread may use
    it.
    """

    def __new__(
        cls, command: type[CommandT], languages: tuple[int, ...], serializations: tuple[int, ...], /
    ) -> Self: ...
    def decode(self, buffer: Buffer, start: int, frame_length_max: int, /) -> tuple[CommandT, int] | None:
        """The command of the frame that begins at ``start``, and where the next one does. ``None`` when the frame is
        not complete, or the reference has to look at it."""

    def encode(self, command: CommandT, opaque: int | None, frame_length_max: int, /) -> bytes | None:
        """The frame of ``command`` under this request id, or its own if that is ``None``. ``None`` when it has no such
        frame, or the reference has to write it."""

MadeT = TypeVar("MadeT")

class Maker(Generic[MadeT]):
    """Called with a value for each of these slots, it makes an instance of ``kind`` without calling ``__init__``."""

    def __new__(cls, kind: type[MadeT], names: tuple[str, ...], /) -> Self: ...
    def __call__(self, *values: object) -> MadeT: ...

MessageT = TypeVar("MessageT")

class MessageReader(Generic[MessageT]):
    """Makes messages from the bytes of a pull response, where that is surely right.

    ``message`` is a class with the slots of ``refmq.client.message.ReceivedMessage``. Any thread may use it.
    """

    def __new__(cls, message: type[MessageT], /) -> Self: ...
    def read(
        self, data: Buffer, start: int, queue: object, topic: str, queue_id: int, settler: object, /
    ) -> tuple[list[MessageT], int]:
        """The messages of this queue that begin at ``start``, one after another, and where the first one does that the
        reference has to look at; the end of ``data`` when there is none."""

class TracePage:
    """Memory for ``size_records`` records of a trace, as ``refmq.trace.page.PlainPage`` is it, and with the same bytes.

    ``strings`` is the table of the file that the records go to; whoever owns it may add to it. The first event gets the
    number ``sequence``. One thread packs and puts; any thread may read.
    """

    def __new__(cls, size_records: int, strings: dict[str, int], sequence: int, /) -> Self: ...
    @property
    def sequence(self) -> int:
        """The sequence number of the next event."""

    @property
    def room(self) -> int:
        """So many records fit in."""

    def pack(self, event: EventFields, at_ns: int, outcome: int, operation: int, /) -> bool:
        """Packs one event. False, and nothing has changed, without room, with a string that is not in the table, or
        with a number that does not fit its field."""

    def pack_notes(self, notes: bytes, start: int, numbers: Buffer, /) -> int:
        """Packs the events that ``Notes`` gave, from an offset on, as far as there is room and they can be packed: how
        many. ``numbers`` has the number of each text in the table, as unsigned 32-bit integers; the largest stands for
        a text that is not there."""

    def put(self, records: bytes, sequence: int, /) -> None:
        """Adds finished records; the next event has this sequence number. ``ValueError`` without room."""

    def read(self, start: int, /) -> bytes:
        """A copy of what is finished, from an offset on."""

class PosixDisk:
    """Real files below a directory, without Python between them and a ``Store``. `refmq.net.posix_disk` makes it a
    ``Disk``. It belongs to one thread at a time. ``DiskFull``, ``DiskFailed`` and ``FlushFailed`` as there."""

    def __new__(
        cls,
        root: str | PathLike[str],
        /,
        *,
        open_files_max: int = ...,
        mapped_bytes: int = ...,
        mapped_file_bytes_min: int = ...,
    ) -> Self: ...
    @property
    def descriptors(self) -> int:
        """How many are open."""

    def exists(self, path: str, /) -> bool: ...
    def is_directory(self, path: str, /) -> bool: ...
    def is_empty(self, directory: str, /) -> bool: ...
    def modified_ms(self, path: str, /) -> int: ...
    def usage(self, path: str, /) -> tuple[int, int]:
        """All bytes of the file system that holds it, and the free ones."""

    def open(self, path: str, /) -> PosixFile: ...
    def create(self, path: str, size_bytes: int, reserve: bool, /) -> PosixFile: ...
    def make_directory(self, path: str, /) -> None: ...
    def remove(self, path: str, /) -> None: ...
    def rename(self, source: str, target: str, /) -> None: ...
    def start_flush(self, directory: str, /) -> DiskWork: ...
    def rest(self) -> None:
        """Closes every descriptor that no flush needs; files open theirs again when they are used."""

class PosixFile:
    """An open file of a ``PosixDisk``."""

    @property
    def path(self) -> str: ...
    @property
    def size_bytes(self) -> int: ...
    def read(self, position: int, length: int, /) -> bytes: ...
    def write(self, position: int, data: Buffer, /) -> None: ...
    def data_end(self) -> int: ...
    def start_flush(self, start: int, end: int, /) -> DiskWork: ...
    def close(self) -> None: ...

class DiskWork:
    """A flush that another thread can perform."""

    def start(self) -> bool:
        """Whether it has a descriptor; if not, none is free at the moment, and it can be tried again."""

    def perform(self) -> None:
        """Flushes, without the GIL; once, after ``start`` said True. Touches nothing of the disk."""

    def finish(self) -> None:
        """Raises what the flush failed with. Belongs in the thread of the disk."""

Operation: TypeAlias = tuple[DiskFile | None, int, int | None, str | None] | DiskWork
"""What a job waits for: a file with the start and end of what to flush, or a directory; of a `PosixDisk`, a work."""

class Job:
    """A flush, maintenance, cleaning or stop of a ``Store`` under way. It must be taken to its end."""

    @property
    def result(self) -> int:
        """Of a flush: how far the log is durable; of a cleaning: how many files of it went."""

    def next(self, error: BaseException | None, /) -> Operation | None:
        """Goes on after an operation that ended well (None) or with an exception. The next one; None at the end."""

class Store:
    """A store in C over a disk. Topics and keys are UTF-8. `refmq.net.fast_store` makes it a `MessageStore`."""

    def __new__(
        cls, disk: Disk | PosixDisk, settings: dict[str, int | tuple[int, ...]], emit: Emit | Notes | None, /
    ) -> Self: ...

    # How it is opened at the positions of a recovery, in this order: see store/open.h.
    def open_name(self, path: str, changed: int, flushed: int, /) -> None: ...
    def open_log(
        self, bases: tuple[int, ...], wrote: int, flushed: int, zeroed: int, last_ms: int, flushed_ms: int, /
    ) -> None: ...
    def open_queue(
        self,
        topic: bytes,
        queue_id: int,
        bases: tuple[int, ...],
        wrote: int,
        flushed: int,
        zeroed: int,
        min_offset: int,
        log_min: int,
        last_physical_end: int,
        dispatched_end: int,
        is_dirty: bool,
        /,
    ) -> None: ...
    def open_offset(self, topic: bytes, queue_id: int, next_offset: int, /) -> None: ...
    def open_index_file(self, name: int, /) -> None: ...
    def open_done(self, dispatched_to: int, dispatched_ms: int, checkpointed_to: int, now_ms: int, /) -> None: ...
    def close(self) -> None:
        """Closes the files. Afterwards nothing may be asked."""

    @property
    def accepts_puts(self) -> bool: ...
    @property
    def failure(self) -> DiskError | None: ...
    def hold(self) -> None:
        """Keeps the threads of a ``Shell`` out of store and plane until ``let_go``: for a step of several calls. Every
        single call does that by itself."""

    def let_go(self) -> None: ...
    def positions(self) -> tuple[int, int, int, int, int]:
        """Where the log begins and ends, where a slave's next piece starts, how far it is durable and dispatched."""

    def plan_message(
        self,
        topic: bytes,
        queue_id: int,
        body: bytes,
        properties: bytes,
        born_ms: int,
        born_ip: bytes,
        born_port: int,
        store_ip: bytes,
        store_port: int,
        flag: int,
        sys_flag: int,
        reconsume_times: int,
        prepared_transaction_offset: int,
        delay_level: int,
        now_ms: int,
        /,
    ) -> int | tuple[object, ...]:
        """The fields of an ``AppendPlan``, or the number of a ``PutStatus``. ``OverflowError``: one is too large."""

    def plan_batch(
        self,
        topic: bytes,
        queue_id: int,
        messages: bytes,
        properties: bytes,
        born_ms: int,
        born_ip: bytes,
        born_port: int,
        store_ip: bytes,
        store_port: int,
        flag: int,
        sys_flag: int,
        reconsume_times: int,
        prepared_transaction_offset: int,
        delay_level: int,
        now_ms: int,
        /,
    ) -> int | tuple[object, ...]:
        """The same for a batch."""

    def append(
        self,
        physical_offset: int,
        data: bytes,
        topic: bytes,
        queue_id: int,
        queue_offset: int,
        durable_at: int,
        store_ms: int,
        places: tuple[tuple[int, int, int, int], ...],
        is_queued: bool,
        /,
    ) -> int:
        """Performs a plan: the number of a ``PutStatus``."""

    def dispatch(self, count_max: int, /) -> list[tuple[str, int, int, int, int, int, int, bytes]]:
        """The fields of each ``Dispatched``."""

    def append_log(self, physical_offset: int, data: bytes, /) -> None: ...
    def set_slave(self, is_slave: bool, /) -> None: ...
    def delete_topic(self, topic: bytes, /) -> int: ...
    def get_message(
        self,
        topic: bytes,
        queue_id: int,
        queue_offset: int,
        count_max: int,
        codes: tuple[int, ...] | None,
        matches: Callable[[bytes], bool] | None,
        terms: int,
        /,
    ) -> tuple[int, int, int, int, tuple[bytes, ...], bool]:
        """The fields of a ``GetResult``."""

    def message_at(self, physical_offset: int, /) -> bytes | None: ...
    def query_by_key(
        self, topic: bytes, key: bytes, count_max: int, begin_ms: int, end_ms: int, /
    ) -> tuple[tuple[bytes, ...], int, int]:
        """The fields of a ``QueryResult``."""

    def min_offset(self, topic: bytes, queue_id: int, /) -> int: ...
    def max_offset(self, topic: bytes, queue_id: int, /) -> int: ...
    def offset_by_time(self, topic: bytes, queue_id: int, timestamp_ms: int, boundary: int, /) -> int:
        """The message of a time: 0 lower, 1 upper, 2 nearest."""

    def store_time(self, topic: bytes, queue_id: int, queue_offset: int, /) -> int: ...
    def units(
        self, topic: bytes, queue_id: int, queue_offset: int, count_max: int, /
    ) -> list[tuple[int, int, int, int]]: ...
    def queues(self) -> list[tuple[str, int]]: ...
    def read_log(self, physical_offset: int, length_max: int, /) -> bytes: ...
    def start_flush(self) -> Job: ...
    def start_maintain(self, now_ms: int, /) -> Job: ...
    def start_clean(self, now_ms: int, hour: int, /) -> Job: ...
    def start_clean_queues(self) -> Job: ...
    def start_stop(self) -> Job: ...

class Plane:
    """The hot path of a broker over an open store, driven step by step; see ``refmq.net.fast_plane``.

    Names are UTF-8 bytes. What a step wants done is taken with ``take_output`` and ``take_wants``.
    """

    def __new__(cls, store: Store, emit: Emit | Notes | None, seed: int, /) -> Self: ...
    def serve(
        self,
        number: int,
        connection: int,
        ip: bytes,
        port: int,
        serialize: int,
        header: bytes,
        body: bytes,
        waited_ms: int,
        draw: int,
        on_vip_port: bool,
        wall_ms: int,
        uptime_ms: int,
        /,
    ) -> bool:
        """Takes the step of a request. False, and nothing has happened, for one that is not ours."""

    def durable(self, flushed_to: int, wall_ms: int, uptime_ms: int, /) -> None:
        """The log is flushed up to here."""

    def flush_failed(self, wall_ms: int, uptime_ms: int, /) -> None:
        """Nobody who still waits for a flush will see it."""

    def tick(self, wall_ms: int, uptime_ms: int, /) -> None:
        """What is due by the clock."""

    def drain(self, wall_ms: int, uptime_ms: int, /) -> None:
        """Answers the pulls that wait as they stand."""

    def dispatch(
        self, count_max: int, wall_ms: int, uptime_ms: int, /
    ) -> list[tuple[str, int, int, int, int, int, int, bytes]]:
        """Gives the next records their units and answers the pulls that wait for them: the fields of each
        ``Dispatched``."""

    def closed(self, connection: int, /) -> None:
        """A connection is gone, and its pulls wait no more."""

    def take_output(self) -> list[tuple[int, int, bytes | None]]:
        """The answers since the last call: connection, number of the request, and frame; None for a parked pull that is
        handed over."""

    def take_wants(self) -> tuple[bool, bool]:
        """Whether a flush and a dispatch are wanted since the last call."""

    def waiting(self) -> tuple[int, int]:
        """How many puts and how many pulls wait."""

    def configure(self, settings: dict[str, int | bytes], ip: bytes, port: int, /) -> None:
        """Installs the settings and the broker's address."""

    def put_topic(
        self,
        name: bytes,
        read_queues: int,
        write_queues: int,
        permission: int,
        may_send: bool,
        may_pull: bool,
        has_multi_tags: bool,
        /,
    ) -> None:
        """Adds or changes a topic."""

    def put_group(
        self, name: bytes, may_consume: bool, may_broadcast: bool, broker_id: int, broker_when_slow: int, /
    ) -> None:
        """Adds or changes a consumer group."""

    def put_subscription(
        self,
        group: bytes,
        topic: bytes,
        is_broadcasting: bool,
        version: int,
        wants_all: bool,
        codes: tuple[int, ...],
        /,
    ) -> None:
        """What the heartbeats of a group say of a topic, by tags."""

    def remove_topic(self, name: bytes, /) -> None: ...
    def remove_group(self, name: bytes, /) -> None: ...
    def remove_subscription(self, group: bytes, topic: bytes, /) -> None: ...
    def set_offset(self, topic: bytes, group: bytes, queue_id: int, offset: int, /) -> bool:
        """Sets an offset that the control plane knows. False if the names are too long to be kept here."""

    def forget_offsets(self) -> None:
        """Forgets all offsets: the control plane sets them anew."""

    def take_offsets(self) -> list[tuple[str, str, int, int]]:
        """The offsets that were committed here since the last call: topic, group, queue and offset."""

    def take_counts(
        self,
    ) -> tuple[list[tuple[str, int, int, int, int]], list[tuple[str, int, str, int, int, int, int]]]:
        """What was counted since the last call. Of sends: topic, calls, messages, bytes, milliseconds. Of pulls: topic,
        queue, group, calls, how many found something, messages, bytes."""

class Notes:
    """Trace events that C has noted, given to a ``Store`` and a ``Plane`` in place of a callable; see
    ``refmq.net.note_recorder``."""

    def __new__(cls, seed: int, /) -> Self: ...
    def note(self, event: EventFields, /) -> None:
        """Notes an event of the control plane."""

    def take(self) -> tuple[list[str], bytes, int]:
        """What was noted since the last call: the texts that are new, in the order of their numbers; the events, 64
        bytes each; how many were dropped behind them."""

class Shell:
    """The threads that drive a C plane over sockets; see ``refmq.net.thread_engine``."""

    def __new__(cls, plane: Plane, limits: dict[str, int], seed: int, /) -> Self: ...
    @property
    def bell(self) -> int:
        """A descriptor that is readable while there are letters."""

    @property
    def counts(self) -> tuple[int, int, int]:
        """Connections, those that were refused, and the bytes that connections hold."""

    def listen(self, descriptor: int, on_vip_port: bool, /) -> None:
        """One more listening socket, which the shell owns from now on."""

    def start(self) -> None: ...
    def stop(self) -> None:
        """Ends the threads, and cuts what is still connected."""

    def collect(self) -> list[tuple[object, ...]]:
        """The letters from the threads, oldest first: the fields of ``refmq.net.shell_letters.Letter``."""

    def write(self, connection: int, data: bytes, /) -> None:
        """Bytes for a peer."""

    def post(self, kind: int, connection: int = 0, number: int = 0, /) -> None:
        """A letter to the IO thread."""

    def watch(self, topic: bytes, is_wanted: bool, /) -> bool:
        """Whether letters tell of the records of a topic. False if there are too many such topics."""
