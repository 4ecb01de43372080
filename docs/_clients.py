"""Writes docs/reference/clients.md: what was seen to work with which unmodified client, from the interop tests.

    python docs/_clients.py            # print the page
    python docs/_clients.py --write    # replace the page

Each row of ``ROWS`` names the tests that show it; which clients a test runs with is read from its source. A test
compares the page with what this prints, and fails when a row names a test that is not there.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

PAGE = Path(__file__).parent / "reference" / "clients.md"
TESTS = Path(__file__).parent.parent / "interop" / "tests"

JAVA = ("Java 4.9.8", "Java 5.3.3")
NAMES = {"go": "Go 2.1.2", "cpp": "C++ (Python `rocketmq` 0.4.4)", "node": "Node `ali-ons` 3.12.0"}
COLUMNS = (*JAVA, *NAMES.values())

INTRODUCTION = """\
# What works with which client

The clients are unmodified, from their package registries: `nox -s interop` runs each of these cases against a broker
process (see [run the checks](../how-to/run-the-checks.md)). This page is written by `docs/_clients.py` from the tests.
A dash means that the client has no such function; an empty cell that no test shows it.
"""

NOTES = """\

## What clients do by themselves

Seen with a real 4.9.7 broker as well, so nothing that a broker could repair:

- `request()` without a callback in Java 5.3.3 times out as soon as the question was sent, unless the answer was
  faster. With a callback it works; callbacks of both versions are called with `null` first.
- Consumers of Java 5.3.3 trace only messages that carry a region, and brokers of 4.9 do not write it into them.
- A new group begins with the first message of a queue from which nothing was deleted yet, whatever
  `consumeFromWhere` says.
- `send_batch` of the C++ client does not mark its request as a batch: everything in it is stored as one message.
- The Node client finds no route for a topic that nobody made, and does not ask for the default topic's.
- The C++ client takes no port above 32767, and does not go back when its group's offset is reset under it.
- The C++ client stops consuming for good when it gets a queue back while its pull from before still waits at the broker
  (15 s): members that join and leave in quick succession can do that.
- A reset of offsets keeps a callback thread of a Java 5.3.3 consumer, and answers need one as well: with two brokers on
  two processors it stands still for a minute, unless `clientCallbackExecutorThreads` is larger.
- A consumer of Java 5.3.3 with `clientRebalance=false` asks for POP, is refused, and consumes nothing.
- Messages with a delivery time of Java 5.3.3 (`setDelayTimeMs` and the like) come at once.
- Two processes under one client id (the same address and instance name) take the same queues, and leave others to
  nobody.
- The permission of a topic is looked at by clients, in the route. A producer that names a queue itself can send to
  a topic that is read-only.

