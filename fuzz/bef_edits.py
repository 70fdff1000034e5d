"""Edits of BEF files: of the decoded model, with types repaired or not, and of a section, with lengths that fit."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from random import Random

from heald import bef
from heald.errors import HealdError
from heald.runtime.program import CompiledModel
from heald.runtime.program.bef.sections import MAGIC, VERSION, Section, put_header, read_sections
from heald.runtime.program.bef.vbr import put_vbr

from . import raw
from .compiled_models import edit_model
from .model_types import repair_types
from .raw import EDGES, LARGEST_MUTANT_BYTES, Words


def edit_repaired(rng: Random, data: bytes, other: bytes, words: Words) -> bytes:
    """An edit of the decoded model. All types are then derived by the ops' rules."""
    return _edit_model(rng, data, other, words, repair_types)


def edit_lying(rng: Random, data: bytes, other: bytes, words: Words) -> bytes:
    """An edit of the decoded model, whose types stay as they are stated."""
    return _edit_model(rng, data, other, words, lambda model: model)


def _edit_model(
    rng: Random, data: bytes, other: bytes, words: Words, finish: Callable[[CompiledModel], CompiledModel]
) -> bytes:
    """An edit of the decoded model. A file that does not decode gets an edit of a section."""
    model, theirs = _decode(data), _decode(other)
    if model is None or theirs is None:
        return edit_section(rng, data, other, words)
    try:
        encoded = bef.dumps(finish(edit_model(rng, model, theirs)))
    except (HealdError, LookupError, MemoryError, TypeError, ValueError):  # such as a register without a type
        return data
    return encoded if len(encoded) <= LARGEST_MUTANT_BYTES else data


@lru_cache(512)
def _decode(data: bytes) -> CompiledModel | None:
    """The model with all of its functions; None for a file that is no model."""
    try:
        model = bef.loads(data)
        functions = dict(model.program.functions)
        return model._replace(program=model.program._replace(
            functions=functions, constants=tuple(model.program.constants)), prepared=tuple(model.prepared))
    except HealdError:
        return None


def edit_section(rng: Random, data: bytes, other: bytes, words: Words) -> bytes:
    """A file with one section changed, whose header has its new length."""
    try:
        sections = {number: data[begin:end] for number, (begin, end) in read_sections(memoryview(data)).items()}
        theirs = {number: other[begin:end] for number, (begin, end) in read_sections(memoryview(other)).items()}
    except HealdError:
        return raw.edit(rng, data, other, words)
    if not sections:
        return raw.edit(rng, data, other, words)
    number = rng.choice([*sections])
    old = sections[number]
    sections[number] = rng.choice((_numbers, _numbers, _numbers, rng.choice(raw.EDITS)))(
        rng, old, theirs.get(number, old), words)
    out = bytearray(MAGIC + bytes((VERSION,)))
    for section, content in sections.items():
        out += put_header(Section(section), len(content), len(out)) + content
    return bytes(out) if len(out) <= LARGEST_MUTANT_BYTES else data


def _numbers(rng: Random, data: bytes, _other: bytes, _words: Words) -> bytes:
    """Another number in the place of one: a word of 32 bits, or a VBR of as many bytes as a rule."""
    if not data:
        return data
    if len(data) >= 8 and rng.random() < 0.4:
        at = rng.randrange(len(data) // 4) * 4
        number = rng.choice((rng.randrange(16), rng.choice(EDGES) % (1 << 32)))
        return data[:at] + number.to_bytes(4, "little") + data[at + 4 :]
    at = rng.randrange(len(data))
    return data[:at] + put_vbr(rng.choice((rng.randrange(128), rng.choice(EDGES) % (1 << 64)))) + data[at + 1 :]
