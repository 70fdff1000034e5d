"""OpTable: an op set as data, registered whole and decoded one op at a time.

The file `rows` is UTF-8 text. Its first line is a comment. Each other line is an op: its name, a tab, a JSON object.
The object has these keys, all optional:

    in, out                    arguments: name, one of type | attr (a type attribute) | types (a list of types);
                               n: the attribute that says how many; ref: true for a reference
    attr                       by name: type, default, min, allowed
    stateful, commutative      booleans
    for_effect                 true where the outputs only repeat the inputs, or are a record for tools: `heald.load`
                               takes none as a result
    deprecated                 the GraphDef version from which on the op is refused

A row is found by bisection where the lines come in the order of their names' bytes. A name that bisection misses, but
the file contains, is looked for among all rows, which are then divided: 1.5 ms for TensorFlow's ops.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ...errors import PluginError
from ..support.plugin_guard import plugin_guard
from ..support.records import NamedTuple, record
from ..values import dtypes
from ..values.tensor import TensorMetadata
from .device import load_callable
from .op import REQUIRED, ArgDef, AttrDef, Attrs, MetadataRule, OpDef

Metas = Sequence[TensorMetadata]
Rules = Callable[[str], MetadataRule | None]


class OpCost(NamedTuple):
    """The work of a node: floating-point operations by the op's definition, bytes of its inputs and outputs."""

    flops: int
    nbytes: int


Costs = Callable[[str, Attrs, Metas, Metas], OpCost]

MOST_ABSENT_NAMES = 4  # a search takes 0.2 ms in TensorFlow's table


@record
class OpTable(Mapping[str, OpDef]):
    """An op set. Nothing of it is read or imported before an op is asked for.

    `rules` gives an op's metadata function by the op's name. An input that the function returns keeps its known
    elements. `costs` gives a node's work from the op's name, its attributes, and the metadata of inputs and outputs.
    Both may be named "module:function", which imports them when they are first needed. `tiers` is a text file of op,
    tab, tier: how often real graphs have the op, 1 most often. `probe` is an op that adds two tensors of type `T`: a
    device must give the right sum by it before it is offered.
    """

    rows: Path
    rules: str | Rules | None = None
    costs: str | Costs | None = None
    tiers: Path | None = None
    probe: str | None = None

    def __getitem__(self, name: str) -> OpDef:
        """The op's signature. Raises KeyError, and PluginError for a row that cannot be decoded."""
        row = self._row(name)
        if row is None:
            raise KeyError(name)
        try:
            return _decode(name, json.loads(row))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PluginError(f"the row of op {name} in '{self.rows}' cannot be decoded: {error}", op=name,
                              hint="install the plugin again") from error

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._row(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def rule(self, name: str) -> MetadataRule | None:
        """The op's metadata function, or None where it has none. Raises PluginError where `rules` fails."""
        if self.rules is None:
            return None
        with plugin_guard(f"the rules of the op table '{self.rows}'"):
            rule = load_callable(self.rules)(name)
        if not isinstance(rule, MetadataRule | None):
            raise PluginError(f"the rules of the op table '{self.rows}' give a {type(rule).__name__} for {name}, not a "
                              "MetadataRule", op=name)
        return rule

    def cost(self, name: str, attrs: Attrs, inputs: Metas, outputs: Metas) -> OpCost | None:
        """The work of a node, or None where the table knows no costs. Raises PluginError where `costs` fails."""
        if self.costs is None:
            return None
        with plugin_guard(f"the costs of the op table '{self.rows}'"):
            cost: OpCost = load_callable(self.costs)(name, attrs, inputs, outputs)
        return cost

    @cached_property
    def tier_of(self) -> Mapping[str, int]:
        """The tier of each op that real graphs were found to have."""
        return {} if self.tiers is None else {op: int(tier) for op, tier in _lines(self.tiers)}

    def _row(self, name: str) -> str | None:
        if "_rows" not in self.__dict__ and name not in self._found_rows:
            try:
                encoded = name.encode()
                row = bisect_row(self._content, encoded)
                if row is not None:
                    self._found_rows[name] = row.decode()
                elif self._has_nowhere(encoded):
                    return None
            except UnicodeError:
                pass  # the search of all rows tells of it
        return self._found_rows.get(name) or self._rows.get(name)

    @cached_property
    def _found_rows(self) -> dict[str, str]:
        """The rows that bisection has found."""
        return {}

    def _has_nowhere(self, name: bytes) -> bool:
        """True where the file does not contain this name, so that no row has it. After many such searches all rows are
        divided, and have the answers."""
        if name not in self._absent_names:
            if (len(self._absent_names) == MOST_ABSENT_NAMES or name in self._content
                    or not self._content.isascii()):  # its bytes may be no UTF-8, of which the division tells
                return False
            self._absent_names.add(name)
        return True

    @cached_property
    def _absent_names(self) -> set[bytes]:
        return set()

    @cached_property
    def _content(self) -> bytes:
        return _read(self.rows)

    @cached_property
    def _rows(self) -> Mapping[str, str]:
        return dict(_lines(self.rows))


def bisect_row(content: bytes, name: bytes) -> bytes | None:
    """The row of a name, without a look at all lines. None for a name that is missing, or out of order."""
    low, high = content.find(b"\n") + 1, len(content)
    while low < high:
        start = content.rfind(b"\n", low, (low + high) // 2) + 1 or low
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        found, _, row = content[start:end].partition(b"\t")
        if found == name:
            return row
        low, high = (end + 1, high) if found < name else (low, start)
    return None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PluginError(f"the op table '{path}' cannot be read: {error}", hint="install the plugin again") from error


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """The lines below the comment, divided at the first tab. Raises PluginError for a file that cannot be read."""
    try:
        lines = _read(path).decode().splitlines()[1:]
    except UnicodeDecodeError as error:
        raise PluginError(f"the op table '{path}' cannot be read: {error}", hint="install the plugin again") from error
    return ((name, row) for name, _, row in (line.partition("\t") for line in lines))


def _decode(name: str, row: dict[str, Any]) -> OpDef:
    return OpDef(
        name,
        tuple(_decode_arg(a) for a in row.get("in", ())),
        tuple(_decode_arg(a) for a in row.get("out", ())),
        {n: _decode_attr(n, a) for n, a in row.get("attr", {}).items()},
        stateful=row.get("stateful", False),
        commutative=row.get("commutative", False),
        deprecated=row.get("deprecated"),
        for_effect=row.get("for_effect", False),
    )


def _decode_arg(arg: dict[str, Any]) -> ArgDef:
    dtype = dtypes.named(arg["type"]) if "type" in arg else None
    return ArgDef(arg["name"], dtype, arg.get("attr"), arg.get("n"), arg.get("types"), arg.get("ref", False))


def _decode_attr(name: str, attr: dict[str, Any]) -> AttrDef:
    kind = attr["type"].removeprefix("list(").removesuffix(")")

    def value(v: Any) -> Any:
        if isinstance(v, list):
            return tuple(value(x) for x in v)
        if kind == "tensor":
            import numpy as np

            return np.array(v["v"], dtypes.named(v["t"]).numpy).reshape(v["shape"])
        if kind == "type":
            return dtypes.named(v)
        return float(v) if kind == "float" else v

    default = value(attr["default"]) if "default" in attr else REQUIRED
    allowed = value(attr["allowed"]) if "allowed" in attr else None
    return AttrDef(name, attr["type"], default, attr.get("min"), allowed)
