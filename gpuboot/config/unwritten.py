"""What to say of a file that cannot be written: its path, the cause and the remedy, in one line."""

import errno
from pathlib import Path

_FULL = {errno.ENOSPC, errno.EDQUOT}
_FORBIDDEN = {errno.EACCES, errno.EPERM}
_NO_FOLDER = {errno.ENOTDIR, errno.EEXIST}


def is_full(error: OSError) -> bool:
    """Whether nothing but writing fails so: no space, no quota, or a file system to read from."""
    return error.errno in {*_FULL, errno.EROFS}


def unwritten(path: Path | str, error: OSError) -> str:
    """The line.

    + path: what was to be written; the error's own path is taken where it names one
    """
    target = str(error.filename2 or error.filename or path)
    cause = error.strerror or str(error)
    return f"not written: {target}: {cause}; remedy: {_remedy(target, error)}"


def _remedy(target: str, error: OSError) -> str:
    retry = "then run the same command again"
    if error.errno in _FULL:
        return f"free space or quota there (`df -h {_standing(target)}`), {retry}"
    if error.errno == errno.EROFS:
        return f"mount it for writing, or name another folder, {retry}"
    if error.errno in _FORBIDDEN:
        return f"let this user write there (`ls -ld {_standing(target)}`), {retry}"
    if error.errno in _NO_FOLDER:
        return f"move away the file that stands where a folder has to be, {retry}"
    if error.errno == errno.EISDIR:
        return f"move that folder away, {retry}"
    if error.errno == errno.ENOENT:
        return f"make the folder {Path(target).parent}, {retry}"
    return f"mend that, {retry}"


def _standing(target: str) -> Path:
    """The nearest folder above that exists."""
    path = Path(target)
    return next((folder for folder in (path, *path.parents) if folder.exists()), Path())
