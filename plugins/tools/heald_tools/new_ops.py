"""The files of a plugin for ops that a model has: `heald new ops NAME --from MODEL OP`.

The package has the layout of the example of ops. Its signatures come from the model (see op_signature). Its metadata
functions state types and no shapes, and its kernels raise Unimplemented until they are written. Each kernel returns its
results, for a metadata function without shapes lets no buffer be planned.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

from heald.api import DType, Func, OpDef, OpSpec, ShapeAttr, TensorValue
from heald.errors import HealdError, InvalidArgument, display_text
from heald.runtime.contract import REQUIRED, ArgDef, AttrDef, check_attributes
from heald.runtime.support import install

from .op_signature import FoundOp, OpUse

_PLAIN_ITEM = re.compile(r"[\w.+-]+")  # a text that the notation's braces and commas leave whole


class OpTexts(NamedTuple):
    """The generated names and texts of one op."""

    found: FoundOp
    function: str
    constant: str
    spec: str
    doubts: tuple[str, ...]


def op_texts(found_ops: Iterable[FoundOp]) -> list[OpTexts]:
    """The texts of ops, under different names. Raises InvalidArgument for an op that is there twice."""
    texts: dict[str, OpTexts] = {}
    for found in found_ops:
        if any(text.found.op.name == found.op.name for text in texts.values()):
            raise InvalidArgument(f"op {display_text(found.op.name)} is named twice")
        function = function_name(found.op.name)
        if function in texts:  # of another company
            function = f"{function}_{len(texts)}"
        spec, lost = spec_text(found.op, function)
        texts[function] = OpTexts(found, function, function.upper(), spec, (*found.doubts, *lost))
    return [*texts.values()]


def function_name(op: str) -> str:
    """The op's name as that of a Python function: "MyCo>FastGelu" is fast_gelu."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "_", op.rpartition(">")[2])
    name = re.sub(r"\W+|_+", "_", words).strip("_").lower() or "op"
    return f"op_{name}" if name[0].isdigit() or keyword.iskeyword(name) or name in ("info", "np") else name


def spec_text(op: OpDef, function: str) -> tuple[str, list[str]]:
    """Return the OpSpec of an op as Python, and a sentence for each part that the notation cannot state."""
    attrs, lost = [], []
    for attr in op.attrs.values():
        text = _attr_text(attr)
        stated = _declare(op.name, text)
        if stated is None:
            text = _attr_text(attr._replace(default=REQUIRED))  # of such as an infinite number
            stated = _declare(op.name, text)
        if stated is None or stated.signature != OpDef(op.name, attrs={attr.name: attr}).signature:
            lost.append(f"The declaration of attribute '{attr.name}' has more in the model.")
        attrs.append(text)
    inputs, outputs = [_arg_text(arg) for arg in op.inputs], [_arg_text(arg) for arg in op.outputs]
    stateful = ", stateful=True" if op.stateful else ""
    return (f"OpSpec(\n    {op.name!r},\n    {_list_text(inputs)},\n    {_list_text(outputs)},\n"
            f"    {_list_text(attrs)},\n    metadata={function}{stateful})"), lost


def _declare(op: str, attr: str) -> OpDef | None:
    """An op with the attribute of this text, or None for a text that is none of the notation."""
    try:
        return OpSpec(op, (), (), [attr]).definition()
    except HealdError:
        return None


def _list_text(items: Sequence[str]) -> str:
    text = f"[{', '.join(map(_quoted, items))}]"
    return text if len(text) < 100 else "[\n        " + ",\n        ".join(map(_quoted, items)) + "]"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _arg_text(arg: ArgDef) -> str:
    kind = arg.dtype.tf_name if arg.dtype is not None else arg.type_attr or arg.type_list_attr or "float"
    kind = f"Ref({kind})" if arg.is_ref else kind
    return f"{arg.name}: {arg.number_attr} * {kind}" if arg.number_attr is not None else f"{arg.name}: {kind}"


def _attr_text(attr: AttrDef) -> str:
    """An attribute in the notation. A part that the notation lacks is left out."""
    kind, allowed = attr.type, attr.allowed or ()
    if allowed and kind == "type":
        kind = "{" + ", ".join(dtype.tf_name for dtype in allowed) + "}"
    elif allowed and kind == "string" and all(_PLAIN_ITEM.fullmatch(text) for text in allowed):
        kind = "{" + ", ".join(f"'{text}'" for text in allowed) + "}"
    text = f"{attr.name}: {kind}"
    if attr.minimum is not None:
        text += f" >= {attr.minimum}"
    default = _default_text(attr)
    return text if default is None else f"{text} = {default}"


def _default_text(attr: AttrDef) -> str | None:
    value = attr.default
    if value is REQUIRED or isinstance(value, TensorValue | Func):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, DType):
        return value.tf_name
    if isinstance(value, tuple):
        return repr([*value]) if not any(isinstance(item, DType | TensorValue | Func) for item in value) else None
    return repr(value)


