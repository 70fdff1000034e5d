"""Other spellings of a TF Graph IR text: its layout, the form of its operations, the order of its parts.

Each change takes a text and returns it in another spelling, or None where the text has no place for the change. A
spelling may be one that the reference refuses: the comparison asks the reference for each text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import NamedTuple

TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|[#!][A-Za-z_][\w$.]*|%[\w$.\-]+(?:#\d+)?|@[\w$.\-]+|\^\w+|->|::|[\w$.]+|\S')
_NODE = re.compile(
    r'^(?P<indent> *)(?P<results>%[^="\n]*?) = (?P<op>[\w.]+)(?P<operands>\([^()\n]*\))?(?P<controls> \[[^\]\n]*\])?'
    r'(?P<device> device\("(?:[^"\\\n]|\\.)*"\))?(?P<assigned> assigned_device\("(?:[^"\\\n]|\\.)*"\))?'
    r'(?P<name> name\("(?:[^"\\\n]|\\.)*"\))?(?P<attributes> \{.*\})?(?P<types> : [^{}"\n]*)?$', re.MULTILINE)
_SPACES = (" ", " ", "\n", "\n    ", "\t", "  ", " // a comment\n", "\n\n", "\n// one more, with \"quotes\"\n", "\r\n")
_NO_GAP_LEFT = frozenset("<>-#!@%:")
CONTROL = "!tf_type.control"
_OPENING, _CLOSING = "([{,=", ")]},="
Change = Callable[[Random, str], str | None]


class NodeText(NamedTuple):
    """The parts of a node's line, each with its own white space; "" for a part that it lacks."""

    indent: str
    results: str
    op: str
    operands: str
    controls: str
    device: str
    assigned: str
    name: str
    attributes: str
    types: str

    def __str__(self) -> str:
        return (f"{self.indent}{self.results} = {self.op}{self.operands}{self.controls}{self.device}{self.assigned}"
                f"{self.name}{self.attributes}{self.types}")


def replace_node(rng: Random, text: str, change: Callable[[NodeText], NodeText | str | None]) -> str | None:
    """The text with one node changed: a random one for which `change` has a result."""
    matches = [match for match in _NODE.finditer(text) if not match["op"].endswith("get_result")]
    rng.shuffle(matches)
    for match in matches[:8]:
        changed = change(NodeText(*[part or "" for part in match.groups()]))
        if changed is not None:
            return f"{text[:match.start()]}{changed}{text[match.end():]}"
    return None


def split_list(text: str) -> list[str]:
    """The items of a list, split at the commas outside all brackets."""
    items, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "<([{") - (character in ">)]}" and text[at - 1:at] != "-")
        if character == "," and not depth:
            items.append(text[start:at].strip())
            start = at + 1
    return [*items, text[start:].strip()] if text.strip() else []


def operand_and_result_types(node: NodeText) -> tuple[list[str], list[str]]:
    """The types of a node's operands and of its results, without control tokens."""
    inputs, arrow, results = node.types.removeprefix(" : ").partition(" -> ")
    operands, outputs = inputs.strip(), results.strip()
    return (split_list(operands[1:-1] if arrow else operands),
            split_list(outputs[1:-1] if outputs.startswith("(") else outputs))


def spread_layout(rng: Random, text: str) -> str | None:
    """White space and comments anywhere between tokens."""
    share = rng.choice((0.02, 0.1, 0.4))
    out, end = [], 0
    for match in TOKEN.finditer(text):
        gap, previous = text[end:match.start()], text[end - 1:end]
        fits = gap or ((previous in _OPENING or match[0][0] in _CLOSING) and match[0][0] not in _NO_GAP_LEFT)
        out += [rng.choice(_SPACES) if fits and rng.random() < share else gap, match[0]]
        end = match.end()
        if match[0].startswith("//"):
            out.append("\n")
    return "".join([*out, text[end:]])


def join_lines(_: Random, text: str) -> str | None:
    """The whole module in one line."""
    return " ".join(line.strip() for line in text.splitlines()) if "//" not in text else None


