"""Region control flow from text: a functional node, and a function of the library for each region."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from ... import attributes as a
from ... import types as t
from ..regions.region_forms import FORMS, REGION, RegionForm
from ..signatures.result_types import Declarations
from ..signatures.signature import Argument, Signature
from ..signatures.signature_reader import SignatureReader, element_text
from ..values import dialect_attributes as d
from ..values.element_types import CONTROL
from .body_parser import BodyReader
from .body_values import Resolved, Scope, Tensor, define_nodes
from .node_builder import NodeBuilder
from .parsed_body import ASSIGNED, DEVICE, NAME, ParsedNode, Region, Tail, Use
from .region_checks import region_fault

_NO_REGION = d.RegionAttrs(a.DictionaryAttr(()), a.ArrayAttr(()), a.ArrayAttr(()))


class Captures:
    """The values of the scope around a control flow op that its regions use. `names`: their arguments by value."""

    def __init__(self, used_names: Iterable[str]) -> None:
        self.names: dict[str, str] = {}
        self.tensors: list[Tensor] = []
        self._used_names = set(used_names)

    def reserve(self, names: Iterable[str]) -> None:
        """Keep the names of a region's own arguments for these."""
        self._used_names.update(names)

    def argument(self, tensor: Tensor) -> str:
        """The name of the argument that stands for a value."""
        if tensor.text not in self.names:
            number = len(self.names)
            while f"arg{number}" in self._used_names:
                number += 1
            self._used_names.add(f"arg{number}")
            self.names[tensor.text] = f"arg{number}"
            self.tensors.append(tensor)
        return self.names[tensor.text]

    def forget_from(self, count: int) -> None:
        """Keep the first captured values alone."""
        for tensor in self.tensors[count:]:
            self._used_names.remove(self.names.pop(tensor.text))
        del self.tensors[count:]


class RegionScope(Scope):
    """The values of a region. Values of the scope around it become arguments; a captured control token becomes that of
    such an argument, or a control input of the op."""

    def __init__(self, reader: BodyReader, outer: Scope, captures: Captures, hoisted: dict[str, Use], at: int) -> None:
        super().__init__(reader)
        self.outer = outer
        self.at = at  # of the op with the region
        self.captures = captures
        self.hoisted = hoisted

    def define(self, name: str, tensors: list[Tensor], at: int) -> None:
        """Raises MalformedText for a name that an operation in front of the region has, too."""
        outer: Scope | None = self.outer
        while outer is not None:
            tensor = next(iter(outer.packs.get(name, ())), None)
            if tensor is not None and tensor.at < self.at:
                raise self.reader.error(f"redefinition of SSA value '{name}'", at,
                                        (tensor.at, "previously defined here"))
            outer = outer.outer if isinstance(outer, RegionScope) else None
        super().define(name, tensors, at)

    def find_captured(self, use: Use) -> list[Tensor] | None:
        tensor = self.outer.use(use)
        if tensor.type == CONTROL:
            return [tensor] * (use.number + 1)
        name = self.captures.argument(tensor)
        return [Tensor(name, tensor.type, tensor.at, tensor.fault)] * (use.number + 1)

    @contextmanager
    def uses_without_meaning(self) -> Iterator[None]:
        with self.outer.uses_without_meaning():
            count = len(self.captures.tensors)
            yield
            self.captures.forget_from(count)

    def controls_of(self, uses: Sequence[Use]) -> list[str]:
        return [text for use in uses if (text := self.control_of(use)) is not None]

    def control_of(self, use: Use) -> str | None:
        """The spelling of a control input; None for one that the op itself gets."""
        tensor = self.tensor_of_type(use, CONTROL)
        if use.name in self.packs:
            return tensor.text
        node = tensor.text[1:]
        names = self.captures.names.items()
        argument_name = next((name for text, name in names if text.split(":", 1)[0] == node), None)
        if argument_name is None:
            self.hoisted[tensor.text] = use
        return None if argument_name is None else f"^{argument_name}"


class Library(Protocol):
    """The functions of the graph that is built."""

    @property
    def verify(self) -> bool: ...

    def new_name(self, name: str) -> str: ...

    def check(self, node: ParsedNode) -> None: ...

    def resolve(self, region: Region, scope: Scope) -> list[Resolved]: ...

    def add_region(self, signature: Signature, region: Region, scope: Scope, resolved: Sequence[Resolved]) -> None: ...


