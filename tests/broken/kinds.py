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

ALLOCATOR = HEAD + """
from heald.api import AllocatorStats, PlainAllocator
class Broken(PlainAllocator):
{method}
@hookimpl
def heald_allocators(registry):
    registry.add("broken", {factory})
"""
QUEUE = HEAD + """
class Broken:
    parallelism_level = 1
    def add_task(self, task): task()
    def add_blocking_task(self, task, allow_queuing): return task() or True
    def await_values(self, values, timeout=None): return all(value.is_available() for value in values)
    def quiesce(self, timeout=None): return True
    def close(self): ...
{method}
@hookimpl
def heald_work_queues(registry):
    registry.add("broken", {factory})
"""
LOADER = HEAD + """
from heald.api import DType, Description, Graph, Node, SignatureDef, TensorInfo, TensorMetadata
import heald
class Source:
    signatures = {{}}
    def describe(self): return Description("broken")
    def graph(self): return Graph([])
    def initial_state(self): return ()
class Loader:
    def recognise(self, path, head): return True
    def open(self, path, options): return Source()
{method}
@hookimpl
def heald_loaders(registry):
    registry.add("broken", Loader())
"""
PASS = HEAD + """
from heald.api import Pattern, Rule, rewrite
@hookimpl
def heald_passes(registry):
    registry.add("broken", broken)
def broken(graph, context):
    {body}
"""
COMPILER = HEAD + """
class Broken:
    def claim(self, part):
        {claim}
    def compile(self, group):
        {body}
@hookimpl
def heald_compilers(registry):
    registry.add("broken", {compiler}, device_type="CPU")
"""
HANDLER = HEAD + """
class Broken:
    def __init__(self, context, fallback): ...
    def make_op(self, op):
        {body}
@hookimpl
def heald_op_handlers(registry):
    registry.add("broken", {factory})
"""
SESSION = HEAD + """
@hookimpl
def heald_sessions(registry):
    registry.add("broken", make)
def make(graph, config, target, device):
    {body}
"""


