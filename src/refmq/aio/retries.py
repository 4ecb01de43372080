"""Giving a message back: to the broker that has it, or, when that fails, as a copy to any broker of the retry topic."""

from __future__ import annotations

import logging
from typing import Final

from refmq.aio.instance import Instance
from refmq.aio.sending import Sender
from refmq.client.message import Message, ReceivedMessage, SendResult
from refmq.client.route import master_of
from refmq.client.send import MESSAGE_TYPE_REPLY, SendSettings, plan_send
from refmq.errors import InvalidMessage, RefmqError
from refmq.protocol import names
from refmq.protocol.codes import RequestCode
from refmq.protocol.headers.messages import ConsumerSendMsgBackRequest

SEND_BACK_TIMEOUT_S: Final = 5.0
SEND_TIMEOUT_S: Final = 3.0
INNER_GROUP: Final = "CLIENT_INNER_PRODUCER"
FIRST_RETRY_LEVEL: Final = 3
TIMES_MAX: Final = 0x7FFF_FFFF
DEAD: Final = -1
"""The delay level that means the dead letter queue."""

log = logging.getLogger("refmq.client")


class Retries:
    """Gives messages of one group back."""

    def __init__(self, instance: Instance, group: str, times_max: int) -> None:
        self._instance = instance
        self._group = group
        self._times_max = times_max
        self._sender = Sender(instance, SendSettings(group=INNER_GROUP, namespace=instance.namespace))

    async def give_back(self, message: ReceivedMessage, delay_level: int) -> bool:
        """Whether a broker has taken the message for another attempt, or as a dead letter."""
        try:
            await self._send_back(message, delay_level)
            return True
        except RefmqError as error:
            log.warning("the broker did not take %s back, sending a copy instead: %s", message.msg_id, error)
        try:
            await self._send_copy(message, delay_level)
            return True
        except RefmqError as error:
            log.warning("%s cannot be given back now: %s", message.msg_id, error)
            return False

    async def _send_back(self, message: ReceivedMessage, delay_level: int) -> None:
        queue = message.queue
        route = self._instance.routes.get(queue.topic)
        address = (master_of(route, queue.broker) if route is not None else None) or message.store_host
        header = ConsumerSendMsgBackRequest(
            offset=message.physical_offset,
            group=self._group,
            delay_level=delay_level,
            origin_msg_id=message.msg_id,
            origin_topic=names.with_namespace(message.topic, self._instance.namespace),
            unit_mode=False,
            max_reconsume_times=self._times_max,
            broker_name=queue.broker,
        )
        command = self._instance.make(RequestCode.CONSUMER_SEND_MSG_BACK, header)
        await self._instance.call(address, command, SEND_BACK_TIMEOUT_S)

    async def _send_copy(self, message: ReceivedMessage, delay_level: int) -> SendResult:
        """A copy has properties of its own: those of the original are as they were, whatever is sent later.

        A broker compares the number of a copy, which counts the attempt that has just failed, with the bound as it does
        the number of a message that is sent back, which does not. So the bound is one higher here; with upstream's, a
        message that fails for the last time but one is dead.
        """
        bound = min(self._times_max + 1, TIMES_MAX)
        times = bound if delay_level == DEAD else message.reconsume_times + 1
        left_out = {names.TRANSACTION_PREPARED, names.KEYS, names.TAGS, names.WAIT_STORE_MSG_OK, names.DELAY_TIME_LEVEL}
        kept = {name: value for name, value in message.properties.items() if name not in left_out}
        extra = {
            **kept,
            names.ORIGIN_MESSAGE_ID: message.properties.get(names.ORIGIN_MESSAGE_ID, message.msg_id),
            names.RETRY_TOPIC: names.with_namespace(message.topic, self._instance.namespace),
            names.RECONSUME_TIME: str(times),
            names.MAX_RECONSUME_TIMES: str(bound),
        }
        level = delay_level if delay_level > 0 else FIRST_RETRY_LEVEL + message.reconsume_times
        copy = Message(
            names.retry_topic(self._group),
            message.body,
            tag=message.tag,
            keys=message.keys,
            delay_level=level,
            flag=message.flag,
        )
        return await self._sender.send(plan_send(self._sender.settings, copy, message.msg_id, extra), SEND_TIMEOUT_S)

    async def reply(self, to: ReceivedMessage, body: bytes, timeout_s: float) -> SendResult:
        """Answers a message that was sent as a request."""
        cluster = to.properties.get(names.CLUSTER)
        if cluster is None or names.CORRELATION_ID not in to.properties:
            raise InvalidMessage("This message was not sent as a request: it does not say where a reply would go.")
        copied = (names.CORRELATION_ID, names.MESSAGE_REPLY_TO_CLIENT, names.MESSAGE_TTL)
        extra = {name: to.properties[name] for name in copied if name in to.properties}
        extra[names.MESSAGE_TYPE] = MESSAGE_TYPE_REPLY
        message = Message(names.reply_topic(cluster), body)
        settings = SendSettings(group=INNER_GROUP)  # the reply topic belongs to the cluster, not to a namespace
        sender = Sender(self._instance, settings)
        return await sender.send(plan_send(settings, message, self._instance.next_id(), extra), timeout_s)