class RegionBuilder:
    """Turns control flow with regions into functional nodes."""

    def __init__(self, reader: BodyReader, builder: NodeBuilder, declarations: Declarations, library: Library) -> None:
        self._reader = reader
        self._builder = builder
        self._declarations = declarations
        self._library = library
        self._signatures = SignatureReader(reader)

    def build_functional_node(self, node: ParsedNode, scope: Scope) -> Resolved:
        """The functional node of a node with regions."""
        op = node.op.removesuffix("Region")
        form = FORMS[op]
        named = {key: value.value for key in (NAME, DEVICE, ASSIGNED)
                 if isinstance(value := node.tail.attributes.get(key), a.StringAttr)}
        inputs = [scope.tensor_of_type(use, of) for use, of in zip(node.inputs, node.tail.operands, strict=True)]
        captures = Captures(inner.name for region in node.regions for inner in region.body.nodes)
        hoisted: dict[str, Use] = {}
        infos = self._region_attributes(node, form)
        fault = region_fault(node, self._library.verify)
        if fault is not None:
            raise self._reader.error(*fault)
        scopes = []
        for region, info in zip(node.regions, infos, strict=True):
            inner = RegionScope(self._reader, scope, captures, hoisted, node.at)
            arguments = self._define_arguments(region, info, inner)
            captures.reserve(argument.name for argument in arguments)
            define_nodes(inner, region.body, self._builder, self._declarations)
            scopes.append((inner, arguments))
        functions = [self._body_signature(node, region, info, arguments)
                     for (_, arguments), region, info in zip(scopes, node.regions, infos, strict=True)]
        resolved = [self._library.resolve(region, inner)
                    for (inner, _), region in zip(scopes, node.regions, strict=True)]
        extra = captures.tensors
        data = [*inputs[form.leading:], *extra]
        tensors = [Tensor(tensor.text, tensor.type, tensor.at) for tensor in (*inputs[:form.leading], *data)]
        results = node.tail.results
        if form.loop:
            results = (*results, *(tensor.type for tensor in extra))
        attributes = {name: value for name, value in node.tail.attributes.items()
                      if name not in (NAME, DEVICE, ASSIGNED) and all(name not in pair for pair in form.regions)}
        attributes |= self._function_attributes(node, form, functions)
        attributes |= self._implied_attributes(form, inputs, data, results)
        attributes[REGION] = a.IntegerAttr(len(extra), t.I64) if form.loop and extra else a.TRUE
        functional_node = ParsedNode(
            op, node.at, node.where, node.results, node.inputs, node.controls,
            named.get(DEVICE, ""), named.get(ASSIGNED, ""), named.get(NAME, ""),
            Tail(attributes, tuple([tensor.type for tensor in tensors]), results, True, True, node.tail.tokens))
        for (inner, _), signature, region, nodes in zip(scopes, functions, node.regions, resolved, strict=True):
            complete_signature = self._signature_with_captures(signature, captures, form, region)
            self._library.add_region(complete_signature, region, inner, nodes)
        self._library.check(functional_node)
        return Resolved(functional_node, [tensor.text for tensor in tensors], list(hoisted.values()))

    def _region_attributes(self, node: ParsedNode, form: RegionForm) -> list[d.RegionAttrs]:
        attributes = node.tail.attributes
        if form.functions == ("branches",):
            region_attributes = attributes.get(form.regions[0][1])
            items = region_attributes.items if isinstance(region_attributes, a.ArrayAttr) else ()
            infos = [item if isinstance(item, d.RegionAttrs) else _NO_REGION for item in items]
            return (infos + [_NO_REGION] * len(node.regions))[:len(node.regions)]
        return [value if isinstance(value := attributes.get(name), d.RegionAttrs) else _NO_REGION
                for _, name in form.regions]

    def _define_arguments(self, region: Region, info: d.RegionAttrs, scope: RegionScope) -> list[Argument]:
        """Define the arguments of a region: values, then a control token for each."""
        region_arguments = region.arguments
        half = len(region_arguments) // 2
        arguments = []
        for index in range(half):
            value, of, at = region_arguments[index]
            attributes = _dictionary(info.arguments, index)
            argument = self._signatures.argument(of, attributes, at)
            name = argument.name or value[1:]
            arguments.append(Argument(**{**argument.__dict__, "name": name}))
            scope.define(value, [Tensor(name, of, at)], at)
            token, _, where = region_arguments[half + index]
            scope.define(token, [Tensor(f"^{name}", CONTROL, where)], where)
        return arguments

    def _body_signature(self, node: ParsedNode, region: Region, info: d.RegionAttrs, arguments: Sequence[Argument],
                  ) -> Signature:
        """The signature of a region's function, whose captured values are not all known yet."""
        attributes = dict(info.attrs.items)
        shown = attributes.pop("sym_name", None)
        returns = region.body.returned
        assert returns is not None
        types = returns.types if returns.condition is None else (returns.condition[1],)
        outputs = []
        for index, of in enumerate(types):
            output = self._signatures.argument(of, _dictionary(info.results, index), returns.at)
            outputs.append(Argument(**{**output.__dict__, "name": output.name or f"result_{index}"}))
        parts: dict[str, Any] = self._signatures.attributes(attributes, node.at)
        parts.pop("gradient", None)
        shown_name = shown.value if isinstance(shown, a.StringAttr) else ""
        name = self._library.new_name(shown_name or f"{node.name or 'region'}_body")
        mark = a.StringAttr(shown_name or name)
        parts["attrs"] = {**parts["attrs"], REGION: self._signatures.value(REGION, mark, node.at)}
        return Signature(name, tuple(arguments), tuple(outputs), **parts)

    def _signature_with_captures(self, signature: Signature, captures: Captures, form: RegionForm, region: Region,
                                 ) -> Signature:
        """The signature with arguments, and with results of a loop's body, for captured values."""
        extra = [self._signatures.argument(argument.type, {}, argument.at) for argument in captures.tensors]
        names = list(captures.names.values())
        inputs = [Argument(**{**argument.__dict__, "name": name}) for argument, name in zip(extra, names, strict=True)]
        outputs = signature.outputs
        returns = region.body.returned
        if form.loop and returns is not None and returns.condition is None:
            outputs = (*outputs, *[
                Argument(**{**argument.__dict__, "name": f"{argument.name}_result"}) for argument in inputs])
        return Signature(**{**signature.__dict__, "inputs": (*signature.inputs, *inputs), "outputs": outputs})

    def _function_attributes(self, node: ParsedNode, form: RegionForm, functions: Sequence[Signature],
                             ) -> dict[str, a.Attribute]:
        """The attributes that name the functions of a node."""
        attributes = node.tail.attributes
        if form.functions == ("branches",):
            calls = attributes.get(form.regions[0][0])
            items = calls.items if isinstance(calls, a.ArrayAttr) else ()
            return {"branches": a.ArrayAttr(tuple(
                [d.FuncAttr(signature.name, items[i] if i < len(items) and isinstance(items[i], a.DictionaryAttr)  # type: ignore[arg-type]
                            else a.DictionaryAttr(())) for i, signature in enumerate(functions)]))}
        funcs: dict[str, a.Attribute] = {}
        for name, (call, _), signature in zip(form.functions, form.regions, functions, strict=True):
            value = attributes.get(call)
            call_attrs = value if isinstance(value, a.DictionaryAttr) else a.DictionaryAttr(())
            funcs[name] = d.FuncAttr(signature.name, call_attrs)
        return funcs

    def _implied_attributes(self, form: RegionForm, inputs: Sequence[Tensor], data: Sequence[Tensor],
                            results: Sequence[str]) -> dict[str, a.Attribute]:
        """The attributes that types imply."""
        implied: dict[str, a.Attribute] = {}
        for name in form.implied:
            if name == "Tcond":
                implied[name] = _element(inputs[0].type)
            else:
                types = results if name == "Tout" else [tensor.type for tensor in data]
                implied[name] = a.ArrayAttr(tuple(map(_element, types)))
        return implied


def _dictionary(attribute: a.ArrayAttr, index: int) -> Mapping[str, a.Attribute]:
    item = attribute.items[index] if index < len(attribute.items) else None
    return dict(item.items) if isinstance(item, a.DictionaryAttr) else {}


def _element(of: str) -> a.TypeAttr:
    """The element type of a tensor type."""
    text = element_text(of)
    return a.TypeAttr(t.OpaqueType("tf_type", text[9:]) if text.startswith("!tf_type.") else t.NamedType(text))
