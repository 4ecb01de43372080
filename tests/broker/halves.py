"""Half messages, decisions and check-backs, for tests of transactions."""

from __future__ import annotations

from refmq.broker.transactions import Decision
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.heartbeat import HeartbeatData, ProducerData
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand
from refmq.protocol.headers.codec import decode_header
from refmq.protocol.headers.messages import CheckTransactionStateRequest, EndTransactionRequest
from refmq.protocol.record import parse_message_id
from tests.broker.harness import Harness


def send_half(world: Harness, key: str = "k1", **more: str) -> tuple[int, int]:
    """A half message; returns its half offset and its physical offset."""
    properties = {"TRAN_MSG": "true", "PGROUP": "producers", "UNIQ_KEY": key, **more}
    answer = world.send("T", key.encode(), queue=1, properties=properties, sys_flag=4)
    assert answer.code == ResponseCode.SUCCESS
    _, physical = parse_message_id(answer.fields["msgId"])
    return int(answer.fields["queueOffset"]), physical


def end(
    world: Harness,
    place: tuple[int, int],
    decision: Decision = Decision.COMMIT,
    key: str = "k1",
    group: str = "producers",
) -> RemotingCommand | None:
    header = EndTransactionRequest(
        producer_group=group,
        tran_state_table_offset=place[0],
        commit_log_offset=place[1],
        commit_or_rollback=decision,
        msg_id=key,
    )
    return world.tell(RequestCode.END_TRANSACTION, header)


def beat(world: Harness, peer: int = 9) -> None:
    body = encode_body(HeartbeatData(client_id="p", producer_data_set=(ProducerData(group_name="producers"),)))
    world.ask(RequestCode.HEART_BEAT, body=body, peer=peer)


def checks(world: Harness, peer: int = 9) -> list[tuple[CheckTransactionStateRequest, RemotingCommand]]:
    return [
        (decode_header(CheckTransactionStateRequest, command), command)
        for command in world.peer(peer).received
        if command.code == RequestCode.CHECK_TRANSACTION_STATE
    ]


def finals(world: Harness) -> list[bytes]:
    return [record.body for record in world.records("T", 1)]
