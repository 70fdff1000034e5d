"""The parser of modules: graphs and functions, in the dialect's own form and in the generic form.

A text is a module, or the operations of one without `module { }` around them. Errors that MLIR's verifier finds come
behind those of its parser, so the checks of a function's attributes follow its body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from heald.graphs.graph import Versions

from ... import attributes as a
from ... import types as t
from ...lexer import MalformedText
from ..signatures.signature import Argument, Signature
from ..signatures.signature_reader import SignatureReader
from ..values import dialect_attributes as d
from ..values.element_types import CONTROL
from ..values.names import DIALECT
from .body_parser import UNREGISTERED, BodyReader
from .body_values import ParsedArgument
from .parsed_body import Body, GetResult, Region

_VISIBILITIES = ("private", "public", "nested")
_MODULE = ("module", "builtin.module")
_WRITTEN_BY_FORM = ("sym_name", "function_type", "arg_attrs", "res_attrs")  # attributes that the form of tfg.func has
Written = tuple[str, str, Mapping[str, a.Attribute], int]  # value, type, attributes, position
Attributes = Mapping[str, a.Attribute]


class ParsedFunction(NamedTuple):
    """A function as it was written, before its values are resolved. `results`: the types of all its results.

    `fault`: of its signature, which those of its body come before. `nameless`: the position of an argument or a result
    without name, and TensorFlow's words for it.
    """

    signature: Signature
    arguments: list[ParsedArgument]
    results: list[str]
    generic: bool
    gradient: str | None
    attributes: Attributes
    body: Body
    at: int
    fault: MalformedText | None = None
    nameless: tuple[int, str] | None = None


class ParsedGraph(NamedTuple):
    """A graph as it was written. `versions`: None where a text has functions alone."""

    versions: Versions | None
    attributes: Attributes
    body: Body


class ParsedModule(NamedTuple):
    """`places`: the positions of the graphs."""

    graphs: list[ParsedGraph]
    functions: list[ParsedFunction]
    places: list[int]


class GraphReader(BodyReader):
    """A parser of modules."""

    def module(self) -> ParsedModule:
        """Parse all modules of a text as one. Raises MalformedText for two functions of one name."""
        module = ParsedModule([], [], [])
        count, at = 0, -1
        self.foreign: list[tuple[int, str]] = []  # positions and names of operations that no GraphDef has
        while self.kind != "end":
            count += self.kind not in ("alias", "type")
            at = self.at if self.text.strip('"') in _MODULE else at
            self.module_operation(module)
        if at >= 0 and count > 1:
            self.foreign.append((at, "builtin.module"))
        positions: dict[str, int] = {}
        for function in module.functions:
            name = function.signature.name
            if name in positions and all(other != "builtin.module" for _, other in self.foreign):
                self.report(self.error(f"redefinition of symbol named '{name}'", function.at,
                                       (positions[name], "see existing symbol definition here")))
            positions[name] = function.at
        if self.foreign:
            at, name = min(self.foreign)
            self.report_export(f"Can't export module with other ops than tfg.graph or tfg.func, has: {name}", at,
                               "separate modules by lines // -----" if name == "builtin.module" else
                               "nodes stand in a tfg.graph or a tfg.func")
        return module

    def module_operation(self, module: ParsedModule) -> None:
        """Parse one operation of a module, or an alias."""
        if self.kind in ("alias", "type"):
            self.alias_definition()
            return
        results = self.result_names()
        at, word = self.at, self.text
        if self.kind == "string":
            self.generic_module_operation(module)
        elif self.kind != "word":
            raise self.wrong_token("expected operation name in quotes")
        elif word in _MODULE:
            self.advance()
            self.parse_nested(lambda: self.module_behind_name(module, at))
        elif word == "tfg.graph":
            module.places.append(at)
            module.graphs.append(self.graph())
        elif word == "tfg.func":
            module.functions.append(self.function())
        else:
            operation = self.operation_behind(results)
            op = "get_result" if isinstance(operation, GetResult) else operation.op
            if op in ("return", "get_result"):
                self.report(self.error(f"'tfg.{op}' op expects parent op 'tfg.func'", at))
            self.foreign.append((at, DIALECT + op))
            return
        self.trailing_location()
        if results.names:
            raise self.error("cannot name an operation with no results", results.at)

    def module_behind_name(self, module: ParsedModule, at: int) -> None:
        """Parse `@name attributes {...} {...}`."""
        attributes: Attributes = {}
        if self.kind == "symbol":
            self.symbol_name()
        if self.accept("attributes"):
            attributes = self.dictionary()
        self.module_region(module)
        self.check_module_attributes(attributes, at)

    def check_module_attributes(self, attributes: Attributes, at: int) -> None:
        for name in attributes:
            if "." not in name and name not in ("sym_name", "sym_visibility"):
                raise self.error("'builtin.module' op can only contain attributes with dialect-prefixed names, found: "
                                 f"'{name}'", at)

    def module_region(self, module: ParsedModule) -> int:
        """Parse `{...}` with the operations of a module. Return how many there are, a label among them."""
        self.expect("{", " to begin a region")
        count = 0
        if self.kind == "block":
            self.label()
            count = 1
        while not self.accept("}"):
            if self.kind in ("alias", "type", "end"):
                raise self.wrong_token("expected operation name in quotes")
            if self.text.strip('"') in _MODULE:
                self.foreign.append((self.at, "builtin.module"))
            self.module_operation(module)
            count += 1
        return count

    # The dialect's own form

    def graph(self) -> ParsedGraph:
        """Parse `tfg.graph #tf_type.version<...> attributes {...} {...}`."""
        graph_at = self.at
        self.advance()
        at = self.at
        version = self.attribute()
        if not isinstance(version, d.VersionAttr):
            raise self.custom_error("graph", "invalid kind of attribute specified", at,
                                    hint="write #tf_type.version<producer = 1, min_consumer = 0>")
        at = self.at
        attributes = self.dictionary() if self.accept("attributes") else {}
        written = attributes.get("version")
        if written is not None and not isinstance(written, d.VersionAttr):
            raise self.custom_error("graph", "'tfg.graph' op attribute 'version' failed to satisfy constraint: An "
                                    "Attribute describing the version for a TensorFlow Graph", at)
        if written is not None:
            raise self.custom_error("graph", "attribute 'version' occurs more than once in the attribute list",
                                    graph_at)
        return self.parsed_graph(version, attributes, self.body(), graph_at)

    def parsed_graph(self, version: d.VersionAttr, attributes: Attributes, body: Body, at: int) -> ParsedGraph:
        """Raises MalformedText for operations of functions, and for a second block."""
        if body.blocks > 1:
            self.report(self.error("'tfg.graph' op expects region #0 to have 0 or 1 blocks", at))
        terminators = [terminator for terminator in (body.early, body.returned) if terminator is not None]
        for terminator in terminators[:1]:
            if terminator.op == "return":
                self.report(self.error("'tfg.return' op expects parent op 'tfg.func'", terminator.at))
            elif body.early is not None:
                self.report(self.error(f"'tfg.{terminator.op}' op must be the last operation in the parent block",
                                       terminator.at))
            else:
                sizes = [*([] if terminator.condition is None else [1]), len(terminator.results),
                         len(terminator.controls)]
                self.report_export(f"Unhandled attribute kind for attribute: array<i32: {', '.join(map(str, sizes))}>",
                                   terminator.at, f"'tfg.{terminator.op}' stands in a region of a control flow op")
        if body.get_results:
            self.report(self.error("'tfg.get_result' op expects parent op 'tfg.func'", body.get_results[0].at))
        return ParsedGraph(Versions(version.producer, version.min_consumer, version.bad_consumers), attributes, body)

    def function(self) -> ParsedFunction:
        """Parse `tfg.func generic @name(arguments) -> (results) attributes {...} {...}`."""
        at = self.at
        self.advance()
        words = []  # attributes that words of the form stand for
        if self.kind == "word" and self.text in _VISIBILITIES:
            words.append("sym_visibility")
            self.advance()
        generic = self.kind == "word" and self.accept("generic")
        if self.kind != "symbol":
            raise self.custom_error("func", "expected valid '@'-identifier for symbol name", self.at)
        name = self.symbol_name()
        arguments = self.comma_list("(", ")", self.written_argument)
        results: list[Written] = []
        if self.accept("->"):
            results = self.comma_list("(", ")", self.written_result)
        attributes = self.dictionary() if self.accept("attributes") else {}
        if generic:
            words.append("generic")
        for key in (*_WRITTEN_BY_FORM, *words):
            if key in attributes:
                raise self.custom_error("func", f"attribute '{key}' occurs more than once in the attribute list", at)
        generic = generic or "generic" in attributes
        body = self.function_body(arguments, generic)
        self.check_function_block(body, arguments, at)
        return self.parsed_function(name, arguments, results, generic, attributes, body, at)

    def function_body(self, arguments: Sequence[Written], generic: bool) -> Body:
        """Parse `{...}` of a function. See `fault_order` for the use of `arguments` and `generic`."""
        return self.body()

    def check_function_block(self, body: Body, arguments: Sequence[Written], at: int) -> None:
        """Raises MalformedText for a label behind named arguments, and for a function without operations."""
        if body.labels and arguments:
            raise self.error("invalid block name in region with named arguments", body.labels[0])
        if body.blocks > 1:
            self.report(self.error("'tfg.func' op expects region #0 to have 0 or 1 blocks", at))
        values: set[str] = set()
        for value, _, _, where in arguments:
            if value in values:
                raise self.error(f"region entry argument '{value}' is already in use", where)
            values.add(value)
        if body.is_empty and not arguments and not body.labels:
            raise self.custom_error("func", "expected non-empty function body", body.at)
        if body.is_empty:
            self.report(self.error("'tfg.func' op expects a non-empty block", at))

    def written_argument(self) -> Written:
        """Parse `%name: type {attributes}`."""
        at, value = self.at, self.take("value", "SSA operand")
        if self.kind == "alias" and self.text[1:].isdigit():
            raise self.error("result number not allowed in argument list")
        self.expect(":")
        of = str(self.type())
        attributes = self.dictionary() if self.is_punctuation("{") else {}
        return value, of, attributes, at

    def written_result(self) -> Written:
        """Parse `type {attributes}`."""
        at, of = self.at, str(self.type())
        return "", of, self.dictionary() if self.is_punctuation("{") else {}, at

    def parsed_function(self, name: str, arguments: Sequence[Written], results: Sequence[Written], generic: bool,
                        attributes: Attributes, body: Body, at: int) -> ParsedFunction:
        """The function of these parts."""
        signatures = SignatureReader(self)
        ignored = "tf." if generic else "tfg.arg_attrs"  # those of a result have no place
        inputs = [self.signature_argument(signatures, item, generic, (ignored,)) for item in arguments]
        outputs = [self.signature_argument(signatures, item, generic, ("tf.", "tfg.arg_attrs")) for item in results]
        parts = signatures.attributes(attributes, at, generic)
        gradient = parts.pop("gradient", None)
        if "control_outputs" not in parts:
            parts["control_outputs"] = tuple([output.name for output, (_, of, _, _) in zip(
                outputs, results, strict=True) if of == CONTROL]) if generic else ()
        signature = Signature(name, tuple(inputs), tuple([output for output, (_, of, _, _) in zip(
            outputs, results, strict=True) if of != CONTROL]), **parts)
        values = [ParsedArgument(value, argument.name, of, where) for argument, (value, of, _, where) in zip(
            inputs, arguments, strict=True)]
        return ParsedFunction(signature, values, [of for _, of, _, _ in results], generic, gradient, attributes, body,
                              at, self.fault_of_arguments(arguments, results, at),
                              find_nameless(name, arguments, results, generic))

    def fault_of_arguments(self, arguments: Sequence[Written], results: Sequence[Written], at: int,
                           ) -> MalformedText | None:
        """The fault of attributes of arguments and results; None for good ones."""
        for what, items in (("arguments", arguments), ("results", results)):
            if any("." not in key for _, _, written, _ in items for key in written):
                return self.error(f"'tfg.func' op {what} may only have dialect attributes", at)
        tokens = [of for _, of, _, _ in arguments].count(CONTROL)
        if tokens:
            return self.error("'tfg.func' op region #0 expected same number of data values and control tokens "
                              f"({len(arguments) - tokens} vs. {len(arguments) + tokens})", at)
        return None

    def signature_argument(self, signatures: SignatureReader, item: Written, generic: bool, ignored: tuple[str, ...],
                           ) -> Argument:
        """An argument or a result. `ignored`: the starts of attributes that a FunctionDef has no place for."""
        _, of, written, at = item
        attributes = {name: value for name, value in written.items() if not name.startswith(ignored)}
        argument = signatures.argument(of, attributes, at)
        if not (generic or argument.type):
            signatures.check_element(of, at)
        if generic:
            typed = isinstance(attributes.get("tfg.type"), a.TypeAttr)
            return Argument(**{**argument.__dict__, "type": argument.type if typed else 0})
        return Argument(**{**argument.__dict__, "type_attr": "", "number_attr": "", "type_list_attr": ""})

    def pass_module_operation(self) -> str:
        if self.text.removeprefix(DIALECT) == "func":
            self.parse_nested(self.function)
            return ""
        versions = self.parse_nested(self.graph).versions
        return "" if versions is None else str(d.VersionAttr(versions.producer, versions.min_consumer,
                                                             versions.bad_consumers))

    # The generic form

    def generic_module_operation(self, module: ParsedModule) -> None:
        """Parse a module, a graph or a function in quotes."""
        where, name = self.at, self.quoted_name()
        op = name if name == "builtin.module" else name.removeprefix(DIALECT)
        if op == name != "builtin.module":
            raise self.error(UNREGISTERED, hint="write the prefix of the dialect: tfg.")
        self.operand_list()
        attributes: dict[str, a.Attribute] = {}
        if self.accept("<"):
            attributes = self.dictionary()
            self.expect(">", " to close properties")
        regions = []
        if self.accept("("):
            inner = self.module_region if op == name else None
            regions.append(self.parse_nested(lambda: inner(module) if inner else self.region_of()))
            self.expect(")", " to end region list")
        if self.is_punctuation("{"):
            attributes |= self.dictionary()
        self.expect(":", " followed by operation type")
        at = self.at
        of = self.type()
        if not isinstance(of, t.FunctionType):
            raise self.error("expected function type", at)
        if of.results and op in ("graph", "func", "builtin.module"):
            self.report(self.error(f"'{name}' op requires zero results", where))
        if op not in ("graph", "func", "builtin.module"):
            self.foreign.append((where, name))
            return
        if not regions:
            raise self.error(f"'{name}' op requires one region", where)
        region = regions[0]
        if not isinstance(region, Region):
            if not region:
                raise self.error("'builtin.module' op region #0 ('bodyRegion') failed to verify constraint: region "
                                 "with 1 blocks", where)
            self.check_module_attributes(attributes, where)
        elif op == "graph":
            module.places.append(where)
            module.graphs.append(self.generic_graph(attributes, region, where))
        else:
            module.functions.append(self.generic_function(attributes, region, where))

    def generic_graph(self, attributes: dict[str, a.Attribute], region: Region, at: int) -> ParsedGraph:
        version = attributes.pop("version", None)
        if version is None:
            raise self.error("'tfg.graph' op requires attribute 'version'", at)
        if not isinstance(version, d.VersionAttr):
            raise self.error("'tfg.graph' op attribute 'version' failed to satisfy constraint: An Attribute describing "
                             "the version for a TensorFlow Graph", at)
        if region.body.is_empty and not region.body.labels:
            raise self.error("'tfg.graph' op region #0 ('nodes') failed to verify constraint: region with 1 blocks", at)
        return self.parsed_graph(version, attributes, region.body, at)

    def generic_function(self, attributes: dict[str, a.Attribute], region: Region, at: int) -> ParsedFunction:
        """The function of a generic form, whose arguments are those of its block, control tokens among them."""
        for key in ("sym_name", "function_type"):
            if key not in attributes:
                raise self.error(f"'tfg.func' op requires attribute '{key}'", at)
        name, of = attributes.pop("sym_name"), attributes.pop("function_type")
        if not isinstance(name, a.StringAttr):
            raise self.error("'tfg.func' op attribute 'sym_name' failed to satisfy constraint: string attribute", at)
        if not isinstance(of, a.TypeAttr) or not isinstance(of.type, t.FunctionType):
            raise self.error("'tfg.func' op attribute 'function_type' failed to satisfy constraint: type attribute of "
                             "function type", at)
        if not attributes.pop("sym_visibility", None) and region.body.is_empty and not region.body.labels:
            raise self.error("'tfg.func' op symbol declaration cannot have public visibility", at)
        written = [argument[1] for argument in region.arguments]
        if written != list(map(str, of.type.inputs)):
            raise self.error("'tfg.func' op entry block must have "
                             f"{len(of.type.inputs)} arguments to match function signature"
                             if len(written) != len(of.type.inputs) else
                             "'tfg.func' op type of entry block arguments must match the function signature", at)
        argument_attrs = _dictionaries(attributes.pop("arg_attrs", None), len(written))
        result_attrs = _dictionaries(attributes.pop("res_attrs", None), len(of.type.results))
        arguments: list[Written] = []
        body = region.body
        for index, (value, kind, where) in enumerate(region.arguments):
            if (kind == CONTROL) != bool(index % 2):
                raise self.error(f"'tfg.func' op expects a control token behind each argument, got '{kind}' at "
                                 f"#{index}", at)
            if kind != CONTROL:
                arguments.append((value, kind, argument_attrs[index], where))
        if len(region.arguments) % 2:
            raise self.error("'tfg.func' op expects a control token behind each argument", at)
        results = [("", str(result), attrs, at) for result, attrs in zip(of.type.results, result_attrs, strict=True)]
        if body.is_empty:
            raise self.error("'tfg.func' op expects a non-empty block", at)
        function = self.parsed_function(name.value, arguments, results, attributes.pop("generic", None) is not None,
                                        attributes, body, at)
        return function._replace(arguments=[argument._replace(token=token) for argument, token in zip(
            function.arguments, _tokens(region), strict=True)])


def find_nameless(name: str, arguments: Sequence[Written], results: Sequence[Written], generic: bool,
                  ) -> tuple[int, str] | None:
    """The position of the first argument or result without a name, and the words of the exporter; None for names."""
    for items, is_result in ((arguments, False), (results, True)):
        for index, (_, _, attributes, at) in enumerate(items):
            if isinstance(attributes.get("tfg.name"), a.StringAttr):
                continue
            if not generic:
                return at, "argument is missing 'tfg.name'"
            return at, (f"Can't export function {name} because missing \"tfg.name\" attribute for result #{index}"
                        if is_result else 'Missing "tfg.name" attribute')
    return None


def _tokens(region: Region) -> list[str]:
    """The names of the control tokens of a generic function's arguments."""
    return [value for index, (value, _, _) in enumerate(region.arguments) if index % 2]


def _dictionaries(attribute: a.Attribute | None, count: int) -> list[Attributes]:
    items = attribute.items if isinstance(attribute, a.ArrayAttr) else ()
    dictionaries: list[Attributes] = [dict(item.items) if isinstance(item, a.DictionaryAttr) else {} for item in items]
    return (dictionaries + [{}] * count)[:count]