def break_node(rng: Random, text: str) -> str | None:
    """A node over several lines, broken between its parts."""
    def broken(node: NodeText) -> str:
        parts = [part.strip() for part in node[4:] if part.strip()]
        lines = [f"{node.indent}{node.results} =", f"{node.op}{node.operands}", *parts]
        return "".join(f"{part}{rng.choice((' ', chr(10), chr(10) + '      '))}" for part in lines)

    return replace_node(rng, text, broken)


def indent_lines(rng: Random, text: str) -> str | None:
    return "\n".join(f"{' ' * rng.randrange(9)}{line.strip()}" for line in text.splitlines()) + "\n"


def add_comments(rng: Random, text: str) -> str | None:
    comments = ("// note", '// name("x")', "//", "// } // -----", "// \u00e9")
    return "\n".join(f"{line} {rng.choice(comments)}" if rng.random() < 0.3 else line for line in text.splitlines())


def prefix_op(rng: Random, text: str) -> str | None:
    return replace_node(rng, text, lambda node: node._replace(op=f"tfg.{node.op}") if "." not in node.op else None)


def prefix_terminators(_: Random, text: str) -> str | None:
    return re.sub(r"(?<=\s)(return|yield|condition|get_result)(?=[\s(])", r"tfg.\1", text)


def _generic_node(rng: Random, node: NodeText) -> str | None:
    if '"' in node.op or "Region" in node.op:
        return None
    operands, results = operand_and_result_types(node)
    values = [*split_list(node.operands[1:-1]), *split_list(node.controls.strip()[1:-1])]
    controls = len(values) - len(operands)
    if controls < 0:
        return None
    texts = {"_mlir_name": node.name, "_mlir_device": node.device, "_mlir_assigned_device": node.assigned}
    attributes = [f"{key} = {part[part.index('(') + 1:-1]}" for key, part in texts.items() if part]
    section = ", ".join([*attributes, *([node.attributes.strip()[1:-1]] if node.attributes else [])])
    types = (f"({', '.join([*operands, *[CONTROL] * controls])}) -> ({', '.join([*results, CONTROL])})")
    op = f'"{node.op}"' if node.op.startswith("tfg.") else f'"tfg.{node.op}"'
    braces = f" {{{section}}}" if section else ""
    if section and rng.random() < 0.15:
        braces = f" <{{{section}}}>"
    return f"{node.indent}{node.results} = {op}({', '.join(values)}){braces} : {types}"


def make_generic(rng: Random, text: str) -> str | None:
    """A node in the generic form of MLIR."""
    return replace_node(rng, text, lambda node: _generic_node(rng, node))


def make_all_generic(rng: Random, text: str) -> str:
    def changed(match: re.Match[str]) -> str:
        node = NodeText(*[part or "" for part in match.groups()])
        return match[0] if node.op.endswith("get_result") else _generic_node(rng, node) or match[0]

    return _NODE.sub(changed, text)


def make_generic_terminator(rng: Random, text: str) -> str | None:
    """`return` or `yield` in the generic form."""
    def generic(match: re.Match[str]) -> str:
        values, controls = (split_list((match[name] or "()")[1:-1]) for name in ("values", "controls"))
        tokens = [control.split(" ")[0] for control in controls]
        names = [control.partition(" ")[2] or "{}" for control in controls]
        types = ", ".join([*split_list(match["types"] or ""), *[CONTROL] * len(tokens)])
        section = (f" {{control_ret_attrs = [{', '.join(names)}]}}" if match["op"] == "return" else
                   f" {{operandSegmentSizes = array<i32: {len(values)}, {len(tokens)}>}}")
        return f'"tfg.{match["op"]}"({", ".join([*values, *tokens])}){section} : ({types}) -> ()'

    pattern = re.compile(r"\b(?P<op>return|yield)(?P<values>\([^()\n]*\))?(?: (?P<controls>\[[^\]\n]*\]))?"
                         r"(?: : (?P<types>[^\n]*))?$", re.MULTILINE)
    return _one_match(rng, text, pattern, generic)


