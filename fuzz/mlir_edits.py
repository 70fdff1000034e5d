"""Edits of MLIR texts, of programs and of graphs, by the parts that their parsers take (`mlir_spans`).

Most edits leave a text that parses: a part stands in the place of another one of its kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from . import tokens
from .mlir_spans import ATTRIBUTE, OPERAND, OPERATION, REGION, SYMBOL, TYPE, Span, spans
from .raw import EDGES, LARGEST_MUTANT_BYTES, Words

_TYPES = ("i1", "i32", "i64", "ui8", "f32", "f64", "bf16", "index", "!tfrt.chain", "tensor<2x3xf32>", "tensor<?xi32>",
          "tensor<*xf32>", "tensor<f32>", "tensor<0xf32>", "tensor<1000000x1000000xf32>", "tensor<3x!tf_type.string>",
          "!tfrt.string", "tensor<*x!tf_type.resource>", "!tf_type.control", "none", "complex<f32>")
_WEIGHT_OF_SPAN_KIND = {ATTRIBUTE: 6, TYPE: 4, OPERAND: 4, OPERATION: 3, SYMBOL: 1, REGION: 0.5}
_RESULT_NAMES = re.compile(r"\s*%[^=\"\n]*=\s*")
_NUMBER = re.compile(r"(?<![\w%#.])-?\d+(?:\.\d+(?:e[+-]?\d+)?)?(?=[\sx,>\]})]|\Z)")
_DIM = re.compile(r"(?<=[<x])(?:\d+|\?)(?=x)")
_NAME = re.compile(r'(?:[^="]*=\s*)?("[^"\n]+"|[A-Za-z_][\w$.]*)')  # behind the names of results
_ATTEMPTS = 6  # to find a change that the text has a place for
_NODE_NAME = re.compile(r'((?:name\(|_mlir_name = )"[^"\n]*)"')
_VALUE = re.compile(r"%([\w$.\-]+)")
_DEFINED = re.compile(r"%([\w$.\-]+)(?=(?::\d+)?\s*=|:\s)")
_GAPS = ("\n", "\n    ", "\t", " // note\n", "\r\n", "\n//\n")
_DEPTHS = (1, 2, 5, 33, 70)  # of a region within itself

Change = Callable[[Random, str, Sequence[Span], str], str | None]


def edit(rng: Random, data: bytes, other: bytes, words: Words) -> bytes:
    """An edit of a part in nine of ten cases, else of tokens."""
    if rng.random() < 0.1:
        return tokens.edit(rng, data, other, words)
    text, theirs = (raw.decode("utf-8", "surrogateescape") for raw in (data, other))
    parts = spans(text)
    attempts = (rng.choices(CHANGES, _WEIGHTS)[0](rng, text, parts, theirs) for _ in range(_ATTEMPTS if parts else 0))
    changed = next((attempt for attempt in attempts if attempt not in (None, text)), None)
    if changed is None:
        return tokens.edit(rng, data, other, words)
    encoded = changed.encode("utf-8", "surrogateescape")
    return encoded if len(encoded) <= LARGEST_MUTANT_BYTES else data


def _any_span(rng: Random, parts: Sequence[Span], *kinds: str) -> Span | None:
    some = [span for span in parts if span.kind in kinds]
    return rng.choice(some) if some else None


def _replace_span(text: str, span: Span, new: str) -> str:
    return text[: span.begin] + new + text[span.end :]


def _of(text: str, span: Span) -> str:
    return text[span.begin : span.end]


def _results_of(operation: str) -> str:
    """The names of an operation's results, and the sign behind them."""
    match = _RESULT_NAMES.match(operation)
    return match[0] if match else ""


def _behind_results(operation: str) -> str:
    return operation[len(_results_of(operation)) :]


def _with_new_names(operation: str, number: int) -> str:
    """An operation with new names for its results and for its node."""
    head = re.sub(r"%([\w$.\-]+)", rf"%r\1_{number}", _results_of(operation))
    return head + _NODE_NAME.sub(rf'\1_{number}"', _behind_results(operation))


