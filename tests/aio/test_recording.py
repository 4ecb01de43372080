"""What clients record of their requests is what `refmq verify` judges by: nothing wrong is found where all is well, and
a message that goes missing is."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from refmq.aio.consumer import Consumer
from refmq.aio.producer import Producer
from refmq.aio.recording import Requests, is_public, messages_of
from refmq.client.message import Message
from refmq.client.send import SendSettings, plan_batch, plan_send
from refmq.errors import BrokerError
from refmq.model.fingerprint import message_fingerprint
from refmq.model.ids import MessageQueue
from refmq.protocol.codes import ResponseCode
from refmq.trace.memory import MemoryRecorder
from refmq.trace.reader import read_file
from refmq.trace.record import Outcome
from refmq.verify.local import judge_here
from refmq.verify.oracles import Promises
from refmq.verify.recordings import find_recordings
from refmq.verify.verdicts import Status, Verdict
from tests.aio.harness import run, servers, take

ABOUT_MESSAGES = ("AckedSurvives", "NoInvention", "InconsistentOffset", "SkippedPoll", "NonmonotonicPoll")
QUEUE = MessageQueue("Orders", "broker-a", 1)
SETTINGS = SendSettings(group="shop")


async def story(folder: Path) -> None:
    """Every way to send, and a consumer that gets it all."""
    async with servers() as running, Producer(running.namesrv, group="shop", trace=folder) as producer:
        for number in range(20):
            await producer.send("Orders", b"order %d" % number)
        await producer.send("Orders", b"x" * 5000)
        await producer.send_batch("Orders", [b"a", b"b"])
        await producer.send_oneway("Orders", b"one way")
        async with Consumer(running.namesrv, group="billing", topics="Orders", start="first", trace=folder) as consumer:
            assert len(await take(consumer, 24)) == 24


def verdicts(folder: Path) -> dict[str, Verdict]:
    judgement = judge_here(find_recordings([folder]), Promises(settled=True))
    return {verdict.invariant: verdict for verdict in judgement.verdicts}


def test_what_clients_recorded_can_be_judged(tmp_path: Path) -> None:
    run(story(tmp_path))
    found = verdicts(tmp_path)
    assert [verdict for verdict in found.values() if verdict.status is Status.BROKEN] == []
    assert {found[name].status for name in ABOUT_MESSAGES} == {Status.KEPT}
    assert found["AnsweredWhenCalm"].status is Status.NOT_JUDGED
    assert "no broker recorded" in found["HeldPullWakes"].reason


def test_without_the_trace_of_the_producer_its_messages_are_inventions_and_not_judged(tmp_path: Path) -> None:
    run(story(tmp_path))
    for path in tmp_path.iterdir():
        if any(each.event.action == "Send" for each in read_file(path).events):
            path.unlink()
    assert verdicts(tmp_path)["NoInvention"].status is Status.NOT_JUDGED


def test_a_message_that_a_consumer_passes_is_found(tmp_path: Path) -> None:
    """A second group reads a cluster that has forgotten what the first one saw."""
    run(story(tmp_path / "first"))
    run(story(tmp_path / "second"))
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    for folder, action in (("first", "Send"), ("second", "Pull")):
        for path in (tmp_path / folder).iterdir():
            if any(each.event.action == action for each in read_file(path).events):
                shutil.copy(path, mixed)
    broken = {name for name, verdict in verdicts(mixed).items() if verdict.status is Status.BROKEN}
    assert {"NoInvention", "InconsistentOffset"} <= broken


def test_a_refusal_is_one_only_where_nothing_else_was_tried() -> None:
    plan = plan_send(SETTINGS, Message("Orders", b"body"), "KEY")
    for code, is_final, outcome in (
        (ResponseCode.MESSAGE_ILLEGAL, True, Outcome.FAIL),
        (ResponseCode.MESSAGE_ILLEGAL, False, Outcome.UNKNOWN),
        (ResponseCode.SYSTEM_ERROR, True, Outcome.UNKNOWN),
    ):
        recorder = MemoryRecorder("client", lambda: 0)
        try:
            with Requests(recorder, "shop@c").sending(plan, QUEUE, is_final=is_final):
                raise BrokerError("b:1", "SEND_MESSAGE_V2", int(code), "CODE", "no")
        except BrokerError:
            pass
        assert [each.outcome for each in recorder.events] == [Outcome.INVOKE, outcome]


def test_an_answer_that_never_came_is_unknown() -> None:
    recorder = MemoryRecorder("client", lambda: 0)
    try:
        with Requests(recorder, "g@c").pulling(QUEUE, 5, 32, 15_000):
            raise asyncio.CancelledError
    except asyncio.CancelledError:
        pass
    begin, end = recorder.events
    assert (begin.event.a, begin.event.b, begin.event.d) == (5, 32, 15_000)
    assert (end.outcome, end.event.a) == (Outcome.UNKNOWN, 5)


def test_each_message_of_a_batch_has_its_own_name() -> None:
    plan = plan_batch(SETTINGS, [Message("Orders", b"a"), Message("Orders", b"b")], ["K1", "K2"])
    assert messages_of(plan) == [message_fingerprint(b"K1", b"a"), message_fingerprint(b"K2", b"b")]


def test_what_is_no_applications_is_not_recorded() -> None:
    assert is_public("Orders")
    assert not any(map(is_public, ("%RETRY%g", "%DLQ%g", "RMQ_SYS_TRACE_TOPIC")))
