"""A broker and its nameservers: it registers with all of them periodically, and unregisters at the end."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import Final
from zlib import crc32

from refmq.broker.control_plane import Broker
from refmq.broker.topics import apply_order_config
from refmq.errors import RefmqError
from refmq.model.broker_config import PERM_READ_WRITE, BrokerConfig
from refmq.net.client import Client
from refmq.net.tls import ClientTls
from refmq.protocol.acl import Credentials, sign
from refmq.protocol.bodies.codec import decode_body, encode_body
from refmq.protocol.bodies.config import KVTable, TopicConfig, TopicConfigSerializeWrapper
from refmq.protocol.bodies.registration import RegisterBrokerBody, encode_register_broker_body
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.headers.codec import decode_header, encode_header
from refmq.protocol.headers.nameserver import (
    QueryDataVersionRequest,
    QueryDataVersionResponse,
    RegisterBrokerRequest,
    UnregisterBrokerRequest,
)

HA_PORT_ABOVE: Final = 1
"""Where slaves would connect: always the next port, whatever the configuration says (4.9.8)."""

log = logging.getLogger("refmq.broker")


@dataclass(frozen=True, slots=True)
class Signing:
    """How a broker shows nameservers who it is."""

    credentials: Credentials | None = None
    tls: ClientTls | None = None


UNSIGNED: Final = Signing()


class Registrar:
    """Keeps the nameservers informed. A nameserver that does not answer, or refuses, costs only a log line."""

    def __init__(self, broker: Broker, signing: Signing = UNSIGNED) -> None:
        self._broker = broker
        self._credentials = signing.credentials
        self._client = Client(tls=signing.tls)

    async def register_again(self) -> None:
        """The periodic registration. Without `forceRegister` it first asks the nameservers whether their topics are
        up to date; asking alone keeps the broker alive there."""
        if self._broker.config.force_register or await self._is_anything_new():
            await self.register_all()

    async def _is_anything_new(self) -> bool:
        """Whether a nameserver has other topics, or does not answer."""
        config, version = self._broker.config, self._broker.state.topics.version
        header = QueryDataVersionRequest(
            broker_name=config.broker_name,
            broker_addr=config.address,
            cluster_name=config.broker_cluster_name,
            broker_id=config.broker_id,
        )
        command = request(RequestCode.QUERY_DATA_VERSION, encode_header(header), encode_body(version))
        answers = await self._tell(command)
        return len(answers) < len(self._addresses()) or any(
            answer.code != ResponseCode.SUCCESS or decode_header(QueryDataVersionResponse, answer).changed
            for answer in answers
        )

    async def register_all(self) -> None:
        """Tells every nameserver about all topics, and takes the order flags from the first that answers.

        Never about one topic alone, as upstream does when an operator changes it: the version stands for the whole
        table, and a nameserver that has heard it ignores the registration of another topic that was made meanwhile.
        """
        wrapper = self._broker.state.topics.wrapper()
        answers = await self._tell(self._register_command(wrapper))
        for answer in answers:
            if answer.code == ResponseCode.SUCCESS:
                await self._apply_order(answer)
                return

    async def unregister_all(self, timeout_s: float) -> None:
        config = self._broker.config
        header = UnregisterBrokerRequest(
            broker_name=config.broker_name,
            broker_addr=config.address,
            cluster_name=config.broker_cluster_name,
            broker_id=config.broker_id,
        )
        await self._tell(request(RequestCode.UNREGISTER_BROKER, encode_header(header)), min(timeout_s, 3.0))
        await self._client.close(timeout_s)

    def _register_command(self, wrapper: TopicConfigSerializeWrapper) -> RemotingCommand:
        config = self._broker.config
        body = encode_register_broker_body(
            RegisterBrokerBody(topic_config_serialize_wrapper=_with_broker_perm(wrapper, config)),
            compressed=config.compressed_register,
        )
        checksum = crc32(body)
        header = RegisterBrokerRequest(
            broker_name=config.broker_name,
            broker_addr=config.address,
            cluster_name=config.broker_cluster_name,
            ha_server_addr=f"{config.advertised_host}:{config.listen_port + HA_PORT_ABOVE}",
            broker_id=config.broker_id,
            compressed=config.compressed_register,
            body_crc32=checksum & 0x7FFF_FFFF,
        )
        return request(RequestCode.REGISTER_BROKER, encode_header(header), body)

    async def _tell(self, command: RemotingCommand, timeout_s: float | None = None) -> list[RemotingCommand]:
        """The answers of the nameservers that gave one, in their order in the configuration."""
        config = self._broker.config
        if self._credentials is not None:
            command = sign(command, self._credentials)
        limit_s = config.register_broker_timeout_mills / 1000 if timeout_s is None else timeout_s
        answers = await asyncio.gather(*(self._ask(address, command, limit_s) for address in self._addresses()))
        return [answer for answer in answers if answer is not None]

    def _addresses(self) -> list[str]:
        return [address.strip() for address in self._broker.config.namesrv_addr.split(";") if address.strip()]

    async def _ask(self, address: str, command: RemotingCommand, timeout_s: float) -> RemotingCommand | None:
        try:
            answer = await self._client.invoke(address, command, timeout_s)
        except RefmqError as error:
            log.warning("nameserver %s: %s", address, error)
            return None
        if answer.code != ResponseCode.SUCCESS:
            log.warning("nameserver %s refuses request %d: %s", address, command.code, answer.remark)
        return answer

    async def _apply_order(self, answer: RemotingCommand) -> None:
        if not answer.body:
            return
        ordered = decode_body(KVTable, answer.body).table
        broker = self._broker
        table = apply_order_config(broker.state.topics, ordered, broker.environment.now_ms())
        if table is not broker.state.topics:
            broker.state = replace(broker.state, topics=table)
            await broker.save_topics()


def _with_broker_perm(wrapper: TopicConfigSerializeWrapper, config: BrokerConfig) -> TopicConfigSerializeWrapper:
    """A broker that refuses reads or writes announces every topic with its own permission."""
    if config.broker_permission & PERM_READ_WRITE == PERM_READ_WRITE:
        return wrapper
    topics = {
        name: TopicConfig(
            topic_name=name,
            read_queue_nums=topic.read_queue_nums,
            write_queue_nums=topic.write_queue_nums,
            perm=config.broker_permission,
        )
        for name, topic in wrapper.topic_config_table.items()
    }
    return replace(wrapper, topic_config_table=topics)