def _exchange(rng: Random, text: str, parts: Sequence[Span], theirs: str) -> str | None:
    """A part in the place of another one: mostly of the same class or type, from this text or the other one."""
    kind = rng.choices([*_WEIGHT_OF_SPAN_KIND], [*_WEIGHT_OF_SPAN_KIND.values()])[0]
    span = _any_span(rng, parts, kind)
    if span is None:
        return None
    source, donors = (theirs, spans(theirs)) if kind in (ATTRIBUTE, TYPE) and rng.random() < 0.4 else (text, parts)
    donors = [donor for donor in donors if donor.kind == kind]
    alike = [donor for donor in donors if donor.alike == span.alike] if rng.random() < 0.95 else donors
    if kind == TYPE and rng.random() < 0.15:
        return _replace_span(text, span, rng.choice(_TYPES))
    if not alike:
        return None
    new = _of(source, rng.choice(alike))
    return _replace_span(text, span, _results_of(_of(text, span)) + _behind_results(new) if kind == OPERATION else new)


def _type_everywhere(rng: Random, text: str, parts: Sequence[Span], theirs: str) -> str | None:
    """Another type in all places of one: values keep one type."""
    span = _any_span(rng, parts, TYPE)
    if span is None:
        return None
    old = _of(text, span)
    donor = _any_span(rng, spans(theirs), TYPE)
    new = _DIM.sub(lambda _: rng.choice(("?", "0", "1", "2", "3", "7", "1000", str(1 << 33))), old)
    if new == old:
        new = rng.choice((*_TYPES, _of(theirs, donor) if donor else "i32"))
    return re.sub(rf"(?<![\w!.]){re.escape(old)}(?![\w.<])", lambda _: new, text)


def _number(rng: Random, text: str, parts: Sequence[Span], _theirs: str) -> str | None:
    """Another number within an attribute or a type."""
    some = [span for span in parts if span.kind in (ATTRIBUTE, TYPE) and _NUMBER.search(text, span.begin, span.end)]
    if not some:
        return None
    span = rng.choice(some)
    part = _of(text, span)
    match = rng.choice([*_NUMBER.finditer(part), *_DIM.finditer(part)])
    new = str(rng.choice((rng.choice(EDGES), rng.randrange(-2, 9), rng.randrange(-2, 9))))
    if "." in match[0]:
        new = rng.choice(("0.0", "1.5", "-1.0e30", "1.0e400", "0x7FC00000", new))
    return _replace_span(text, span, part[: match.start()] + new + part[match.end() :])


def _delete(rng: Random, text: str, parts: Sequence[Span], _theirs: str) -> str | None:
    """An operation or an attribute less; with an attribute its name goes."""
    span = _any_span(rng, parts, OPERATION, ATTRIBUTE)
    if span is None:
        return None
    begin = span.begin
    if span.kind == ATTRIBUTE:
        name = re.search(r'(?:[\w$.]+|"[^"\n]*")\s*=\s*\Z', text[:begin])
        begin = name.start() if name else begin
        if follow := re.match(r"\s*,\s*", text[span.end :]):
            return text[:begin] + text[span.end + follow.end() :]
        return text[:begin].rstrip().removesuffix(",") + text[span.end :]
    return text[:begin] + text[span.end :]


def _repeat(rng: Random, text: str, parts: Sequence[Span], _theirs: str) -> str | None:
    """An operation again, behind itself, with new names for its results."""
    span = _any_span(rng, parts, OPERATION)
    if span is None:
        return None
    part = _of(text, span)
    copies = [_with_new_names(part, number) for number in range(rng.choice((1, 1, 2, 40)))]
    return text[: span.end] + "\n" + "\n".join(copies) + text[span.end :]


