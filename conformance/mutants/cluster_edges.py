"""Mistakes at the edges: what copies keep, what is refused, slow disks, damage, strangers, a nameserver that is silent.

Each of the judges and steps that look there has one here that it is seen to catch.
"""

from __future__ import annotations

from typing import Final

from conformance.mutants.seeded import Seeded

SEEDED_EDGES: Final = (
    # --- answers --------------------------------------------------------------------------------------------------
    Seeded(
        "answered-twice",
        "",
        "A request is answered twice.",
        "refmq.net.connection",
        "        self.send(answer)\n",
        "        self.send(answer)\n        self.send(answer)\n",
        "Connection._reply",
    ),
    Seeded(
        "oneway-answered",
        "",
        "A one-way request is answered.",
        "refmq.net.connection",
        "answer is None or command.is_oneway",
        "answer is None",
        "Connection._reply",
    ),
    Seeded(
        "damaged-fields-unanswered",
        "",
        "A request with fields that cannot be read gets no answer.",
        "refmq.net.connection",
        "return response(command, SYSTEM_ERROR, remark=str(error) or type(error).__name__)",
        "return None",
        "Connection._answer_to_error",
    ),
    # --- copies ---------------------------------------------------------------------------------------------------
    Seeded(
        "origin-forgotten",
        "",
        "A retry does not say where its message comes from.",
        "refmq.broker.handlers.send_back",
        "properties[names.ORIGIN_MESSAGE_ID] = record.message_id",
        "pass",
        "_store",
    ),
    Seeded(
        "origin-of-the-copy",
        "",
        "A retry of a retry names the retry as its origin.",
        "refmq.broker.handlers.send_back",
        "if not properties.get(names.ORIGIN_MESSAGE_ID, '').strip():",
        "if True:",
        "_store",
    ),
    Seeded(
        "copy-counts-twice",
        "",
        "A message that is delivered or committed counts as sent back.",
        "refmq.broker.message_copy",
        "reconsume_times=record.reconsume_times",
        "reconsume_times=record.reconsume_times + 1",
        "copy_of",
    ),
    # --- pulls and offsets ----------------------------------------------------------------------------------------
    Seeded(
        "one-more",
        "",
        "A pull gets one message more than a broker gives at once.",
        "refmq.store.get",
        "count >= config.memory_transfer_count_max",
        "count > config.memory_transfer_count_max",
        "_is_enough",
    ),
    Seeded(
        "commit-told-twice",
        "",
        "The commit of a pull is told twice.",
        "refmq.plane.pull",
        "(step.event,)",
        "(step.event, step.event)",
        "serve_pull",
    ),
    # --- settings and tables --------------------------------------------------------------------------------------
    Seeded(
        "refused-in-part",
        "",
        "Of settings that are refused the legal ones are applied.",
        "refmq.broker.handlers.broker_info",
        "    except UsageError as mistake:\n",
        "    except UsageError as mistake:\n"
        "        name, text = next(iter(given.items()))\n"
        "        await broker.change_config(change_over_the_wire(broker.config, {name: text}), {name: text})\n",
        "update_broker_config",
    ),
    Seeded(
        "setting-not-applied",
        "",
        "A setting is saved, and not applied.",
        "refmq.broker.control_plane",
        "replace(self.state, config=config)",
        "self.state",
        "Broker.change_config",
    ),
    Seeded(
        "groups-not-saved",
        "",
        "A group that is made for a consumer is not saved.",
        "refmq.broker.control_plane",
        "self.environment.spawn(self.save_groups(), 'save groups')",
        "pass",
        "Broker.group",
    ),
    # --- transactions ---------------------------------------------------------------------------------------------
    Seeded(
        "immunity-ignored",
        "",
        "A producer is asked although its message has immunity.",
        "refmq.broker.check_rounds",
        "return self._environment.now_ms() - first_ms < (limits.timeout_ms if wait_ms < 0 else wait_ms)",
        "return self._environment.now_ms() - first_ms < limits.timeout_ms",
        "CheckRounds._is_young",
    ),
    Seeded(
        "op-progress-ahead",
        "",
        "Op messages count as done as soon as they were read.",
        "refmq.broker.check_rounds",
        "op = before.first_op",
        "op = before.next_op",
        "CheckRounds.round_finish",
    ),
    Seeded(
        "ops-of-another-queue",
        "",
        "Op messages are looked for in a queue where there are none.",
        "refmq.broker.check_rounds",
        "units(TRANS_OP_HALF_TOPIC, 0,",
        "units(TRANS_OP_HALF_TOPIC, 1,",
        "CheckRounds.pull_ops",
    ),
    Seeded(
        "op-progress-stays",
        "",
        "The progress of the op messages is not taken over.",
        "refmq.broker.check_rounds",
        "op in before.done",
        "op in before.remove",
        "CheckRounds.round_finish",
    ),
    Seeded(
        "late-decision-by-place",
        "",
        "A decision is taken for whatever half message is at its place.",
        "refmq.broker.transactions",
        "if half.unique_key and (not named & {half.unique_key, record.message_id}):",
        "if False:",
        "Transactions.matching_half",
    ),
    # --- damage ---------------------------------------------------------------------------------------------------
    Seeded(
        "damage-ends-the-work",
        "",
        "A broker stops at a delayed or half message that it cannot read.",
        "refmq.broker.sound_record",
        "set aside: {damage}')\n        return None",
        "set aside: {damage}')\n        raise",
        "sound_record",
    ),
    Seeded(
        "damage-not-noticed",
        "",
        "A damaged message is delivered.",
        "refmq.broker.sound_record",
        "base=position)",
        "base=position, check_crc=False)",
        "sound_record",
    ),
    Seeded(
        "full-disk-delivers-again",
        "",
        "When the disk is full, what was delivered since the cursors were saved is delivered again.",
        "refmq.broker.delay",
        "self._backed_off[level] = TimestampMs(now_ms + RETRY_MS)",
        "self._backed_off[level] = TimestampMs(now_ms + RETRY_MS)\n            self.cursors[level] = self._safe[level]",
        "DelayService._deliver_level",
    ),
    # --- strangers and silent peers -------------------------------------------------------------------------------
    Seeded(
        "one-nameserver-after-the-other",
        "",
        "A nameserver hears of a broker when those before it have answered.",
        "refmq.net.broker_registration",
        "answers = await asyncio.gather(*(self._ask(address, command, limit_s) for address in self._addresses()))",
        "answers = [await self._ask(address, command, limit_s) for address in reversed(self._addresses())]",
        "Registrar._tell",
    ),
    Seeded(
        "only-one-topic-registered",
        "",
        "A topic that an operator changes is registered alone, under the version of the whole table.",
        "refmq.net.broker_registration",
        "wrapper = self._broker.state.topics.wrapper()",
        "wrapper = self._broker.state.topics.wrapper()\n"
        "    last = next(reversed(wrapper.topic_config_table.items()), None)\n"
        "    wrapper = replace(wrapper, topic_config_table=dict([last] if last else []))",
        "Registrar.register_all",
    ),
    Seeded(
        "locks-only-the-first",
        "",
        "Of the queues that are asked for together only the first is lent.",
        "refmq.broker.queue_locks",
        "for queue in queues:",
        "for queue in tuple(queues)[:1]:",
        "lock_queue",
    ),
    Seeded(
        "empty-body-refused",
        "",
        "A message without a body is refused.",
        "refmq.store.append",
        "if len(message.body) >",
        "if not message.body or len(message.body) >",
        "plan_message",
    ),
    Seeded(
        "properties-in-ascii",
        "",
        "Properties are read as ASCII.",
        "refmq.protocol.record",
        "'utf-8'",
        "'ascii'",
        "decode_properties",
    ),
    Seeded(
        "halves-are-unused",
        "",
        "Cleaning unused topics deletes the queue of halves, which has no configuration before a check round.",
        "refmq.broker.handlers.admin_tables",
        "TRANS_HALF_TOPIC, ",
        "",
        "KEPT_WITHOUT_CONFIG",
    ),
)
"""Beside those of `conformance.mutants.cluster`."""
