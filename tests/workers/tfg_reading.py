"""Compares how heald and TensorFlow read texts of the TF Graph IR: verdicts, GraphDefs, words and places of errors.

The program of `workers.tfg_oracle` stays open, and answers one text at a time: it parses, verifies and exports. A text
with regions counts as accepted once it is verified, because TensorFlow's exporter has no regions. Each difference
belongs to a group: the verdicts, and both messages without names and numbers. A group is reported once, by its smallest
text, from which lines and tokens are dropped while the group stays.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import heald
from builders.random_tfg_texts import RandomText
from builders.tfg_forms import TOKEN
from google.protobuf import text_format
from heald.graphs.protobuf.descriptor_pool import message_class

REGION = re.compile(r"(?:If|Case|While|For)Region\b")
_DIAGNOSTIC = re.compile(r"-:(\d+):(\d+): error: (.*)")
_EXPORT = re.compile(r"ERROR code=\d+ msg=(.*)")
_DETAILS = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|-?\d+|(?<=: )[\w.]+$|%[\w.$]+")
LARGEST_REDUCTION_READS = 250
LARGEST_SHOWN_LINE = 400
REDUCED_KINDS = ("accepted by heald alone", "an error without a type", "other GraphDef", "refused by heald alone")
NO_UTF8 = "a name in the GraphDef is not UTF-8"
EQUAL, ALLOWED = "equal", "allowed"


class Answer(NamedTuple):
    """A reader's answer. `graph`: the GraphDef of an accepted text, or None. `place`: line and column, or zeros."""

    accepted: bool
    graph: Any = None
    words: str = ""
    place: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        return "accepted" if self.accepted else f"{self.place[0]}:{self.place[1]}: {self.words}"


class AllowedDifference(NamedTuple):
    """A difference that stands in docs/tfg.md. `words`: the message of the reader that refuses; `text`: of the text."""

    reason: str
    refused_by_tensorflow: bool
    words: str
    text: str = ""


ALLOWED_DIFFERENCES = (
    AllowedDifference("old spelling of the published design", True,
                      r"dialect 'tfg' provides no type parsing hook|unknown attribute `version` in dialect `tfg`",
                      r"!tfg\.(?:tensor|control)\b|#tfg\.version\b"),
    AllowedDifference("old spelling of the published design: operations without types in generic functions", True,
                      r"expects different type than prior uses: '!tf_type.control' vs '!tf_type.tensor'|"
                      r"expected ':'|got \d+ non-control operands", r"tfg\.func[^@]*generic"),
    AllowedDifference("old spelling of the published design: get_result without parentheses", True,
                      r"expected '\('", r"get_result\s+%"),
    AllowedDifference("float8 constants", True, r"^Converting f8E\w+ to DataType"),
    AllowedDifference("text with regions that no GraphDef holds: TensorFlow does not export it", False,
                      r"Unhandled|is not a data type|Can't export|Converting|nimplemented|missing 'tfg.name'|"
                      r"Unsupported|No prefix|Missing get_result|is out of range", REGION.pattern),
    AllowedDifference("tensor<-1xf32>, an unknown dimension", True, r"expected non-function type",
                      r"tensor<(?:[\d?]+x)*-1x"),
    AllowedDifference("a list of several kinds", False, r"a list has items of"),
    AllowedDifference("dense<(1, 2)> of numbers that are not complex", False, r"expected element type to be complex"),
    AllowedDifference("a name that is no UTF-8", False, r"cannot be written as UTF-8"),
    AllowedDifference("a name that is no UTF-8", True, rf"^{NO_UTF8}$"),
    AllowedDifference("words that TensorFlow cuts at a zero byte", True,
                      r'^expected 1 operand type$|^No prefix "tftensor\$" in "$'),
    AllowedDifference("words that name the C++ interface", True, r"created with unregistered dialect\. If this"),
    AllowedDifference("While without parallel_iterations", True, r"requires attribute 'parallel_iterations'"),
    AllowedDifference("loop body that ends with a condition", False,
                      r"WhileRegion' op body region must be terminated by a 'tfg.yield' op", r"condition"),
    AllowedDifference("two nodes of one name", False, r"two nodes are called|empty name|has no name"),
    AllowedDifference("get_result with a negative index or an empty output", False, r"has an invalid port"),
    AllowedDifference("a shape with a size below -1", False, r"is not the size of a dimension"),
    AllowedDifference("an unknown op in a function", True, r"is neither registered nor a function$|"
                      r"corresponding operand type: '!tf_type.tensor'$"),
    AllowedDifference("a control result whose name is no string", False, r"^Control result is missing 'tfg.name'$",
                      r"tfg\.name\s*[=}]"),
    AllowedDifference("a result of a node whose name is empty", False, r"^Can't export graph with missing op-name$",
                      r'name\((?:\s|//[^\n]*\n)*""|_mlir_name\s*=\s*""'),
    AllowedDifference("data after control inputs", False, r"comes after a control input$"),
    AllowedDifference("a text without a module", True, r"unexpected empty serialized MLIR module"),
    AllowedDifference("a module in a graph", False, r"^custom op '(?:builtin\.)?module' is unknown"),
)


