"""The account that a process signs with: from `tools.yml`, as mqadmin has it, or from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from refmq.acl.accounts import text_of
from refmq.acl.document import read_document
from refmq.errors import UsageError
from refmq.protocol.acl import Credentials

TOOLS_FILE: Final = "tools.yml"
ACCESS_KEY: Final = "ROCKETMQ_ACCESS_KEY"
SECRET_KEY: Final = "ROCKETMQ_SECRET_KEY"
SECURITY_TOKEN: Final = "ROCKETMQ_SECURITY_TOKEN"


def credentials_of_environment(environment: Mapping[str, str] = os.environ) -> Credentials | None:
    """The account of `ROCKETMQ_ACCESS_KEY` and `ROCKETMQ_SECRET_KEY`; None without either. One alone is a mistake."""
    access_key, secret_key = environment.get(ACCESS_KEY, ""), environment.get(SECRET_KEY, "")
    if not access_key and not secret_key:
        return None
    if not access_key or not secret_key:
        raise UsageError(f"{ACCESS_KEY} and {SECRET_KEY} must be set together.")
    return Credentials(access_key, secret_key, environment.get(SECURITY_TOKEN) or None)


def credentials_of_file(path: Path) -> Credentials | None:
    """The account of a `tools.yml`; None where there is no such file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
    document = read_document(data, str(path))
    access_key, secret_key = text_of(document, "accessKey"), text_of(document, "secretKey")
    if not access_key or not secret_key:
        raise UsageError(f"{path} should have accessKey and secretKey.")
    return Credentials(access_key, secret_key)


def credentials_of_server(folder: Path) -> Credentials | None:
    """The account of a server whose configuration is in `folder`: its `tools.yml` first, then the environment."""
    return credentials_of_file(folder / TOOLS_FILE) or credentials_of_environment()