def make_generic_get_result(rng: Random, text: str) -> str | None:
    pattern = re.compile(r'get_result\((%[\w$.\-]+)\) ("\w+") : (\d+)')
    template = '"tfg.get_result"({0}) {{name = {1}, number = {2} : i32}} : (!tf_type.tensor) -> !tf_type.tensor'
    return _one_match(rng, text, pattern, lambda match: template.format(*match.groups()))


def drop_name(rng: Random, text: str) -> str | None:
    return replace_node(rng, text, lambda node: node._replace(name="") if node.name else None)


def drop_parentheses(rng: Random, text: str) -> str | None:
    """One result type without its parentheses."""
    def changed(node: NodeText) -> NodeText | None:
        operands, arrow, results = node.types.partition(" -> ")
        single = len(split_list(results[1:-1])) == 1
        return node._replace(types=f"{operands}{arrow}{results[1:-1]}") if arrow and single else None

    return replace_node(rng, text, changed)


def add_empty_parentheses(rng: Random, text: str) -> str | None:
    return replace_node(rng, text, lambda node: node._replace(operands="()") if not node.operands else None)


def drop_generic_types(_: Random, text: str) -> str | None:
    """A generic function whose nodes have no types, as the published design writes it."""
    head, generic, body = text.partition("tfg.func generic")
    if not generic:
        return None
    part, end, rest = body.partition("\n}")
    part = re.sub(r" : \(!tf_type[^\n]*$| : !tf_type\.tensor$", "", part, flags=re.MULTILINE)
    return f"{head}{generic}{part}{end}{rest}"


def use_old_get_result(_: Random, text: str) -> str | None:
    return re.sub(r"(?<!\.)get_result\((%[\w$.\-]+)\)", r"tfg.get_result \1", text)


def use_old_types(rng: Random, text: str) -> str | None:
    old, new = rng.choice((("!tf_type.tensor", "!tfg.tensor"), ("!tf_type.control", "!tfg.control"),
                           ("#tf_type.version", "#tfg.version")))
    return text.replace(old, new) if old in text else None


def add_alias(rng: Random, text: str) -> str | None:
    """A type or an attribute behind an alias, which stands at the top, at the end or between operations."""
    is_type = rng.random() < 0.5
    pattern = r"tensor<[^<>]*>|(?<== )(?:f32|i32|i64|i1)\b" if is_type else (
        r'(?<== )(?:-?\d+ : i64|"\w*"|true|#tf_type\.shape<[^<>]*>)')
    values = re.findall(pattern, text)
    if not values or text.startswith("module attributes"):
        return None
    value = rng.choice(values)
    name = f"{'!' if is_type else '#'}{rng.choice(('alias', 'map0', '_x'))}"
    text = re.sub(rf"(?<![\w.<]){re.escape(value)}(?![\w<])", lambda _: name, text,
                  count=rng.choice((1, 1, 0)))
    definition = f"{name} = {value}\n"
    return f"{text}{definition}" if rng.random() < 0.2 else f"{definition}{text}"


_LOCATIONS = ("unknown", '"file.py":3:4', '"name"', '"name"("file.py":1:2)', 'fused["a", "b"]', "fused[]",
              'fused<"meta">["a"]', 'callsite("a" at "f.py":1:1)', 'callsite(callsite("a" at "b") at unknown)',
              '"file.py":3:4 to 5:6', '"file.py":3:4 to :6', "#loc1")


def add_location(rng: Random, text: str) -> str | None:
    location = rng.choice(_LOCATIONS)
    changed = replace_node(rng, text, lambda node: f"{node} loc({location})")
    if changed is None:
        return None
    if location == "#loc1":
        definition = f"#loc1 = loc({rng.choice(_LOCATIONS[:-1])})\n"
        return f"{changed}{definition}" if rng.random() < 0.7 else f"{definition}{changed}"
    return changed


def locate_argument(rng: Random, text: str) -> str | None:
    pattern = re.compile(r"(%\w+: tensor<[^<>]*>)(?=[,)])")
    return _one_match(rng, text, pattern, lambda match: f'{match[1]} loc("arg")')


