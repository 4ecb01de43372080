from __future__ import annotations

from refmq.protocol.command import RemotingCommand
from refmq.protocol.headers import (
    DeleteSubscriptionGroupRequest,
    decode_header,
)


def test_both_names_of_the_offset_flag_are_read() -> None:
    for name in ("removeOffset", "cleanOffset"):
        command = RemotingCommand(code=207, ext_fields={"groupName": "g", name: "true"})
        assert decode_header(DeleteSubscriptionGroupRequest, command).deletes_offsets
