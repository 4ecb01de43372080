"""The kinds of letters are those of the C shell, which numbers them by their order."""

from __future__ import annotations

import re
from pathlib import Path

from refmq.net.shell_letters import Down, Letter, Up
from refmq.store.values import Dispatched

MAIL = Path(__file__).parents[2] / "src/refmq_fast/shell/mail.h"


def kinds_in_c() -> list[str]:
    body = MAIL.read_text().split("typedef enum {")[1].split("} rmq_letter_kind;")[0]
    return re.findall(r"^\s+RMQ_(\w+)", body, re.MULTILINE)


def test_every_kind_has_the_number_that_c_gives_it() -> None:
    named = {f"UP_{kind.name}": int(kind) for kind in Up} | {f"DOWN_{kind.name}": int(kind) for kind in Down}
    assert named == {name: number for number, name in enumerate(kinds_in_c())}


def test_a_letter_is_made_of_its_fields() -> None:
    arrived = ("T", 1, 2, 3, 4, 5, 6, b"a\x01b")
    fields = (5, 7, 8, bytes((127, 0, 0, 1)), 9, True, 0, b"data", 2, arrived)
    letter = Letter.of(fields)
    assert letter.kind is Up.ARRIVED
    assert letter.arrived == Dispatched._make(arrived)
    assert (letter.connection, letter.number, letter.peer) == (7, 8, "127.0.0.1:9")
    assert Letter.of((*fields[:3], bytes(15) + b"\x01", 80, *fields[5:-1], None)).peer == "[::1]:80"
