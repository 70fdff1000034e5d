"""A loader of the tests: a file "signed KIND" is a model whose signature has the fault KIND; "right" has none.

Signatures are "chosen", the default, and "columns", whose inputs have no static shape.
"""

from __future__ import annotations

from heald.api import Description, Graph, Node, ShapeAttr, SignatureDef, TensorInfo, TensorMetadata, dtypes, hookimpl

HEALD_API = (1, 4)
FLOAT = dtypes.float32
VECTOR = TensorMetadata(FLOAT, (3,))
INPUTS = {"missing input": TensorInfo("gone:0", VECTOR),
          "other type": TensorInfo("x:0", TensorMetadata(dtypes.int32, (3,)))}
OUTPUTS = {"missing output": TensorInfo("gone:0", VECTOR), "missing port": TensorInfo("y:3", VECTOR)}


class Source:
    def __init__(self, kind):
        self.kind = kind
        inputs = {"x": INPUTS.get(kind, TensorInfo("x:0", VECTOR))}
        outputs = {"y": OUTPUTS.get(kind, TensorInfo("y:0", VECTOR))}
        columns = {f"c{i}": TensorInfo(f"c{i}:0", TensorMetadata(FLOAT, (None,))) for i in range(7)}
        total = {"sum": TensorInfo("sum:0", TensorMetadata(FLOAT, None))}
        self.signatures = {"chosen": SignatureDef("", inputs, outputs), "columns": SignatureDef("", columns, total)}

    def describe(self):
        chosen = self.signatures["chosen"]
        inputs = {"z": VECTOR} if self.kind == "other description" else {n: i.meta for n, i in chosen.inputs.items()}
        return Description("signed", inputs, {n: i.meta for n, i in chosen.outputs.items()}, self.signatures, "chosen")

    def graph(self):
        columns = [Node(f"c{i}", "Placeholder", attrs={"dtype": FLOAT}) for i in range(7)]
        return Graph([Node("x", "Placeholder", attrs={"dtype": FLOAT, "shape": ShapeAttr((3,))}),
                      Node("y", "Neg", ["x"], attrs={"T": FLOAT}), *columns,
                      Node("sum", "AddN", [node.name for node in columns], attrs={"T": FLOAT, "N": 7})])

    def initial_state(self):
        return ()


class Loader:
    def recognise(self, _path, head):
        return head.startswith(b"signed ")

    def open(self, path, _options):
        return Source(path.read_text("utf-8").partition(" ")[2].strip())


@hookimpl
def heald_loaders(registry):
    registry.add("signed", Loader())
