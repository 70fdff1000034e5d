"""Kinds of broken plugins: the source of each, the moment at which it is found, and the line that names it.

docs/broken-plugins.md is made from this table.
"""

from __future__ import annotations

from typing import NamedTuple

HEAD = "import numpy as np\nfrom weft.api import OpSpec, hookimpl\nWEFT_API = (1, 0)\n"
DEVICE = HEAD + """
from weft_example_device.device import Example
class Broken(Example):
    def __init__(self):
        super().__init__(0, 1 << 20)
        self.type = "BROKEN"
{method}
def scan(config):
    {scan}
@hookimpl
def weft_devices(registry):
    registry.device(type="BROKEN", scan=scan, kernels="weft_example_device.kernels:register_kernels")
"""
KERNEL = HEAD + """
@hookimpl
def weft_ops(registry):
    registry.add(OpSpec("Broken>Op", inputs=["x: T"], outputs=["y: T"], attrs=["T: {{float}}"],
                        metadata=lambda attrs, x: x))
@hookimpl
def weft_kernels(registry):
    registry.kernels("CPU", register)
def register(kernels):
    @kernels.kernel("Broken>Op"{options})
    def bind(b):
        {body}
"""


class Kind(NamedTuple):
    """One kind. `when`: "load", "scan", "open" or "run". `line`: the text of its line, `{id}` being the plugin's id."""

    when: str
    source: str
    line: str


def device(method: str = "", scan: str = "return [Broken()]") -> str:
    return DEVICE.format(method="".join(f"    {line}\n" for line in method.splitlines()), scan=scan)


def raising(method: str, arguments: str = "*a") -> str:
    return device(f"def {method}(self, {arguments}):\n    raise RuntimeError('boom')")


def kernel(body: str, options: str = "") -> str:
    return KERNEL.format(body=body, options=options)


KINDS = {
    "import raises": Kind("load", "1 / 0", "plugin {id} is failed: import of"),
    "import exits": Kind("load", "raise SystemExit(3)", "plugin {id} is failed: import of"),
    "syntax error": Kind("load", "def", "SyntaxError: invalid syntax"),
    "no version": Kind("load", "x = 1", "WEFT_API is missing"),
    "later version": Kind("load", "WEFT_API = (9, 0)", "plugin {id} is incompatible: it is written for plugin API 9.0"),
    "unknown hook": Kind("load", HEAD + "@hookimpl\ndef weft_kernel(registry): ...", "did you mean weft_kernels?"),
    "unmarked hook": Kind("load", HEAD + "def weft_ops(registry): ...", "decorate it with @hookimpl"),
    "wrong parameter": Kind("load", HEAD + "@hookimpl\ndef weft_ops(registry, conf): ...", "a hook takes `registry`"),
    "hook raises": Kind("load", HEAD + "@hookimpl\ndef weft_ops(registry): 1 / 0", "hook weft_ops raised ZeroDivision"),
    "op of another signature": Kind(
        "load", HEAD + "@hookimpl\ndef weft_ops(registry): registry.add(OpSpec('MatMul'))",
        "op MatMul is plugin tf_ops's already, with another signature"),
    "allocator of another plugin": Kind(
        "load", HEAD + "@hookimpl\ndef weft_allocators(registry): registry.add('plain', list)",
        "allocator 'plain' is registered by another plugin already"),
    "device type in small letters": Kind(
        "load", HEAD + "@hookimpl\ndef weft_devices(registry): registry.device(type='gpu', scan=list)",
        "device type 'gpu' must be written in capitals"),
    "scan raises": Kind("scan", device(scan="1 / 0"), "scan of plugin {id} raised ZeroDivisionError: division by zero"),
    "scan gives no devices": Kind("scan", device(scan="return 7"), "scan of plugin {id} returned int, expected"),
    "scan gives another object": Kind("scan", device(scan="return [object()]"),
                                      "scan of plugin {id} gave an object of object, which has no type, uid"),
    "device of another type": Kind("scan", device(scan="d = Broken(); d.type = 'OTHER'; return [d]"),
                                   "gave a device of type 'OTHER', it announces 'BROKEN'"),
    "device without a uid": Kind("scan", device(scan="d = Broken(); d.uid = None; return [d]"),
                                 "with the uid None, expected a non-empty str"),
    "open raises": Kind("open", raising("open"), "open of device BROKEN:0 (plugin {id}) failed with"),
    "allocate raises": Kind("open", raising("allocate"), "allocate of device BROKEN:0 (plugin {id}) failed with"),
    "copy_in raises": Kind("open", raising("copy_in"), "copy_in of device BROKEN:0 (plugin {id}) failed with"),
    "copy_out raises": Kind("open", raising("copy_out"), "copy_out of device BROKEN:0 (plugin {id}) failed with"),
    "record raises": Kind("open", raising("record"), "record of device BROKEN:0 (plugin {id}) failed with"),
    "synchronize raises": Kind("open", raising("synchronize"), "synchronize of device BROKEN:0 (plugin {id}) failed"),
    "kernel of a wrong dtype name": Kind("run", kernel("return None", ", dtypes={'T': 'flaot32'}"),
                                         "plugin {id}: registering its kernels for CPU raised"),
    "kernel of a wrong host input": Kind("run", kernel("return None", ", host=['shape']"), "which is no input of"),
    "bind raises": Kind("run", kernel("1 / 0"), "bind of {id}'s kernel for Broken>Op raised ZeroDivisionError"),
    "bind gives no kernel": Kind("run", kernel("return 7"), "bind of {id}'s kernel for Broken>Op returned int"),
    "run raises": Kind("run", kernel("return lambda x, out: 1 / 0"),
                       "kernel {id}.Broken>Op failed with ZeroDivisionError"),
    "run returns an array": Kind("run", kernel("return lambda x, out: np.exp(x)"),
                                 "the kernel of Broken>Op (plugin {id}) returned an array; it must write its output"),
    "run gives a wrong shape": Kind("run", kernel("return lambda x: np.float32([1, 2])", ", allocates=True"),
                                    "the kernel of Broken>Op (plugin {id}) returned float32[2], expected"),
    "run gives a wrong type": Kind("run", kernel("return lambda x: x.astype(np.int32)", ", allocates=True"),
                                   "the kernel of Broken>Op (plugin {id}) returned int32[3], expected"),
    "run gives too many values": Kind("run", kernel("return lambda x: (x, x)", ", allocates=True"),
                                      "the kernel of Broken>Op (plugin {id}) returned 2 values, expected 1"),
}
