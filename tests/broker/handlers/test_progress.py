"""How far groups have come, and how an administrator moves them."""

from __future__ import annotations

from refmq.model.ids import MessageQueue, QueueOffset
from refmq.protocol.bodies.codec import decode_body
from refmq.protocol.bodies.heartbeat import (
    SubscriptionData,
)
from refmq.protocol.bodies.offsets import (
    CorrectionOffsets,
    ResetOffsetBody,
)
from refmq.protocol.bodies.stats import (
    ConsumeStats,
    QueryConsumeTimeSpan,
    TopicStatsTable,
)
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import LanguageCode
from refmq.protocol.headers.clients import ResetOffsetRequest
from tests.broker.harness import START_MS, Harness
from tests.broker.heartbeats import beat_group, beat_groups, consumer_of

OK = ResponseCode.SUCCESS


def test_progress_of_topics_and_groups() -> None:
    world = Harness()
    for _ in range(3):
        world.send()
    world.broker.commit_offset("g", "T", 0, QueueOffset(2))
    stats = decode_body(TopicStatsTable, world.ask(RequestCode.GET_TOPIC_STATS_INFO, fields={"topic": "T"}).body)
    queue = MessageQueue("T", "broker-a", 0)
    assert (stats.offset_table[queue].min_offset, stats.offset_table[queue].max_offset) == (0, 3)
    progress = decode_body(ConsumeStats, world.ask(RequestCode.GET_CONSUME_STATS, fields={"consumerGroup": "g"}).body)
    row = progress.offset_table[queue]
    assert (row.broker_offset, row.consumer_offset, row.last_timestamp, row.pull_offset) == (3, 2, START_MS, None)
    asked_by_5 = world.ask(RequestCode.GET_CONSUME_STATS, fields={"consumerGroup": "g"}, version=479)
    row = decode_body(ConsumeStats, asked_by_5.body).offset_table[queue]
    assert (row.consumer_offset, row.pull_offset) == (2, 2), "mqadmin of 5.x shows the difference as messages in flight"
    unknown = world.ask(RequestCode.GET_TOPIC_STATS_INFO, fields={"topic": "Unknown"})
    assert unknown.code == ResponseCode.TOPIC_NOT_EXIST


def test_a_reset_tells_the_members_and_leaves_the_table_to_them() -> None:
    world = Harness()
    world.send()
    header = ResetOffsetRequest(topic="T", group="g", timestamp=START_MS, is_force=True)
    missing = world.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
    assert missing.remark == "THe consumer group <g> not exist"
    for queue_id in range(4):
        world.broker.commit_offset("g", "T", queue_id, QueueOffset(1))
    offline = world.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
    assert offline.code == ResponseCode.CONSUMER_NOT_ONLINE
    beat_group(world, 2)
    world.peer(2).received.clear()
    answer = world.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
    assert decode_body(ResetOffsetBody, answer.body).offset_table[MessageQueue("T", "broker-a", 0)] == 0
    assert [c.code for c in world.peer(2).received] == [RequestCode.RESET_CONSUMER_CLIENT_OFFSET]
    assert world.offsets.get("T", "g", 0) == 1
    world.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header, language=LanguageCode.CPP)
    assert world.peer(2).received[-1].body.startswith(b'{"offsetTable":[{')


def test_the_time_span_of_a_queue_is_told_as_the_admin_tool_reads_it() -> None:
    world = Harness()
    world.send()
    body = world.ask(RequestCode.QUERY_CONSUME_TIME_SPAN, fields={"topic": "T", "group": "g"}).body
    spans = decode_body(QueryConsumeTimeSpan, body).consume_time_span_set
    assert (spans[0].min_time_stamp, spans[0].delay_time) == (START_MS, 0)
    assert spans[0].min_time_stamp_str == "2020-01-01#00:00:00:000"


def test_a_reset_without_force_only_goes_back_and_is_for_every_queue() -> None:
    world = Harness()
    for queue in range(4):
        world.send(queue=queue)
        world.send(queue=queue)
        world.broker.commit_offset("consumers", "T", queue, QueueOffset(1 if queue else 0))
    beat_groups(world, 2, consumer_of(SubscriptionData(topic="T", sub_string="*")))
    tables = {}
    for force in (False, True):
        header = ResetOffsetRequest(topic="T", group="consumers", timestamp=-1, is_force=force)
        answer = world.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
        offsets = decode_body(ResetOffsetBody, answer.body).offset_table
        tables[force] = [offsets[key] for key in sorted(offsets, key=lambda key: key.queue_id)]
    assert tables == {False: [0, 1, 1, 1], True: [2, 2, 2, 2]}


def test_an_offset_below_its_queue_corrects_nobody() -> None:
    world = Harness()
    world.send()
    world.broker.commit_offset("g1", "T", 0, QueueOffset(-5))
    world.broker.commit_offset("g2", "T", 0, QueueOffset(1))
    fields = {"filterGroups": "", "compareGroup": "g2", "topic": "T"}
    answer = world.ask(RequestCode.QUERY_CORRECTION_OFFSET, fields=fields)
    assert decode_body(CorrectionOffsets, answer.body).correction_offsets == {0: 1}