def _swap(rng: Random, text: str, parts: Sequence[Span], _theirs: str) -> str | None:
    """Two parts of a kind in each other's place."""
    first = _any_span(rng, parts, OPERATION, ATTRIBUTE, OPERAND)
    if first is None:
        return None
    others = [span for span in parts if (span.kind, span.alike) == (first.kind, first.alike) and (
        span.begin >= first.end or span.end <= first.begin)]
    if not others:
        return None
    one, two = sorted((first, rng.choice(others)), key=lambda span: span.begin)
    return (text[: one.begin] + _of(text, two) + text[one.end : two.begin] + _of(text, one) + text[two.end :])


def _rename(rng: Random, text: str, parts: Sequence[Span], theirs: str) -> str | None:
    """The name of another operation: one with the same types, in the same form."""
    span = _any_span(rng, parts, OPERATION)
    old = _NAME.match(_of(text, span)) if span else None
    if span is None or old is None:
        return None
    names = [match[1] for source, others in ((text, parts), (theirs, spans(theirs))) for other in others
             if (other.kind, other.alike) == (OPERATION, span.alike) and (match := _NAME.match(_of(source, other)))]
    names = [name for name in names if name != old[1] and (name[0] == '"') == (old[1][0] == '"')]
    if not names:
        return None
    return text[: span.begin + old.start(1)] + rng.choice(names) + text[span.begin + old.end(1) :]


def _graft(rng: Random, text: str, parts: Sequence[Span], theirs: str) -> str | None:
    """An operation of the other text, whose operands are values of this one."""
    span, donor = _any_span(rng, parts, OPERATION), _any_span(rng, spans(theirs), OPERATION)
    values = [_of(text, operand) for operand in parts if operand.kind == OPERAND]
    if span is None or donor is None or not values:
        return None
    part = _with_new_names(_of(theirs, donor), rng.randrange(100))
    body = re.sub(r"%[\w$.\-]+(?:#\d+)?", lambda _: rng.choice(values), _behind_results(part))
    return text[: span.begin] + _results_of(part) + body + "\n" + text[span.begin :]


def _nest(rng: Random, text: str, parts: Sequence[Span], _theirs: str) -> str | None:
    """An operation with a region within this region, many times: it stands before the first operation there."""
    outer = [part for part in parts if part.kind == OPERATION and "{\n" in _of(text, part)]
    span = rng.choice(outer) if outer else None
    regions = [part for part in parts if part.kind == REGION and span and span.begin < part.begin < span.end]
    begins = [part.begin for part in parts if regions and part.kind == OPERATION
              and regions[0].begin < part.begin < regions[0].end]
    if span is None or not begins:
        return None
    at = min(begins)
    defined = set(_DEFINED.findall(_of(text, span)))
    before, after = text[span.begin : at], text[at : span.end]
    levels = range(min(rng.choice(_DEPTHS), LARGEST_MUTANT_BYTES // (4 * len(before + after))) + 1)

    def part(text: str, level: int) -> str:
        if not level:
            return text
        named = _NODE_NAME.sub(rf'\1_{level}"', text)
        return _VALUE.sub(lambda match: f"{match[0]}_{level}" if match[1] in defined else match[0], named)

    return _replace_span(text, span, "\n".join([*(part(before, level) for level in levels),
                                                *(part(after, level) for level in reversed(levels))]))


def _spread(rng: Random, text: str, _parts: Sequence[Span], _theirs: str) -> str | None:
    """Line breaks and comments in the place of some spaces, or all lines in one."""
    if rng.random() < 0.1:
        return text.replace("\n", " ")
    share = rng.choice((0.02, 0.1, 0.5))
    return re.sub(" +", lambda match: rng.choice(_GAPS) if rng.random() < share else match[0], text)


_WEIGHTED: dict[Change, float] = {_exchange: 6, _type_everywhere: 1.5, _number: 5, _delete: 1, _repeat: 1, _swap: 1,
                                  _rename: 2, _graft: 1, _spread: 1, _nest: 0.3}
CHANGES, _WEIGHTS = tuple(_WEIGHTED), tuple(_WEIGHTED.values())