mqadmin of 4.9.8 says the same about refmq as about a 4.9.7 broker, for every command in the table. mqadmin of 5.3.3
gets more from refmq: `topicStatus`, `consumerProgress` and `cloneGroupOffset` need a request that 4.9 brokers refuse.
"""

ROWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Send: synchronous, with properties, tags and keys",
        ("test_sync", "test_what_is_sent_is_consumed_with_tag_keys_and_properties"),
    ),
    (
        "Send: asynchronous and one-way",
        ("test_async", "test_one_way", "test_asynchronous_and_one_way_sends_are_stored"),
    ),
    (
        "Send: batch",
        ("test_batch", "test_batch_to_a_queue_and_async_batch", "test_a_batch_goes_to_one_queue_in_order"),
    ),
    (
        "Send: ordered, the queue chosen by key",
        ("test_ordered_by_a_selector", "test_messages_of_one_key_share_a_queue"),
    ),
    (
        "Send: delayed",
        (
            "test_delayed",
            "test_a_delay_level_beyond_the_last_is_the_last",
            "test_a_delayed_message_comes_after_its_delay",
        ),
    ),
    (
        "Send: transactions, committed and rolled back",
        (
            "test_commit_and_rollback",
            "test_a_transaction_is_seen_when_it_is_committed_and_never_when_it_is_not",
        ),
    ),
    (
        "Send: check-back of transactions, also at another producer of the group",
        ("test_another_producer_of_the_group_answers_for_a_dead_one",),
    ),
    (
        "Request and reply",
        ("test_request_and_reply", "test_a_request_that_nobody_answers", "test_a_request_gets_its_reply"),
    ),
    (
        "Large and compressed bodies",
        (
            "test_large_and_compressed",
            "test_a_large_compressible_body_arrives_whole",
            "test_bodies_of_every_size_up_to_the_limit",
            "test_a_body_as_large_as_the_client_takes",
        ),
    ),
    (
        "Any letters in keys, tags, properties and bodies",
        ("test_other_letters_in_keys_tags_and_properties", "test_other_letters_in_keys_tags_and_bodies"),
    ),
    ("Every delay level", ("test_every_delay_level",)),
    (
        "Signed requests",
        ("test_signed_requests_are_served_by_a_broker_that_asks_for_no_signature", "test_signed_requests_are_served"),
    ),
    ("The VIP channel", ("test_the_vip_channel",)),
    ("Unit mode", ("test_unit_mode",)),
    ("Compression with LZ4 and ZSTD", ("test_compressions_of_5",)),
    (
        "Topics made by the first message",
        ("test_a_topic_that_nobody_made", "test_the_first_message_makes_its_topic"),
    ),
    (
        "Namespaces",
        (
            "test_namespaces",
            "test_namespaces_reach_retries_dead_letters_and_transactions",
            "test_a_namespace_is_a_world_of_its_own",
        ),
    ),
    (
        "Push: concurrent, clustering",
        (
            "test_clustering_shares",
            "test_other_strategies_share_too",
            "test_two_members_share_the_queues_and_one_takes_over",
        ),
    ),
    (
        "Push: orderly",
        (
            "test_an_orderly_queue_waits_for_its_first_message",
            "test_an_orderly_message_that_always_fails_is_a_dead_letter_in_the_end",
            "test_an_orderly_consumer_keeps_the_order_although_messages_fail",
            "test_two_orderly_members_keep_the_order_of_each_queue",
        ),
    ),
    (
        "Push: broadcasting",
        (
            "test_broadcasting_gives_everything_to_everybody",
            "test_broadcasting_drops_what_fails",
            "test_broadcast_gives_everything_to_everybody",
        ),
    ),
    (
        "Pull",
        (
            "test_pull",
            "test_pull_waits_until_something_comes",
            "test_pull_commits_and_sends_back",
            "test_pulls_find_wait_and_are_corrected",
        ),
    ),
    (
        "Lite pull, by subscription",
        (
            "test_lite_pull_by_subscription",
            "test_lite_pull_shares_and_filters_by_sql",
            "test_a_polling_consumer_gets_everything_and_commits",
        ),
    ),
    ("Lite pull, by assignment, with seek and pause", ("test_lite_pull_by_assignment",)),
    ("Filter: tags", ("test_tags", "test_tags_of_one_hash_are_told_apart", "test_only_the_wanted_tags_come")),
    (
        "Filter: SQL92",
        ("test_sql92", "test_pull_by_sql92", "test_only_what_the_expression_selects_comes"),
    ),
    (
        "Retries with their delays",
        (
            "test_a_message_that_fails_comes_again",
            "test_a_retry_waits_for_its_delay_level",
            "test_a_refused_message_comes_again_from_the_retry_topic",
        ),
    ),
    (
        "Dead letters",
        (
            "test_dead_letters",
            "test_a_delay_of_minus_one_is_a_dead_letter_at_once",
            "test_a_message_that_is_always_refused_ends_with_the_dead_letters",
        ),
    ),
    (
        "Offsets kept over restarts of consumer or broker",
        (
            "test_offsets_survive_a_restart_of_the_consumer",
            "test_a_restart_keeps_delays_half_messages_and_offsets",
            "test_a_group_goes_on_where_it_was_after_the_broker_restarted",
        ),
    ),
    ("Query by id, key, unique key and time", ("test_query_by_id_key_and_time", "test_offsets_of_a_queue")),
    (
        "Subscriptions that change",
        ("test_a_consumer_changes_its_mind_about_tags", "test_a_group_changes_its_tags"),
    ),
    (
        "Offsets reset from outside, also while messages come",
        (
            "test_an_offset_is_reset_while_messages_come",
            "test_an_offset_is_reset_while_nobody_consumes",
            "test_an_offset_is_reset_under_its_consumer",
        ),
    ),
    ("Message traces", ("test_traces_tell_who_sent_and_who_consumed",)),
    ("TLS", ("test_tls",)),
    ("Binary headers", ("test_binary_headers",)),
    (
        "Two masters, one of which dies",
        ("test_a_master_goes_and_returns_under_load", "test_both_masters_are_used_and_the_death_of_one_loses_nothing"),
    ),
    (
        "Consumers that join, leave and die under load",
        ("test_consumers_come_and_go_and_die", "test_members_join_leave_and_die_under_load"),
    ),
    (
        "A nameserver that restarts",
        ("test_a_nameserver_that_restarts_is_not_missed", "test_the_nameserver_restarts_under_load"),
    ),
    ("A producer that turns to another broker", ("test_a_producer_tries_another_broker_when_one_refuses",)),
    ("`refmq serve`, with a restart", ("test_serve", "test_serve_with_a_restart")),
    (
        "Topics made, listed and deleted by the client",
        ("test_a_client_makes_a_topic", "test_topics_are_made_listed_and_deleted"),
    ),
    ("mqadmin", ("test_mqadmin_hears_the_same_of_both_brokers", "test_a_running_consumer_is_reset_asked_and_told")),
)

GO, CPP, NODE = NAMES["go"], NAMES["cpp"], NAMES["node"]

LACKS: dict[str, tuple[str, ...]] = {
    "Send: asynchronous and one-way": (NODE,),
    "Topics made by the first message": (NODE,),
    "Send: batch": (CPP, NODE),
    "Send: transactions, committed and rolled back": (CPP, NODE),
    "Send: check-back of transactions, also at another producer of the group": (CPP, NODE),
    "Request and reply": (CPP, NODE),
    "The VIP channel": (CPP, NODE),
    "Unit mode": (CPP,),
    "Compression with LZ4 and ZSTD": (JAVA[0], GO, CPP, NODE),
    "Namespaces": (CPP,),
    "Push: orderly": (NODE,),
    "Pull": (NODE,),
    "Lite pull, by subscription": (CPP, NODE),
    "Lite pull, by assignment, with seek and pause": (GO, CPP, NODE),
    "Filter: SQL92": (CPP,),
    "Query by id, key, unique key and time": (GO, CPP, NODE),
    "Offsets reset from outside, also while messages come": (CPP, NODE),
    "Message traces": (CPP, NODE),
    "TLS": (GO, CPP, NODE),
    "Binary headers": (GO, CPP, NODE),
    "Topics made, listed and deleted by the client": (CPP, NODE),
    "mqadmin": (GO, CPP, NODE),
}
"""What a client cannot do: there is no such function in its public interface."""


def clients_of(module: str, function: ast.FunctionDef, constants: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The columns that a test fills."""
    if module.startswith(("test_java_", "test_mqadmin_")):
        return JAVA[1:] if function.name.endswith("_of_5") else JAVA
    if module == "test_go_client":
        return (NAMES["go"],)
    for decorator in function.decorator_list:
        if (
            isinstance(decorator, ast.Call)
            and isinstance(decorator.func, ast.Name)
            and decorator.func.id == "languages"
        ):
            return tuple(NAMES[name] for argument in decorator.args for name in named(argument, constants))
    return tuple(NAMES.values())  # no choice is made: it runs with each


