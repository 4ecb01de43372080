"""What the four numbers of an event are, by their names in `refmq.model.vocabulary`.

`a`, `b`, `c` and `d` mean something else in each action. Whoever reads a line says what it reads, `line.queue_offset`,
and reading what the line does not hold is an error of ours and not a number.
"""

from __future__ import annotations

from typing import Any, Final

from refmq.model.vocabulary import CLIENT_FIELDS, FIELDS, fields_of
from refmq.trace.record import Outcome

FIRST: Final = 8
"""Where `a` stands in a line."""
ACTION: Final = 1
OUTCOME: Final = 2


class Named:
    """One name: where it stands depends on the line."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name
        self._places = {
            (action, int(outcome)): FIRST + names.index(name)
            for action in {**FIELDS, **CLIENT_FIELDS}
            for outcome in Outcome
            if name in (names := fields_of(action, outcome.name.lower()))
        }

    def __get__(self, line: tuple[Any, ...], owner: type) -> int:
        place = self._places.get((line[ACTION], line[OUTCOME]))
        assert place is not None, f"{line[ACTION]} with outcome {line[OUTCOME]} has no {self._name}"
        value: int = line[place]
        return value


class Fields:
    """All names but `count`, which a tuple has for something else and no oracle reads. `Line` has them."""

    __slots__ = ()

    ack_offset = Named()
    after = Named()
    applied = Named()
    at_ms = Named()
    before = Named()
    broker_id = Named()
    channel = Named()
    check_times = Named()
    code = Named()
    consumed_to = Named()
    count_max = Named()
    decision = Named()
    due_ms = Named()
    end_offset = Named()
    entries_to = Named()
    file_offset = Named()
    flushed_to = Named()
    found = Named()
    from_first = Named()
    from_offset = Named()
    granted = Named()
    half_offset = Named()
    immune_until_ms = Named()
    incarnation = Named()
    index_ms = Named()
    kept_to = Named()
    level = Named()
    log_ms = Named()
    max_offset = Named()
    members = Named()
    message = Named()
    message_class = Named()
    min_offset = Named()
    new_offset = Named()
    next_file_offset = Named()
    next_offset = Named()
    noticed = Named()
    offset = Named()
    op_offset = Named()
    op_offset_from = Named()
    op_offset_to = Named()
    orderly = Named()
    others = Named()
    physical_offset = Named()
    queue_ms = Named()
    queue_offset = Named()
    queue_offset_end = Named()
    queues = Named()
    queues_to = Named()
    reconsume_times = Named()
    report = Named()
    retries_max = Named()
    scan_from = Named()
    size_bytes = Named()
    start_offset = Named()
    status = Named()
    tags_code = Named()
    to_offset = Named()
    topics = Named()
    valid_to = Named()
    wait_ms = Named()
    wanted = Named()
    wanted_classes = Named()
    was_clean = Named()
