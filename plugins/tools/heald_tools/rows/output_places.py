"""The kinds of places that --output names: standard output, a file, a folder of shards, of pictures or of sounds."""

from __future__ import annotations

import os
from pathlib import Path

from heald.errors import InvalidArgument, Unimplemented

from . import sound_files
from .formats import check_library
from .writers import LIBRARIES, WRITERS

STDOUT = "-"
GROWING = (".csv", ".jsonl")  # formats whose files may grow
PICTURE_SUFFIXES = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}  # Pillow's formats
SHARDS = (*GROWING, ".parquet")  # formats of a folder's files
JOURNAL = "journal.json"  # of a folder


def is_folder(output: str) -> bool:
    return output.endswith(("/", os.sep)) or Path(output).is_dir() or Path(output).name.startswith("*.")


def folder_of(output: str) -> Path:
    """The folder of an output such as out/ or out/*.jsonl."""
    return Path(output).parent if Path(output).name.startswith("*.") else Path(output)


def is_of_pictures(output: str) -> bool:
    return Path(output).name.startswith("*.") and Path(output).suffix.lower() in PICTURE_SUFFIXES


def check_output(output: str, *, resume: bool, sound_rate: int | None = None) -> None:
    """Raises InvalidArgument for a place of no known format, or for sounds without a rate; Unimplemented for one that
    cannot resume."""
    if is_of_pictures(output):
        return
    suffix = shard_suffix(output) if is_folder(output) else Path(output).suffix.lower()
    if is_of_sounds(output):
        if sound_rate is None:
            raise InvalidArgument(f"--output '{output}' needs the rate of its sounds", hint="--sample-rate 16000")
        if resume:
            raise Unimplemented("--resume: a folder of sounds has no journal", hint="a table resumes")
        return
    if output != STDOUT and suffix not in (SHARDS if is_folder(output) else WRITERS):
        known = ", ".join(SHARDS if is_folder(output) else WRITERS)
        raise InvalidArgument(f"--output '{output}' is no file of a known format",
                              hint=f"known: {known}; a folder such as 'out/' or 'out/*.jsonl' gets shards, "
                                   "'out/*.png' pictures, 'out/*.wav' sounds")
    if output != STDOUT:
        check_library(LIBRARIES.get(suffix), f"writing '{output}'")
    if resume and not is_folder(output) and suffix not in GROWING:
        raise Unimplemented(f"--resume: '{output}' is written at the end alone",
                            hint=f"these grow: {', '.join(GROWING)}, and a folder")


def journal_path(output: str) -> Path | None:
    """The place of the journal; None for an output that has none."""
    if output == STDOUT or is_of_sounds(output):
        return None
    if is_folder(output):
        return folder_of(output) / JOURNAL
    return Path(f"{output}.parts") / JOURNAL if Path(output).suffix.lower() in GROWING else None


def is_of_sounds(output: str) -> bool:
    return is_folder(output) and shard_suffix(output) == sound_files.SUFFIX


def shard_suffix(output: str) -> str:
    name = Path(output).name
    return name[1:].lower() if name.startswith("*.") else ".csv"