def named(argument: ast.expr, constants: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    if isinstance(argument, ast.Starred) and isinstance(argument.value, ast.Name):
        return constants[argument.value.id]
    assert isinstance(argument, ast.Constant), ast.dump(argument)
    return (str(argument.value),)


def tests() -> dict[str, tuple[str, ...]]:
    """Every test of clients -> the clients that it runs with."""
    found: dict[str, tuple[str, ...]] = {}
    for pattern in ("test_java_*.py", "test_mqadmin_*.py", "test_other_clients*.py", "test_go_client.py"):
        for path in sorted(TESTS.glob(pattern)):
            tree = ast.parse(path.read_text())
            constants = {
                node.targets[0].id: ast.literal_eval(node.value)
                for node in tree.body
                if isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name)
                and isinstance(node.value, ast.Tuple)
                and all(isinstance(item, ast.Constant) for item in node.value.elts)
            }
            for node in tree.body:
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                    found[node.name] = found.get(node.name, ()) + clients_of(path.stem, node, constants)
    return found


def page() -> str:
    """The whole page."""
    known = tests()
    lines = [INTRODUCTION, "| | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for text, names in ROWS:
        missing = [name for name in names if name not in known]
        if missing:
            raise SystemExit(f"{text!r} names tests that are not there: {', '.join(missing)}")
        seen = {client for name in names for client in known[name]}
        lacking = LACKS.get(text, ())
        if seen & set(lacking):
            raise SystemExit(f"{text!r} is said to be lacking where a test shows it: {seen & set(lacking)}")
        cells = ("yes" if client in seen else "–" if client in lacking else "" for client in COLUMNS)
        lines.append(f"| {text} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n" + NOTES


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page())
    else:
        print(page(), end="")