def wrap_module(rng: Random, text: str) -> str | None:
    head = rng.choice(("module {", "builtin.module {", "module @m {", "module attributes {tf.a = 1 : i64} {",
                       'module @"m n" attributes {tf.x = "y", tf.unit} {'))
    if text.lstrip().startswith("module"):
        return text.replace("module {", head, 1)
    return f"{head}\n{text}}}\n"


def make_module_generic(_: Random, text: str) -> str | None:
    body = text.strip()
    if body.startswith("module {"):
        body = body.removeprefix("module {").removesuffix("}")
    return f'"builtin.module"() ({{\n{body}\n}}) : () -> ()\n'


def make_graph_generic(rng: Random, text: str) -> str | None:
    match = re.search(r"tfg\.graph (#tf_type\.version<[^<>]*>) \{\n(.*?)\n(  )?\}(?=\n|$)", text, re.DOTALL)
    if match is None or "Region" in match[2]:
        return None
    nodes = make_all_generic(rng, match[2])
    return (f'{text[:match.start()]}"tfg.graph"() ({{\n{nodes}\n}}) {{version = {match[1]}}} : () -> ()'
            f"{text[match.end():]}")


def shuffle_nodes(rng: Random, text: str) -> str | None:
    """Uses before definitions: the node lines of a body in another order."""
    lines = text.splitlines()
    runs, start = [], None
    for number, line in enumerate([*lines, ""]):
        if _NODE.match(line):
            start = number if start is None else start
        elif start is not None:
            runs.append((start, number))
            start = None
    runs = [run for run in runs if run[1] - run[0] > 1]
    if not runs:
        return None
    begin, end = rng.choice(runs)
    part = lines[begin:end]
    rng.shuffle(part)
    return "\n".join([*lines[:begin], *part, *lines[end:]]) + "\n"


def move_functions_first(_: Random, text: str) -> str | None:
    if text.lstrip().startswith("module") or "tfg.func" not in text:
        return None
    at = text.index("tfg.func")
    return f"{text[at:]}{text[:at]}" if text.startswith("tfg.graph") else None


def sort_attributes_backwards(rng: Random, text: str) -> str | None:
    def changed(node: NodeText) -> NodeText | None:
        if not node.attributes or '"' in node.attributes:
            return None
        items = split_list(node.attributes.strip()[1:-1])
        return node._replace(attributes=f" {{{', '.join(reversed(items))}}}") if len(items) > 1 else None

    return replace_node(rng, text, changed)


def spell_visibility(rng: Random, text: str) -> str | None:
    word = rng.choice(("public", "private", "nested"))
    return text.replace("tfg.func ", f"tfg.func {word} ", 1) if "tfg.func " in text else None


def rename_values(rng: Random, text: str) -> str | None:
    """A value under a number, or a name with signs."""
    names = re.findall(r"%([A-Za-z]\w*)", text)
    if not names:
        return None
    name, new = rng.choice(names), rng.choice(("7", "a$b", "a-b", "_", "A.B"))
    return re.sub(rf"%{name}(?![\w$\-])", f"%{new}", text)


def widen_dimensions(_: Random, text: str) -> str | None:
    return re.sub(r"tensor<(\d+)x(f32|i32)>", r"tensor< \1 x \2 >", text)


def _one_match(rng: Random, text: str, pattern: re.Pattern[str], new: Callable[[re.Match[str]], str]) -> str | None:
    matches = [*pattern.finditer(text)]
    if not matches:
        return None
    match = rng.choice(matches)
    return f"{text[:match.start()]}{new(match)}{text[match.end():]}"


LAYOUTS: tuple[Change, ...] = (spread_layout, spread_layout, join_lines, break_node, break_node, indent_lines,
                               add_comments, widen_dimensions)
FORMS: tuple[Change, ...] = (
    prefix_op, prefix_terminators, make_generic, make_generic, make_all_generic, make_generic_terminator,
    make_generic_get_result, drop_name, drop_parentheses, add_empty_parentheses, drop_generic_types,
    use_old_get_result, use_old_types, add_alias, add_alias, add_location, add_location, locate_argument, wrap_module,
    make_module_generic, make_graph_generic, spell_visibility, rename_values)
ORDERS: tuple[Change, ...] = (shuffle_nodes, move_functions_first, sort_attributes_backwards)
