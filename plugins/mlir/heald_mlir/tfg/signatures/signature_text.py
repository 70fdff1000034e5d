"""The signature of a function as text: arguments, results and attributes with their names in the dialect."""

from __future__ import annotations

from collections.abc import Sequence

from ...attribute_text import symbol_text
from ..values.attribute_forms import form_of, full_type_form
from ..values.element_types import OPAQUE, TEXTS
from ..values.node_section import quoted_text
from .node_texts import Fragments, braces
from .result_types import tensor_type
from .signature import Argument, AttrDef, Signature

_TEXTS = {"tfg.name": "name", "tfg.description": "description", "tfg.type_attr": "type_attr",
          "tfg.number_attr": "number_attr", "tfg.type_list_attr": "type_list_attr"}


def argument_text(argument: Argument, generic: bool) -> str:
    """Type and attributes of an argument or a result."""
    texts = argument_attributes(argument, generic)
    return f"{OPAQUE if generic else tensor_type(argument.type)}{''.join(braces(texts))}"


def argument_attributes(argument: Argument, generic: bool) -> dict[str, Fragments]:
    """The texts of an argument's attributes by name."""
    texts: dict[str, Fragments] = {key: [quoted_text(getattr(argument, slot))] for key, slot in _TEXTS.items()
                                   if key == "tfg.name" or getattr(argument, slot)}
    if argument.handle_data:
        texts["tfg.handle_data"] = [f"[{', '.join([_handle(*handle) for handle in argument.handle_data])}]"]
    if argument.is_ref:
        texts["tfg.is_ref"] = ["unit"]
    if argument.full_type:
        texts["tfg.experimental_full_type"] = [f"#tf_type.full_type<{full_type_form(argument.full_type)[0]}>"]
    values = {name: form_of(value).text for name, value in argument.attrs.items() if name or not generic}
    if generic:
        if argument.type:
            texts["tfg.type"] = [TEXTS.get(argument.type, "none")]
        if values:
            texts["tfg.arg_attrs"] = ["".join(braces(values)).lstrip()]
    else:
        texts |= {f"tf.{name}": text for name, text in values.items()}
    return texts


def _handle(dtype: int, shape: tuple[int, ...] | None) -> str:
    dims = "*x" if shape is None else "".join([f"{dim}x" for dim in shape])
    return f"tensor<{dims}{TEXTS.get(dtype, 'none')}>"


def attribute_texts(signature: Signature, generic: bool, gradient: str | None) -> dict[str, Fragments]:
    """The texts of a function's attributes by name."""
    texts: dict[str, Fragments] = {f"tf.{name}": form_of(value).text for name, value in signature.attrs.items()}
    if signature.description:
        texts["description"] = [quoted_text(signature.description)]
    if signature.is_stateful:
        texts["is_stateful"] = ["unit"]
    if gradient is not None:
        texts["gradient"] = [symbol_text(gradient)]
    if signature.unique_ids:
        ids = sorted(signature.unique_ids.items())
        texts["resource_arg_unique_ids_keys"] = [_dense([key for key, _ in ids])]
        texts["resource_arg_unique_ids_values"] = [_dense([value for _, value in ids])]
    if generic:
        if signature.control_outputs:
            texts["control_output"] = [f"[{', '.join(map(quoted_text, signature.control_outputs))}]"]
        if signature.attr_defs:
            defs = {name: _attr_def(attr_def) for name, attr_def in signature.attr_defs.items()}
            texts["tfg.func_attrs"] = ["".join(braces(defs)).lstrip()]
    return texts


def _dense(values: Sequence[int]) -> str:
    splat = values.count(values[0]) == len(values)
    shown = str(values[0]) if splat else f"[{', '.join(map(str, values))}]"
    return f"dense<{shown}> : tensor<{len(values)}xi32>"


def _attr_def(attr_def: AttrDef) -> Fragments:
    texts: dict[str, Fragments] = {"function_type": [quoted_text(attr_def.type)]}
    if attr_def.default is not None:
        texts["default_value"] = form_of(attr_def.default).text
    if attr_def.description:
        texts["description"] = [quoted_text(attr_def.description)]
    if attr_def.minimum is not None:
        texts["minimum"] = [f"{attr_def.minimum} : i32"]
    if attr_def.allowed is not None:
        allowed = form_of(attr_def.allowed).text
        texts["allowed_values"] = allowed
    return ["".join(braces(texts)).lstrip()]
