"""Trust: the found config files that the user lets set everything, each by its path and the SHA-256 of its content.

The list is a JSON file in the user's config folder. A list that another user could have written is not read.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from ...errors import FailedPrecondition, HealdError, InvalidArgument
from ..support.user_files import is_private

TRUST_FILE_NAME = "trusted.json"


def digest(data: bytes) -> str:
    """The hash under which a content is trusted."""
    from hashlib import sha256  # takes 3 ms to import, and few files are trusted

    return sha256(data).hexdigest()


def trusted_hashes(folder: Path | None) -> dict[str, str]:
    """The hashes of trusted files by real path, from the user's config folder. Raises InvalidArgument for a damaged
    list."""
    if folder is None:
        return {}
    path = folder / TRUST_FILE_NAME
    try:
        with path.open("rb") as file:
            text = file.read() if is_private(os.fstat(file.fileno())) else b"{}"
        entries = json.loads(text)
        if not isinstance(entries, dict) or not all(isinstance(value, str) for value in entries.values()):
            raise ValueError("its JSON is no object of paths and hashes")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"the list of trusted config files {path} cannot be read: {error}",
                              hint="delete it, and trust the files again") from error
    return entries


def set_trust(folder: Path | None, path: Path, hashed: str | None) -> bool:
    """Trust a file with this hash; a hash of None ends its trust. Returns True when the file was trusted before.

    Raises FailedPrecondition when the user has no config folder that can be written.
    """
    from ..support.whole_file import PRIVATE, PRIVATE_FOLDER, make_folders, write_whole

    if folder is None:
        raise FailedPrecondition("this user has no home folder for the list of trusted files", hint="set HOME")
    entries = trusted_hashes(folder)
    before = entries.pop(os.path.realpath(path), None)
    if hashed is not None:
        entries[os.path.realpath(path)] = hashed
    try:
        make_folders(folder, PRIVATE_FOLDER)
        write_whole(folder / TRUST_FILE_NAME, [json.dumps(entries, indent=1, sort_keys=True).encode()], mode=PRIVATE)
    except (OSError, HealdError) as error:
        raise FailedPrecondition(f"{folder / TRUST_FILE_NAME} cannot be written: {error}") from error
    return before is not None
