"""Mistakes of access control, and the tests that have to find them.

Histories do not reach it: a simulated client has no account. So each mistake is tried with the tests of its modules, in
a process of its own (`try_access`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.mutants.mistake import Seeded

ROOT: Final = Path(__file__).parent.parent.parent
TRIAL_SECONDS_MAX: Final = 600

PURE: Final = ("tests/acl",)
ATTACKS: Final = ("tests/net/test_access.py",)
FILES: Final = ("tests/net/test_acl_files.py",)
NAMES: Final = ("tests/net/test_nameserver_access.py",)

_TRIAL: Final = """
import json, sys
import pytest
from conformance.mutants.apply import change_on_import
from conformance.mutants.mistake import change_of
mutant, *tests = sys.argv[1:]
change = json.loads(mutant)
if change:
    change_on_import(change["module"], change_of(change))
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *tests]))
"""


@dataclass(frozen=True, slots=True)
class Trial:
    """A mistake and where to look for it."""

    mistake: Seeded
    tests: tuple[str, ...] = PURE


def _of(
    name: str, bug: str, text: str, module: str, old: str, new: str, function: str = "", tests: tuple[str, ...] = PURE
) -> Trial:
    return Trial(Seeded(name, bug, text, module, old, new, function), tests)


SEEDED_ACCESS: Final = (
    _of(
        "code-without-rule", "", "A request code has no rule.",
        "refmq.acl.rules", "    Code.GET_BROKER_CONFIG,\n", "",
    ),
    _of(
        "admin-code-left-out", "B108", "The request that changes accounts is left out of those that need an admin.",
        "refmq.acl.rules", "for code in _BY_WHAT_IS_FOUND}",
        "for code in (*_BY_WHAT_IS_FOUND, Code.UPDATE_AND_CREATE_ACL_CONFIG)}",
    ),
    _of(
        "batch-is-free", "", "A batch needs no permission, as upstream has it.",
        "refmq.acl.rules", "Code.SEND_BATCH_MESSAGE: _send,", "Code.SEND_BATCH_MESSAGE: lambda command: iter(()),",
    ),
    _of(
        "group-of-the-request", "", "A send to a retry topic needs whatever group the request names.",
        "refmq.acl.rules", "yield (topic, Permission.SUB if topic.startswith(RETRY_PREFIX) else Permission.PUB)",
        "retry = (retry_topic(_field(command, 'a')), Permission.SUB)\n"
        "    yield retry if topic.startswith(RETRY_PREFIX) else (topic, Permission.PUB)",
        "_send",
    ),
    _of(
        "no-rule-is-allowed", "B112", "What has no rule is let through.",
        "refmq.acl.check", 'return f"No rule for request code={command.code}"', "return None",
    ),
    _of(
        "admin-check-dropped", "", "Nobody asks whether the account is an admin's.",
        "refmq.acl.check", "case Admin() if not account.admin:", "case Admin() if False:",
    ),
    _of(
        "signature-may-be-missing", "", "A request without a signature needs no right one.",
        "refmq.acl.check", "if not signature_is_valid(command, account.secret_key):",
        'if command.fields.get("Signature") and not signature_is_valid(command, account.secret_key):',
    ),
    _of(
        "body-not-signed", "", "The signature does not cover the body.",
        "refmq.protocol.acl", "for name in names), body))", "for name in names), b''))",
    ),
    _of(
        "default-of-the-request", "B109", "The default is what the request needs, not what the account has.",
        "refmq.acl.accounts", "self.resources.get(resource, default)", "self.resources.get(resource, needed)",
        "Account.allows",
    ),
    _of(
        "prefix-of-a-name", "", "A permission holds for every name that begins like its own.",
        "refmq.acl.accounts", "self.resources.get(resource, default)",
        "next((p for name, p in self.resources.items() if resource.startswith(name)), default)", "Account.allows",
    ),
    _of(
        "denial-ignored", "", "DENY is a bit like the others.",
        "refmq.acl.accounts", "not owned & Permission.DENY and ", "", "Account.allows",
    ),
    _of(
        "missing-default-allows", "", "A default that is missing allows everything.",
        "refmq.acl.accounts", '.get((word or "").strip(), Permission.DENY)',
        '.get((word or "").strip(), Permission.PUB | Permission.SUB)',
    ),
    _of(
        "blank-is-everything", "", "A blank pattern, which every account has, matches every address.",
        "refmq.acl.addresses", "return AddressPattern(text)\n", "return AddressPattern(text, matches_all=True)\n",
    ),
    _of(
        "white-list-matches-all", "", "A pattern with a free octet matches every address.",
        "refmq.acl.addresses", "low <= part <= high", "low <= part or part <= high",
    ),
    _of(
        "address-by-prefix", "", "An address is compared as far as the pattern goes, as a text.",
        "refmq.acl.addresses", "if address in self.among:",
        "if any(host.startswith(str(each)) for each in self.among):", "AddressPattern.matches",
    ),
    _of(
        "old-record-written-back", "B115", "A change of an account writes back the record that was read.",
        "refmq.acl.changes", "accounts[at] = account", "accounts[at] = accounts[at]",
    ),
    _of(
        "list-with-a-blank", "B113", "An empty list of permissions has one empty entry.",
        "refmq.acl.changes", 'entries.split(",")',
        "(entries.split(',') if entries else ['=DENY'])",
    ),
    _of(
        "aliases-followed", "", "Aliases in a file are followed.",
        "refmq.acl.document", "isinstance(event, yaml.AliasEvent) or", "False and",
    ),
    _of(
        "mistake-empties-a-file", "", "A file with a mistake loses its accounts while the server runs.",
        "refmq.net.acl_files", "            elif path in known:\n                files[path] = known[path]\n", "",
        tests=FILES,
    ),
    _of(
        "written-before-read-back", "", "A change that could not be written counts all the same.",
        "refmq.net.acl_files", "_replace(Path(path), data)",
        "self._take({path: read})\n        _replace(Path(path), data)",
        tests=FILES,
    ),
    _of(
        "hot-path-unchecked", "", "The hot path is served unchecked.",
        "refmq.plane.serve", "if denied is not None:", "if denied is not None and code not in SERVERS:", tests=ATTACKS,
    ),
    _of(
        "parked-pull-unchecked", "", "A pull that waits is answered although its account is gone.",
        "refmq.plane.pull", "if denied is not None:  #", "if False:  #", tests=ATTACKS,
    ),
    _of(
        "open-without-files", "B112", "Without its files access control lets everybody in.",
        "refmq.plane.snapshot", "NO_POLICY if self.access is None", "None if self.access is None", tests=ATTACKS,
    ),
    _of(
        "message-by-offset", "", "Any account gets any message by its offset.",
        "refmq.broker.handlers.query", "if denied is not None:", "if False:", tests=ATTACKS,
    ),
    _of(
        "back-by-offset", "", "Any account gets any message sent back to its own group.",
        "refmq.broker.handlers.send_back", "if denied is not None:", "if False:", tests=ATTACKS,
    ),
    _of(
        "any-decision", "", "Any account decides about any transaction.",
        "refmq.broker.handlers.transaction", "if denied is not None:", "if False:", tests=ATTACKS,
    ),
    _of(
        "check-back-to-anybody", "", "A check-back goes to whoever says that he is in the group.",
        "refmq.broker.handlers.transaction", " and broker.may_be_told(peer, topic):", ":", tests=ATTACKS,
    ),
    _of(
        "fast-front-unasked", "", "C serves the hot path in front of the check.",
        "refmq.net.fast_plane", '"hands_over_all": config.acl_enable', '"hands_over_all": False', tests=ATTACKS,
    ),
    _of(
        "long-registrations-unchecked", "", "A nameserver checks short requests only.",
        "refmq.net.nameserver", "if denied is not None:", "if denied is not None and not _is_long(command):",
        tests=NAMES,
    ),
    _of(
        "nameserver-never-looks", "", "A nameserver does not know of deleted accounts.",
        "refmq.net.nameserver", "nameserver_guard(self._accounts.policy)",
        "self.__dict__.setdefault('first', nameserver_guard(self._accounts.policy))", tests=NAMES,
    ),
)  # fmt: skip
"""Each with the tests that have to fail."""


def try_access(trial: Trial | None, tests: tuple[str, ...] = ()) -> tuple[bool, str]:
    """Whether the tests fail with a mistake (None: with none), and the line of the first that does."""
    change = {} if trial is None else trial.mistake.to_json()
    command = [sys.executable, "-c", _TRIAL, json.dumps(change), *(tests if trial is None else trial.tests)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TRIAL_SECONDS_MAX, cwd=ROOT)
    first = next(
        (line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))), done.stderr[-200:]
    )
    assert done.returncode in (0, 1), f"the tests did not run: {done.stdout[-1000:]}{done.stderr[-1000:]}"
    return done.returncode == 1, first