class Oracle:
    """TensorFlow's parser, verifier and exporter in a process of its own."""

    def __init__(self, program: str, folder: Path) -> None:
        self._source, self._out = folder / "text.tfg", folder / "out"
        self._process = subprocess.Popen([program, "many"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.DEVNULL, text=True)

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._process.communicate()

    def read(self, source: str) -> Answer | None:
        """The answer; None where TensorFlow ends with a signal."""
        self._source.write_bytes(source.encode("utf-8", "surrogateescape"))
        if (status := self._run("parse")) != 0:
            return None if status >= 128 else self._refusal(source)
        if REGION.search(source):
            return Answer(True)
        if (status := self._run("export")) != 0:
            return None if status >= 128 else self._refusal(source)
        try:
            return Answer(True, _without_assigned_devices(
                text_format.Parse(self._out.read_text("utf-8"), message_class("GraphDef")())))
        except text_format.ParseError:  # a field of type string whose bytes are none: protobuf reads it nowhere
            return Answer(False, None, NO_UTF8)

    def _run(self, mode: str) -> int:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{mode} {self._source} {self._out}\n")
        stdin.flush()
        return int(stdout.readline())

    def _refusal(self, source: str) -> Answer:
        messages = Path(f"{self._out}.err").read_text("utf-8", "replace")
        match = _DIAGNOSTIC.search(messages)
        if match is not None:
            return Answer(False, None, match[3], _place_of_bytes(source, int(match[1]), int(match[2])))
        export = _EXPORT.search(messages)
        return Answer(False, None, export[1] if export is not None else messages.strip())


def _without_assigned_devices(graph: Any) -> Any:
    """The GraphDef without the attribute that heald has no use for: see docs/tfg.md."""
    for node in (*graph.node, *[node for function in graph.library.function for node in function.node_def]):
        node.attr.pop("_mlir_assigned_device", None)
    return graph


def _with_exported_types(graph: Any) -> Any:
    """The GraphDef in which a type_list_attr is the type_attr, as TensorFlow exports it."""
    for function in graph.library.function:
        for argument in (*function.signature.input_arg, *function.signature.output_arg):
            if argument.type_list_attr:
                argument.type_attr = argument.type_list_attr
                argument.ClearField("type_list_attr")
    return graph


def _place_of_bytes(source: str, line: int, column: int) -> tuple[int, int]:
    """The place in characters of a place in bytes of UTF-8."""
    raw = source.encode("utf-8", "surrogateescape").split(b"\n")[line - 1][:column - 1]
    return line, column - len(raw) + len(raw.decode("utf-8", "surrogateescape"))


def read_with_heald(source: str) -> Answer:
    """Our answer. An exception that is no HealdError counts as a refusal with its type in its words."""
    try:
        graph = heald.tfg.loads(source)
        return Answer(True, _with_exported_types(message_class("GraphDef").FromString(heald.graphdef.dumps(graph))))
    except heald.errors.HealdError as error:
        location = error.location
        place = (location.line or 0, location.column or 0) if location is not None else (0, 0)
        return Answer(False, None, error.message, place)
    except Exception as error:  # noqa: BLE001 - any exception is a finding
        return Answer(False, None, f"TRACEBACK {type(error).__name__}: {error}")


def kind_of_difference(source: str, theirs: Answer, ours: Answer) -> str:
    """EQUAL, a reason after ALLOWED, or the kind of a difference."""
    if "TRACEBACK" in ours.words:
        return "an error without a type"
    if theirs.accepted != ours.accepted:
        reason = allowed_reason(source, theirs, ours)
        if reason:
            return f"{ALLOWED}: {reason}"
        return "refused by heald alone" if theirs.accepted else "accepted by heald alone"
    if theirs.accepted:
        return EQUAL if theirs.graph is None or theirs.graph == ours.graph else "other GraphDef"
    if theirs.words != ours.words:
        reason = allowed_reason(source, theirs, ours)  # heald reads on, to the planted error
        return f"{ALLOWED}: {reason}" if reason else "other words"
    return EQUAL if theirs.place in (ours.place, (0, 0)) else "other place"


def allowed_reason(source: str, theirs: Answer, ours: Answer) -> str:
    """The reason of the first allowed difference that fits, "" where none does."""
    words = ours.words if theirs.accepted else theirs.words
    return next((row.reason for row in ALLOWED_DIFFERENCES if row.refused_by_tensorflow != theirs.accepted
                 and re.search(row.words, words) and re.search(row.text, source)), "")


class Group(NamedTuple):
    """Differences of one kind with alike messages."""

    kind: str
    theirs: str
    ours: str


def group_of(source: str, theirs: Answer, ours: Answer) -> Group:
    kind = kind_of_difference(source, theirs, ours)
    return Group(kind, _DETAILS.sub("_", theirs.words), _DETAILS.sub("_", ours.words))


class Comparison:
    """The counts of verdicts by kind and by planted error, and the smallest text of each group of differences."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self.kinds: Counter[str] = Counter()
        self.verdicts: Counter[tuple[str, str]] = Counter()
        self.groups: Counter[Group] = Counter()
        self.texts: dict[Group, str] = {}

    def add(self, text: RandomText) -> None:
        theirs = self._oracle.read(text.source)
        if theirs is None:
            self.kinds["TensorFlow ends with a signal"] += 1
            return
        ours = read_with_heald(text.source)
        self.verdicts[text.error or "(no error)", "accepted" if theirs.accepted else "refused"] += 1
        group = group_of(text.source, theirs, ours)
        self.kinds[f"both {'accept' if theirs.accepted else 'refuse'}: {EQUAL}" if group.kind == EQUAL
                   else group.kind] += 1
        if group.kind != EQUAL and not group.kind.startswith(ALLOWED):
            self.groups[group] += 1
            if group not in self.texts or len(text.source) < len(self.texts[group]):
                self.texts[group] = text.source

    def reduced(self, group: Group) -> str:
        """A smaller text of the group: first lines are dropped, then tokens."""
        source, reads = self.texts[group], 0

        def belongs(candidate: str) -> bool:
            nonlocal reads
            reads += 1
            theirs = self._oracle.read(candidate) if reads < LARGEST_REDUCTION_READS else None
            return theirs is not None and group_of(candidate, theirs, read_with_heald(candidate)) == group

        source = "".join(_reduce(source.splitlines(keepends=True), belongs))
        return "".join(_reduce([source[begin:end] for begin, end in _token_spans(source)], belongs))

    def report(self, reduce: bool) -> Iterable[str]:
        """The differences as lines of Markdown, most frequent ones first within their kind.

        Other words and places are shown with the lines at both places, other kinds with the whole smallest text.
        """
        for kind in sorted({group.kind for group in self.groups}):
            groups = [(group, count) for group, count in self.groups.most_common() if group.kind == kind]
            yield f"\n## {kind}: {sum(count for _, count in groups)} texts, {len(groups)} groups"
            for group, count in groups:
                source = self.reduced(group) if reduce and kind in REDUCED_KINDS else self.texts[group]
                theirs, ours = self._oracle.read(source), read_with_heald(source)
                if theirs is None:  # this time it ended with a signal
                    yield f"- {count}x TensorFlow `{group.theirs}` | heald `{ours}` | {source!r}"
                    continue
                shown = source if kind in REDUCED_KINDS else _lines_at(source, (theirs.place[0], ours.place[0]))
                yield f"- {count}x TensorFlow `{theirs}` | heald `{ours}` | {shown!r}"

    def table(self) -> Iterable[str]:
        """The counts as lines."""
        total = sum(self.kinds.values())
        for kind, count in sorted(self.kinds.items()):
            yield f"{count:6} {100 * count / total:5.1f} % {kind}"
        names = sorted({name for name, _ in self.verdicts})
        refused = sum(self.verdicts[name, "refused"] for name in names)
        yield f"{refused:6} {100 * refused / total:5.1f} % refused by TensorFlow; of each planted error:"
        for name in names:
            count = self.verdicts[name, "refused"] + self.verdicts[name, "accepted"]
            yield f"{count:6} {100 * self.verdicts[name, 'refused'] / count:5.1f} % {name}"


def _lines_at(source: str, numbers: Iterable[int]) -> str:
    lines = source.split("\n")
    return "\n".join(lines[at - 1][:LARGEST_SHOWN_LINE] for at in sorted({*numbers}) if 0 < at <= len(lines))


def _token_spans(source: str) -> list[tuple[int, int]]:
    """Tokens with the white space in front of them."""
    ends = [match.end() for match in TOKEN.finditer(source)]
    return list(zip([0, *ends], [*ends, len(source)], strict=True))


def _reduce(parts: Sequence[str], belongs: Any) -> list[str]:
    """The parts without those that can be dropped: halves, quarters and so on, down to one."""
    kept, size = list(parts), max(1, len(parts) // 2)
    while True:
        at = 0
        while at < len(kept):
            candidate = [*kept[:at], *kept[at + size:]]
            if candidate and belongs("".join(candidate)):
                kept = candidate
            else:
                at += size
        if size == 1:
            return kept
        size = max(1, size // 2)