def package_files(package: str, ops: Sequence[OpTexts], model: str) -> dict[str, str]:
    """The generated files by their paths in the plugin's folder."""
    return {
        f"{package}/ops.py": _ops_module(ops, model),
        f"{package}/kernels.py": _kernels_module(package, ops),
        f"{package}/plugin.py": _plugin_module(package, ops),
        "tests/test_ops.py": _tests_module(ops),
        "README.md": _readme(package, ops, model),
    }


def _ops_module(ops: Sequence[OpTexts], model: str) -> str:
    names = {"Attrs", "OpSpec", "ValueInfo"} | ({"info"} if any(text.found.op.outputs for text in ops) else set())
    names |= {"dtypes"} if any(arg.dtype is not None for text in ops for arg in text.found.op.outputs) else set()
    imported = ", ".join(sorted(names, key=lambda name: (name[0].islower(), name)))
    parts = [f'"""The ops: their signatures, as `{model}` has them, and their metadata functions."""\n',
             "from __future__ import annotations\n", f"from heald.api import {imported}"]
    for text in ops:
        parts += ["", "", _metadata_function(text), "", ""]
        parts += [f"# From {text.found.source}."]
        parts += [f"# {line}" for doubt in text.doubts for line in wrap(doubt, 110)]
        parts += [f"{text.constant} = {text.spec}"]
    return "\n".join(parts) + "\n"


def _metadata_function(text: OpTexts) -> str:
    """A function that states the types of the results. Its author adds shapes and checks."""
    op = text.found.op
    lines = [f"def {text.function}({_parameters(op, 'ValueInfo')}) -> tuple[ValueInfo, ...]:",
             '    """To fill in: the shapes of the results, and InvalidArgument for inputs that do not fit."""']
    items = []
    for arg in op.outputs:
        if arg.type_list_attr is not None:
            items.append(f"*(info(dtype, None) for dtype in attrs[{arg.type_list_attr!r}])")
            continue
        dtype = f"dtypes.{arg.dtype.name}" if arg.dtype is not None else f"attrs[{arg.type_attr!r}]"
        if arg.number_attr is not None:
            items.append(f"*(info({dtype}, None) for _ in range(attrs[{arg.number_attr!r}]))")
        else:
            items.append(f"info({dtype}, None)")
    return "\n".join([*lines, f"    return ({', '.join(items)}{',' * (len(items) == 1)})"])


def _parameters(op: OpDef, kind: str) -> str:
    """The parameters of a metadata function: one for each input, or all tensors where an argument is a list."""
    if any(arg.number_attr is not None or arg.type_list_attr is not None for arg in op.inputs):
        return f"attrs: Attrs, *tensors: {kind}"
    return ", ".join(["attrs: Attrs", *(f"{_variable(arg.name)}: {kind}" for arg in op.inputs)])


def _variable(name: str) -> str:
    name = re.sub(r"\W", "_", name)
    return f"{name}_" if keyword.iskeyword(name) or name in ("attrs", "info", "dtypes") else name


def _kernels_module(package: str, ops: Sequence[OpTexts]) -> str:
    parts = ['"""The kernels. heald imports this module when a device of type CPU is first opened."""\n',
             "from __future__ import annotations\n", "from typing import Any\n", "import numpy as np",
             "from heald.api import Bind, Kernels, errors\n", "Array = np.ndarray[Any, Any]\n\n",
             "def register_kernels(kernels: Kernels) -> None:"]
    parts += [f"    kernels.kernel({text.found.op.name!r}, allocates=True)({text.function})" for text in ops]
    for text in ops:
        parts += ["", "", _kernel(package, text)]
    return "\n".join(parts) + "\n"


def _kernel(package: str, text: OpTexts) -> str:
    op = text.found.op
    is_list = any(arg.number_attr is not None or arg.type_list_attr is not None for arg in op.inputs)
    inputs = "*tensors: Array" if is_list else ", ".join(f"{_variable(arg.name)}: Array" for arg in op.inputs)
    results = "Array" if len(op.outputs) == 1 else "tuple[Array, ...]"
    outputs = ", ".join(arg.name for arg in op.outputs) or "nothing"
    attrs = f"`b.attrs` has {', '.join(op.attrs)}" if op.attrs else "the op has no attributes"
    about = wrap(f"Choose the algorithm: {attrs}. `run` returns {outputs}. Where the metadata function states the "
                 'shapes, leave out `allocates` and write to the outputs: they stand behind the inputs."""', 112)
    return "\n".join([
        f"def {text.function}(b: Bind) -> Any:", f'    """{about[0]}', *(f"    {line}" for line in about[1:]),
        f"    def run({inputs}) -> {results}:",
        f'        raise errors.Unimplemented({_quoted(f"the kernel of {op.name} is to be written")},',
        f'                                   hint="{package}/kernels.py: {text.function}")', "", "    return run"])


