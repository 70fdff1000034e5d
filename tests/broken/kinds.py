"""Kinds of broken plugins: the source of each, the moment at which it is found, and the line that names it.

docs/broken-plugins.md is made from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from heald.runtime.support.install import install_hint

HEAD = "import numpy as np\nfrom heald.api import OpSpec, hookimpl\nHEALD_API = (1, 0)\n"
DEVICE = HEAD + """
from heald_example_device.device import Example
class Broken(Example):
    def __init__(self):
        super().__init__(0, 1 << 20)
        self.type = "BROKEN"
{method}
def scan(config):
    {scan}
@hookimpl
def heald_devices(registry):
    registry.device(type="BROKEN", scan=scan, kernels="heald_example_device.kernels:register_kernels")
"""
KERNEL = HEAD + """
@hookimpl
def heald_ops(registry):
    registry.add(OpSpec("Broken>Op", inputs=["x: T"], outputs=["y: T"], attrs=["T: {{float}}"],
                        metadata=lambda attrs, x: x))
@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register)
def register(kernels):
    @kernels.kernel("Broken>Op"{options})
    def bind(b):
        {body}
"""


class Kind(NamedTuple):
    """One kind. `{id}` stands for the plugin's id in its texts.

    `when`: "load", "scan", "open", "run" or "close".
    `line`: the text of its line, and `remedy`: the end of it.
    `config`: settings under which it is found.
    """

    when: str
    source: str
    line: str
    remedy: str
    config: Mapping[str, Any] = {}


def device(method: str = "", scan: str = "return [Broken()]") -> str:
    return DEVICE.format(method="".join(f"    {line}\n" for line in method.splitlines()), scan=scan)


def raising(method: str, arguments: str = "*a") -> str:
    return device(f"def {method}(self, {arguments}):\n    raise RuntimeError('boom')")


def kernel(body: str, options: str = "") -> str:
    return KERNEL.format(body=body, options=options)


SHOWN = "--traceback {id}' shows where"
DEVICE_REMEDY = "[plugins] block = ['{id}'] leaves its devices out"
KERNEL_REMEDY = "[kernels] Broken>Op chooses another plugin's kernel"
MESSAGE = " (plugin {id}) failed with RuntimeError: boom, raised at "

KINDS = {
    "import raises": Kind("load", "1 / 0", "plugin {id} is failed: import of", SHOWN),
    "import exits": Kind("load", "raise SystemExit(3)", "plugin {id} is failed: import of", SHOWN),
    "syntax error": Kind("load", "def", "SyntaxError: invalid syntax", SHOWN),
    "no version": Kind("load", "x = 1", "HEALD_API is missing", "write HEALD_API = (1, 3)"),
    "later version": Kind("load", "HEALD_API = (9, 0)", "plugin {id} is incompatible: it is written for plugin API 9.0",
                          install_hint("heald-core", upgrade=True)),
    "unknown hook": Kind("load", HEAD + "@hookimpl\ndef heald_kernel(registry): ...", "there is no hook called",
                         "did you mean heald_kernels?"),
    "unmarked hook": Kind("load", HEAD + "def heald_ops(registry): ...", "heald_ops is not marked as a hook",
                          "decorate it with @hookimpl"),
    "wrong parameter": Kind("load", HEAD + "@hookimpl\ndef heald_ops(registry, conf): ...", "heald_ops(registry, conf)",
                            "a hook takes `registry` and, optionally, `config`"),
    "hook raises": Kind("load", HEAD + "@hookimpl\ndef heald_ops(registry): 1 / 0",
                        "hook heald_ops raised ZeroDivision", SHOWN),
    "op of another signature": Kind(
        "load", HEAD + "@hookimpl\ndef heald_ops(registry): registry.add(OpSpec('MatMul'))",
        "op MatMul is plugin tf_ops's already, with another signature",
        "declare an equal signature, or name it MINE>OP"),
    "pass of another plugin": Kind(
        "load", HEAD + "@hookimpl\ndef heald_passes(registry): registry.add('identities', list)",
        "pass 'identities' is plugin simplify's already", "rename it, or leave it out, in plugin {id}"),
    "allocator of heald's own": Kind(
        "load", HEAD + "@hookimpl\ndef heald_allocators(registry): registry.add('plain', list)",
        "allocator 'plain' is heald's own already", "rename it, or leave it out, in plugin {id}"),
    "device type in small letters": Kind(
        "load", HEAD + "@hookimpl\ndef heald_devices(registry): registry.device(type='gpu', scan=list)",
        "device type 'gpu' must be written in capitals", SHOWN),
    "scan raises": Kind("scan", device(scan="1 / 0"), "scan of plugin {id} raised ZeroDivisionError: division by zero",
                        DEVICE_REMEDY),
    "scan gives no devices": Kind("scan", device(scan="return 7"), "scan of plugin {id} returned int, expected",
                                  DEVICE_REMEDY),
    "scan gives another object": Kind("scan", device(scan="return [object()]"),
                                      "scan of plugin {id} gave an object of object, which has no type, uid",
                                      DEVICE_REMEDY),
    "device of another type": Kind("scan", device(scan="d = Broken(); d.type = 'OTHER'; return [d]"),
                                   "gave a device of type 'OTHER', it announces 'BROKEN'", DEVICE_REMEDY),
    "device without a uid": Kind("scan", device(scan="d = Broken(); d.uid = None; return [d]"),
                                 "with the uid None, expected a non-empty str", DEVICE_REMEDY),
    **{f"{method} raises": Kind("open", raising(method), f"{method} of device BROKEN:0{MESSAGE}", DEVICE_REMEDY)
       for method in ("open", "allocate", "free", "copy_in", "copy_out", "record", "synchronize")},
    "close raises": Kind("close", raising("close"), f"close of device BROKEN:0{MESSAGE}", DEVICE_REMEDY),
    "kernels cannot be imported": Kind(
        "open", device().replace("heald_example_device.kernels:register_kernels", "no_such_kernels:register"),
        "plugin {id}: registering its kernels for BROKEN raised ModuleNotFoundError", "--traceback {id}' shows where"),
    "kernel of a wrong dtype name": Kind("run", kernel("return None", ", dtypes={'T': 'flaot32'}"),
                                         "plugin {id}: registering its kernels for CPU raised",
                                         "did you mean float32?"),
    "kernel of a wrong host input": Kind("run", kernel("return None", ", host=['shape']"),
                                         "host of {id}'s kernel for Broken>Op names 'shape', which is no input of",
                                         "the op's inputs: x"),
    "bind raises": Kind("run", kernel("1 / 0"), "bind of {id}'s kernel for Broken>Op raised ZeroDivisionError",
                        KERNEL_REMEDY),
    "bind gives no kernel": Kind("run", kernel("return 7"), "bind of {id}'s kernel for Broken>Op returned int",
                                 KERNEL_REMEDY),
    "run raises": Kind("run", kernel("return lambda x, out: 1 / 0"),
                       "kernel {id}.Broken>Op failed with ZeroDivisionError", KERNEL_REMEDY),
    "run returns an array": Kind("run", kernel("return lambda x, out: np.exp(x)"),
                                 "the kernel of Broken>Op (plugin {id}) returned an array; it must write its output",
                                 "write to the last argument, or declare the kernel with allocates=True"),
    "run gives a wrong shape": Kind("run", kernel("return lambda x: np.float32([1, 2])", ", allocates=True"),
                                    "the kernel of Broken>Op (plugin {id}) returned float32[2], expected",
                                    KERNEL_REMEDY),
    "run gives a wrong type": Kind("run", kernel("return lambda x: x.astype(np.int32)", ", allocates=True"),
                                   "the kernel of Broken>Op (plugin {id}) returned int32[3], expected", KERNEL_REMEDY),
    "run gives too many values": Kind("run", kernel("return lambda x: (x, x)", ", allocates=True"),
                                      "the kernel of Broken>Op (plugin {id}) returned 2 values, expected 1",
                                      KERNEL_REMEDY),
    "run changes an input": Kind("run", kernel("return lambda x, out: np.copyto(out, np.negative(x, x))"),
                                 "the kernel of Broken>Op (plugin {id}) changed an input",
                                 "write to the outputs alone, or declare inplace", {"debug": {"poison": True}}),
    "run promises nothing and comes later": Kind(
        "run", "from heald.api import AsyncValue\n" + kernel("return lambda x: AsyncValue()", ", allocates=True"),
        "the kernel of Broken>Op (plugin {id}) returned an AsyncValue", "declare the kernel with asynchronous=True"),
}