class Kind(NamedTuple):
    """One kind. `{id}` stands for the plugin's id in its texts.

    `when`: "load", "scan", "open", "check", "run", "choose", "file", "pass", "handler", "session" or "close".
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


def waiting(method: str, action: str) -> str:
    """A device whose `synchronize` does this behind work that the method `method` of its native handle enqueued."""
    return device(f"def synchronize(self, event):\n    queue = self.native.streams[event.stream]\n"
                  f"    if len(queue) > 1 and {method!r} in queue[-2].__qualname__:\n        {action}\n"
                  "    super().synchronize(event)")


def raising(method: str, arguments: str = "*a") -> str:
    return device(f"def {method}(self, {arguments}):\n    raise RuntimeError('boom')")


def kernel(body: str, options: str = "") -> str:
    return KERNEL.format(body=body, options=options)


def chosen(template: str, key: str, line: str, method: str = "", factory: str = "Broken") -> Kind:
    body = "".join(f"    {part}\n" for part in method.splitlines()) or "    ..."
    source = template.format(method=body, factory=factory)
    return Kind("choose", source, line, REMEDY_OF[key], {key: {"name": "broken"}})


def loader(line: str, method: str = "", of_source: str = "") -> Kind:
    text = LOADER.format(method=f"    {method}\n")
    text = text.replace("class Loader:", f"    {of_source}\nclass Loader:") if of_source else text
    return Kind("file", text, f"loader 'broken' of plugin {{id}}: {line}", "")


def graph_pass(line: str, body: str, remedy: str = "[passes] disable = ['broken'] leaves it out") -> Kind:
    return Kind("pass", PASS.format(body=body), f"pass 'broken' of plugin {{id}} {line}", remedy)


def compiler(line: str, *, claim: str = "return [list(part.nodes)]", body: str = "return 7") -> Kind:
    source = COMPILER.format(claim=claim, body=body, compiler="Broken()")
    return Kind("pass", source, line, "[passes] disable = ['broken'] leaves it out")


REMEDY_OF = {"allocator": "report it to the plugin's authors; [allocator] name = 'plain' does without it",
             "work_queue": "report it to the plugin's authors; [work_queue] name = 'multi_threaded' does without it"}
MISSING = "SignatureDef('s', {}, {'y': TensorInfo('gone:0', TensorMetadata(heald.TensorHandle([1]).dtype, ()))})"
SHOWN = "--traceback {id}' shows where"
DEVICE_REMEDY = "[plugins] block = ['{id}'] leaves its devices out"
KERNEL_REMEDY = "[kernels] Broken>Op chooses another plugin's kernel"
MESSAGE = " (plugin {id}) failed with RuntimeError: boom, raised at "

KINDS = {
    "import raises": Kind("load", "1 / 0", "plugin {id} is failed: import of", SHOWN),
    "import exits": Kind("load", "raise SystemExit(3)", "plugin {id} is failed: import of", SHOWN),
    "syntax error": Kind("load", "def", "SyntaxError: invalid syntax", SHOWN),
    "no version": Kind("load", "x = 1", "HEALD_API is missing", "write HEALD_API = (1, 4)"),
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
    **{f"wait behind {work} {what}": Kind(when, waiting(method, action), line.format(work=work), DEVICE_REMEDY)
       for work, method in (("a copy in", "write"), ("a kernel", "elementwise"))
       for what, when, action, line in (
           ("raises", "check", "raise RuntimeError('boom')", "{{id}}.py:13 (behind {work})"),
           ("ends too early", "check", "return",
            "synchronize of device BROKEN:0 (plugin {{id}}) returned before {work} had ended"))},
    "wait behind a copy out ends too early": Kind(
        "open", waiting("read", "return"), "synchronize of BROKEN (plugin {id}) returned before a copy out had ended",
        DEVICE_REMEDY),
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
    "kernel raises ValueError": Kind("run", kernel("return lambda x, out: int('x')"),
                                     "kernel {id}.Broken>Op failed with ValueError", KERNEL_REMEDY),
    "metadata function raises": Kind(
        "run", kernel("return None").replace("lambda attrs, x: x", "lambda attrs, x: 1 / 0"),
        "the metadata function of Broken>Op raised ZeroDivisionError: division by zero, raised at ",
        "report it to the plugin that brings Broken>Op"),
    "allocator cannot be made": chosen(
        ALLOCATOR, "allocator", "the factory of allocator 'broken' of plugin {id} raised ZeroDivisionError",
        factory="lambda: 1 / 0")._replace(remedy=""),
    "allocator is None": chosen(
        ALLOCATOR, "allocator", "the factory of allocator 'broken' of plugin {id} returned NoneType, which has no",
        factory="lambda: None")._replace(remedy="see heald.api.HostAllocator"),
    **{f"allocate gives {what}": chosen(
        ALLOCATOR, "allocator", f"of allocator 'broken' of plugin {{id}} returned {line}",
        f"def allocate(self, nbytes, alignment=64):\n    memory = super().allocate(nbytes + 64)\n    return {result}")
        for what, result, line in (
            ("None", "None", "NoneType, expected a one-dimensional array of uint8"),
            ("a short buffer", "memory[:nbytes - 1]", "0 bytes, expected 1"),
            ("an array of floats", "np.zeros(nbytes)", "an array of float64 with 1 dimensions, expected"),
            ("a misaligned array", "memory[1:nbytes + 1]", "an array at "),
            ("a read-only array", "np.frombuffer(bytes(nbytes), np.uint8)",
             "an array that is not writable and contiguous"))},
    "allocate raises ValueError": chosen(
        ALLOCATOR, "allocator", "allocate of allocator 'broken' of plugin {id} raised ValueError: boom",
        "def allocate(self, nbytes, alignment=64):\n    raise ValueError('boom')"),
    "stats gives None": chosen(
        ALLOCATOR, "allocator", "stats of allocator 'broken' of plugin {id} returned NoneType, expected AllocatorStats",
        "def stats(self): ..."),
    "work queue cannot be made": chosen(
        QUEUE, "work_queue", "the factory of work queue 'broken' of plugin {id} raised ZeroDivisionError",
        factory="lambda config: 1 / 0")._replace(remedy=""),
    "work queue cannot be imported": chosen(
        QUEUE, "work_queue", "the factory of work queue 'broken' of plugin {id} raised ModuleNotFoundError",
        factory="'no_such_queue:make'")._replace(remedy=""),
    "work queue has no methods": chosen(
        QUEUE, "work_queue", "the factory of work queue 'broken' of plugin {id} returned object, which has no add_task",
        factory="lambda config: object()")._replace(remedy="see heald.api.ConcurrentWorkQueue"),
    **{f"work queue {what}": chosen(QUEUE, "work_queue", line, method, "lambda config: Broken()")
       for what, line, method in (
           ("drops tasks", "work queue 'broken' of plugin {id} did not run a task of add_task",
            "def add_task(self, task): ..."),
           ("answers None", "await_values of work queue 'broken' of plugin {id} returned None, expected a bool",
            "def await_values(self, values, timeout=None): ..."),
           ("lies about values", "await_values of work queue 'broken' of plugin {id} returned False, expected True",
            "def await_values(self, values, timeout=None): return False"),
           ("refuses a blocking task", "add_blocking_task of work queue 'broken' of plugin {id} returned None, exp",
            "def add_blocking_task(self, task, allow_queuing): task()"),
           ("runs nothing at a time", "parallelism_level of work queue 'broken' of plugin {id} returned 0, expected",
            "parallelism_level = 0"))},
    "recognise gives None": loader("recognise of '", "def recognise(self, path, head): ...")._replace(
        remedy="return False for a file of another format"),
    "open of a loader gives None": loader("open of '", "def open(self, path, options): ...")._replace(
        remedy="and graph() or program()"),
    "open of a loader raises": loader("open of '", "def open(self, path, options): {}['k']"),
    "describe gives another type": loader("describe of '", of_source="def describe(self): return 7"),
    "description without a mapping": loader("describe of '", of_source="def describe(self): "
                                            "return Description('broken', inputs=[1])"),
    "graph of another type": loader("graph of '", of_source="def graph(self): return 'graph'"),
    "initial state of another type": loader("initial_state of '", of_source="def initial_state(self): return [7]"),
    "signature of another type": loader("signatures of '", of_source="signatures = {'s': 7}"),
    "signature of a missing tensor": loader("signature 's' of '", of_source=f"signatures = {{'s': {MISSING}}}"),
    "pass raises": graph_pass("raised ZeroDivisionError: division by zero", "1 / 0"),
    "pass gives None": graph_pass("returned NoneType, not a Graph", "return None"),
    "pass loses a node": graph_pass("lost the node 'y', which is fed, fetched or run",
                                    "return graph.replace(without=['y'])",
                                    "a pass keeps all nodes that `context.kept` names"),
    "pass makes a malformed graph": graph_pass(
        "returned a malformed graph", "return graph.replace(nodes=[graph['y'].replace(inputs=['gone'])])"),
    "rule does not end": graph_pass(
        "raised PluginError: the rule 'double' does not come to an end",
        "return rewrite(graph, context, (Rule('double', Pattern('Neg', 'x'), Pattern('Neg', Pattern('Neg', 'x'))),))"),
    "compiler is a class": Kind(
        "load", COMPILER.format(claim="return []", body="return 7", compiler="Broken"),
        "compiler 'broken' is the class Broken, expected an instance", SHOWN),
    "compiler without methods": Kind(
        "load", COMPILER.format(claim="return []", body="return 7", compiler="object()"),
        "compiler 'broken' is a object without the method claim and compile", SHOWN),
    "compiler cannot be imported": Kind(
        "pass", COMPILER.format(claim="return []", body="return 7", compiler="'gone.away:compiler'"),
        "the import of compiler 'broken' of plugin {id} raised ModuleNotFoundError", ""),
    "claim raises": compiler("compiler 'broken' of plugin {id} raised ZeroDivisionError: division by zero in claim",
                             claim="1 / 0"),
    "claim gives names, not groups": compiler("compiler 'broken' of plugin {id} returned 'y' as a group",
                                              claim="return ['y']"),
    "claim of a node that is not there": compiler("compiler 'broken' of plugin {id} claimed 'z', which it may not have",
                                                  claim="return [['z']]"),
    "claim of a node twice": compiler("compiler 'broken' of plugin {id} claimed the node 'y' twice",
                                      claim="return [['y'], ['y']]"),
    "compile raises": compiler("compile of compiler 'broken' of plugin {id} for broken.group0 raised ZeroDivisionError",
                               body="1 / 0"),
    "compile gives a number": compiler(
        "compile of compiler 'broken' of plugin {id} for broken.group0 returned int; expected a function"),
    "compile gives None": compiler("compile of compiler 'broken' of plugin {id} returned None for group0",
                                   body="return None"),
    "kernel of a group raises": compiler("kernel broken.group0 failed with ZeroDivisionError",
                                         body="return lambda *operands: 1 / 0"),
    "op handler without make_op": Kind(
        "handler", HANDLER.format(body="...", factory="lambda context, fallback: 7"),
        "the factory of op handler 'broken' (plugin {id}) returned a int without make_op", "see heald.api.OpHandler"),
    "make_op raises": Kind("handler", HANDLER.format(body="1 / 0", factory="Broken"),
                           "the op handler 'broken' raised ZeroDivisionError: division by zero, raised at", ""),
    "make_op gives no function": Kind("handler", HANDLER.format(body="return 7", factory="Broken"),
                                      "make_op of the op handler 'broken' ({id}) returned int", ""),
    "session factory raises": Kind("session", SESSION.format(body="1 / 0"),
                                   "session factory 'broken' of plugin {id} raised ZeroDivisionError", ""),
    "session without methods": Kind("session", SESSION.format(body="return 7"),
                                    "the session factory 'broken' of plugin {id} returned int, which has no method run",
                                    "a session has the methods of heald.api.SessionInterface"),
}
