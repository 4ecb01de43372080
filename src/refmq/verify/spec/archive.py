"""TLC's classes, loaded once and cached: the JVM's archive of application classes (JDK 13 and later).

Most runs of TLC here take about a second, half of which goes into loading classes. The first run writes what it loaded
to an archive in the user's cache folder; later runs map it. The archive only saves time: without one, or with one that
does not fit, the JVM loads the classes as usual.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

ARCHIVE_NAME = "classes.jsa"


def archive_path(java: str, jar: str) -> Path | None:
    """Where the archive for this Java and this jar is or belongs; None when one of them cannot be read."""
    digest = hashlib.sha256()
    try:
        for name in (java, jar):
            path = Path(name).resolve()
            status = path.stat()
            digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    except OSError:
        return None
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "refmq" / f"tlc-{digest.hexdigest()[:16]}.jsa"


def archive_options(archive: Path | None, scratch: Path) -> list[str]:
    """JVM options that use the archive, or make one in the scratch folder."""
    if archive is None:
        return []
    if archive.is_file():
        return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    return [f"-XX:ArchiveClassesAtExit={scratch / ARCHIVE_NAME}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def keep_archive(archive: Path | None, scratch: Path) -> None:
    """Move an archive that a run has made to its place, atomically."""
    made = scratch / ARCHIVE_NAME
    if archive is None or archive.is_file() or not made.is_file():
        return
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        beside = archive.with_suffix(f".{os.getpid()}")
        shutil.copyfile(made, beside)
        beside.replace(archive)
    except OSError:
        return  # a folder that cannot be written: every run loads the classes itself
