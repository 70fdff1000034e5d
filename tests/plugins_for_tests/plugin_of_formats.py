"""A third party's formats in one file: `.scale` is a number that inputs are multiplied by, `.steps` a host program."""

import numpy as np
from heald.api import (
    Description,
    Graph,
    Initializer,
    Node,
    ShapeAttr,
    SignatureDef,
    TensorInfo,
    TensorMetadata,
    dtypes,
    hookimpl,
)

HEALD_API = (1, 0)
HEALD_ID = "formats"
F = dtypes.float32
VECTOR = TensorMetadata(F, (None,))


class ScaleSource:
    """The number is a variable: one signature multiplies by it, the other doubles it before."""

    def __init__(self, path, signature):
        self.path, self.chosen = path, signature or "scaled"
        sides = {"x": TensorInfo("x:0", VECTOR)}, {"y": TensorInfo("y:0", VECTOR)}
        self.signatures = {"scaled": SignatureDef("", *sides),
                           "doubled": SignatureDef("", {}, {"v": TensorInfo("v2:0", TensorMetadata(F, ()))})}

    def describe(self):
        chosen = self.signatures.get(self.chosen, SignatureDef("", {}, {}))
        inputs, outputs = ({name: info.meta for name, info in side.items()}
                           for side in (chosen.inputs, chosen.outputs))
        return Description("scale", inputs, outputs, self.signatures, self.chosen)

    def graph(self):
        number = {"dtype": F}
        return Graph([
            Node("x", "Placeholder", attrs=number), Node("saved", "Placeholder", attrs=number),
            Node("v", "VarHandleOp", attrs={"dtype": F, "shape": ShapeAttr()}),
            Node("init", "AssignVariableOp", ["v", "saved"], attrs=number),
            Node("read", "ReadVariableOp", ["v"], attrs=number), Node("y", "Mul", ["x", "read"], attrs={"T": F}),
            Node("twice", "AddV2", ["read", "read"], attrs={"T": F}),
            Node("assign", "AssignVariableOp", ["v", "twice"], attrs=number),
            Node("v2", "Identity", ["twice"], controls=["assign"], attrs={"T": F})])

    def initial_state(self):
        return [Initializer(frozenset(["v"]), "init", lambda: {"saved": np.float32(self.path.read_text().split()[1])})]


class ScaleLoader:
    def recognise(self, path, head):
        return head.startswith(b"scale ")

    def open(self, path, options):
        return ScaleSource(path, options.signature)


LOADER = ScaleLoader()


@hookimpl
def heald_loaders(registry):
    registry.add("scale", "plugin_of_formats:LOADER")
