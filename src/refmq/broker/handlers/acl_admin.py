"""Accounts over the wire: 50 updates or creates one, 51 deletes one, 53 replaces a white list, 52 tells the versions.

Access control lets only admins come here. No request ever returns a secret, nor says one in a remark.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable
from typing import Final

from refmq.broker.control_plane import Broker
from refmq.broker.environment import AccountFiles
from refmq.broker.handlers._registry import Answer, done, handles, refuse
from refmq.errors import RefmqError
from refmq.plane.engine import Peer
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand
from refmq.protocol.headers.admin import (
    DeleteAclConfigRequest,
    GetBrokerClusterAclInfoResponse,
    UpdateAclConfigRequest,
    UpdateGlobalWhiteAddrsRequest,
)
from refmq.protocol.headers.codec import decode_header, encode_header

OFF: Final = "access control is off: aclEnable=false"


@handles(RequestCode.UPDATE_AND_CREATE_ACL_CONFIG)
async def update_and_create_acl_config(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Merges the given fields into an account, or creates it. Durable, and in force, before the answer."""
    header = decode_header(UpdateAclConfigRequest, command)
    files = broker.account_files
    if files is None:
        return refuse(command, ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED, OFF)
    work = files.put_account(header, broker.environment.now_ms())
    return await _tried(command, work, ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED, "")


@handles(RequestCode.DELETE_ACL_CONFIG)
async def delete_acl_config(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Deletes an account."""
    header = decode_header(DeleteAclConfigRequest, command)
    files = broker.account_files
    if files is None:
        return refuse(command, ResponseCode.DELETE_ACL_CONFIG_FAILED, OFF)
    work = files.delete_account(header.access_key, broker.environment.now_ms())
    said = f"The accesskey[{header.access_key[:80]}] corresponding to accessConfig has been deleted failed. "
    return await _tried(command, work, ResponseCode.DELETE_ACL_CONFIG_FAILED, said)


@handles(RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG)
async def update_global_white_addrs(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Replaces the global white list of one file."""
    header = decode_header(UpdateGlobalWhiteAddrsRequest, command)
    files = broker.account_files
    if files is None:
        return refuse(command, ResponseCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED, OFF)
    given = header.global_white_addrs
    work = files.put_white_list(given, header.acl_file_full_path, broker.environment.now_ms())
    said = f"The globalWhiteAddresses[{given[:80]}] has been updated failed. "
    return await _tried(command, work, ResponseCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED, said)


async def _tried(command: RemotingCommand, work: Awaitable[None], code: ResponseCode, said: str) -> RemotingCommand:
    try:
        await work
    except RefmqError as error:
        return refuse(command, code, f"{said}{error}")
    return done(command)


@handles(RequestCode.GET_BROKER_CLUSTER_ACL_INFO)
def get_broker_cluster_acl_info(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """The versions of the files, and nothing of what stands in them. (Upstream gives no answer when ACL is off.)"""
    files: AccountFiles | None = broker.account_files
    if files is None:
        return refuse(command, ResponseCode.SYSTEM_ERROR, OFF)
    versions = {path: json.loads(encode_body(file.version)) for path, file in files.policy.files.items()}
    header = GetBrokerClusterAclInfoResponse(
        version=json.dumps(versions.get(str(files.plain_path), {"counter": 0, "timestamp": 0}), separators=(",", ":")),
        all_acl_file_version=json.dumps(versions, separators=(",", ":")),
        broker_name=broker.config.broker_name,
        broker_addr=broker.config.address,
        cluster_name=broker.config.broker_cluster_name,
    )
    return done(command, encode_header(header))