def _plugin_module(package: str, ops: Sequence[OpTexts]) -> str:
    adds = "\n".join(f"    registry.add({text.constant})" for text in ops)
    return f'''"""The plugin: the ops, and their kernels for the device type CPU.

heald imports this module at every start, so the module is light and imports no kernels.
"""

from heald.api import KernelPackRegistrar, OpRegistrar, hookimpl

from .ops import {", ".join(sorted(text.constant for text in ops))}

HEALD_API = (1, 3)
HEALD_ID = "{package.removeprefix("heald_")}"


@hookimpl
def heald_ops(registry: OpRegistrar) -> None:
{adds}


@hookimpl
def heald_kernels(registry: KernelPackRegistrar) -> None:
    registry.kernels("CPU", "{package}.kernels:register_kernels")
'''


def _tests_module(ops: Sequence[OpTexts]) -> str:
    rows = ",\n    ".join(_node_row(text) for text in ops)
    return f'''"""The ops in a graph, with the attributes of a node of the model."""

from __future__ import annotations

from typing import Any

import heald
import numpy as np
import pytest
from heald.api import Graph, Node, dtypes

NODES: list[tuple[str, list[str], dict[str, Any]]] = [  # op, types of the inputs, attributes
    {rows},
]
NOT_FED = {{"resource", "variant"}}


def graph_of(op: str, types: list[str], attrs: dict[str, Any]) -> Graph:
    feeds = [Node(f"x{{i}}", "Placeholder", attrs={{"dtype": dtype}}) for i, dtype in enumerate(types)]
    return Graph([*feeds, Node("y", op, [node.name for node in feeds], attrs=attrs)])


@pytest.mark.parametrize(("op", "types", "attrs"), NODES)
def test_a_node_of_the_model_fits_the_op_and_has_a_kernel(op: str, types: list[str], attrs: dict[str, Any]) -> None:
    rows = {{row["node"]: row for row in heald.Session(graph_of(op, types, attrs)).placement().table()}}
    assert rows["y"]["assigned"] == "CPU:0"


@pytest.mark.xfail(raises=heald.errors.Unimplemented, reason="write the kernel, and compare its results", strict=True)
@pytest.mark.parametrize(("op", "types", "attrs"), [row for row in NODES if not NOT_FED & {{*row[1]}}])
def test_the_kernel_returns_the_results_of_the_op(op: str, types: list[str], attrs: dict[str, Any]) -> None:
    feeds = {{f"x{{i}}": b"" if dtype == "string" else np.zeros((), dtypes.named(dtype).numpy)
             for i, dtype in enumerate(types)}}
    heald.Session(graph_of(op, types, attrs)).run([], feeds, targets=["y"])
'''


def _node_row(text: OpTexts) -> str:
    op = text.found.op
    use = next((use for use in text.found.uses if _is_literal(use)), OpUse({}, (), ()))
    attrs = {**{name: _sample(attr) for name, attr in op.attrs.items() if attr.default is REQUIRED},
             **{name: _literal(value) for name, value in use.attrs.items() if name in op.attrs}}
    types = [tensor.dtype.name for tensor in op.expand_inputs(check_attributes(op, attrs))]
    return f"({op.name!r}, {types!r}, {attrs!r})"


def _is_literal(use: OpUse) -> bool:
    return not any(isinstance(value, TensorValue) or type(value).__name__ in ("AttrPlaceholder", "Unset")
                   for value in use.attrs.values())


def _literal(value: Any) -> Any:
    """An attribute's value in a form that its repr states."""
    if isinstance(value, DType):
        return value.name
    if isinstance(value, Func):
        return value.name
    if isinstance(value, ShapeAttr):
        return tuple(value)
    return [_literal(item) for item in value] if isinstance(value, tuple) else value


def _sample(attr: AttrDef) -> Any:
    """A value that the declaration takes, for an op without a node in the model."""
    if attr.allowed:
        return _literal(attr.allowed[0])
    if attr.type.startswith("list("):
        return []
    samples = {"string": "", "int": attr.minimum or 0, "float": 0.0, "bool": False, "type": "float32", "shape": (),
               "tensor": 0.0, "func": "f"}
    return samples[attr.type]


def _readme(package: str, ops: Sequence[OpTexts], model: str) -> str:
    names = ", ".join(f"`{text.found.op.name}`" for text in ops)
    return f"""# {package.replace("_", "-")}

Ops for heald, with the signatures that `{model}` has: {names}.

```sh
{install.install_folder_command(".[test]")}
pytest
heald ops --missing {model}
```

| file | content | to fill in |
|---|---|---|
| `plugin.py` | the registration of the ops, and of their kernels for the device type `CPU` | |
| `ops.py` | the signatures, and the metadata functions | shapes of the results, checks, and the comments' doubts |
| `kernels.py` | a kernel for each op, which raises Unimplemented | the kernels |
| `tests/` | a node of the model in a graph | arrays, and the results of another runtime |
"""
