"""Small files that are replaced as a whole: after a crash they hold the old content or the new, never a mixture.

As upstream, the new content goes to ``FILE.tmp``, which is then renamed; the previous content is kept in ``FILE.bak``.
Upstream does not flush. Here each file is durable before it gets its name, so a power loss cannot leave it half done.
"""

from __future__ import annotations

from refmq.model.disk import Disk


def read_text_file(disk: Disk, path: str) -> bytes | None:
    """The content, or None when there is no such file."""
    if not disk.exists(path):
        return None
    file = disk.open(path, writable=False)
    try:
        return file.read(0, file.size_bytes)
    finally:
        file.close()


def read_text_file_or_backup(disk: Disk, path: str) -> bytes | None:
    """The content, or that of the backup if the file is missing or empty."""
    return read_text_file(disk, path) or read_text_file(disk, f"{path}.bak")


async def replace_text_file(disk: Disk, path: str, content: bytes) -> None:
    """Replaces the content in one step and keeps the previous one as a backup. Never call it twice at the same time."""
    previous = read_text_file(disk, path)
    if previous == content:
        # A save that failed or a process that died may have left the name without making it durable.
        file = disk.open(path)
        try:
            await file.flush()
        finally:
            file.close()
        await _flush_directories(disk, path)
        return
    if previous:
        await _write_under_name(disk, f"{path}.bak", previous)
    await _write_under_name(disk, path, content)


async def _write_under_name(disk: Disk, path: str, content: bytes) -> None:
    assert path, "a file has a name"
    temporary = f"{path}.tmp"
    if disk.exists(temporary):
        disk.remove(temporary)  # left by a crash
    file = disk.create(temporary, len(content))
    try:
        if content:
            file.write(0, content)
        await file.flush()
    finally:
        file.close()
    disk.rename(temporary, path)
    await _flush_directories(disk, path)


async def _flush_directories(disk: Disk, path: str) -> None:
    """Makes the name of a file and those of its directories durable: whoever made them may have died before that."""
    directory = path
    while directory:
        directory, _, _ = directory.rpartition("/")
        await disk.flush_directory(directory)
