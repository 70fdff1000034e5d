"""heald runs TensorFlow graphs without TensorFlow, on every device you can pip install.

    model = heald.load("model.pb")
    y = model(x)

Public names are imported when first used: `import heald` itself imports nothing. Not even a module of Python's own is
imported here, because `python -m heald` comes by before the working folder is removed from sys.path.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from heald_eager import op_functions as ops
    from heald_eager.default_runtime import execute as execute
    from heald_eager.function import function as function
    from heald_eager.layout_handles import coo_tensor as coo_tensor
    from heald_eager.layout_handles import scalar_tensor as scalar_tensor
    from heald_eager.tensor_handle import TensorHandle as TensorHandle

    from . import api as api
    from . import errors as errors
    from .graphs.graph import graphdef as graphdef
    from .graphs.graph.graph import Graph as Graph
    from .graphs.session.model import Model as Model
    from .graphs.session.run_metadata import RunMetadata as RunMetadata
    from .graphs.session.session import Session as Session
    from .runtime.contract.op_attrs import OpAttrs as OpAttrs
    from .runtime.contract.op_handler import OpHandler as OpHandler
    from .runtime.executor.step import RunOptions as RunOptions
    from .runtime.host.cancellation import CancelToken as CancelToken
    from .runtime.program.bef import file as bef
    from .runtime.service.host_program import HostProgram as HostProgram
    from .runtime.service.load import load as load
    from .runtime.service.request import RequestContext as RequestContext
    from .runtime.service.runtime import HostContext as HostContext
    from .runtime.service.runtime import default_host as default_host
    from .runtime.service.runtime import devices as devices
    from .runtime.service.runtime import plugins as plugins
    from .runtime.service.runtime import register as register
    from .runtime.version import __version__ as __version__


_WHERE = {  # modules and their public names
    "graphs.graph.graph": ("Graph",), "graphs.session.model": ("Model",),
    "graphs.session.run_metadata": ("RunMetadata",), "graphs.session.session": ("Session",),
    "runtime.contract.op_attrs": ("OpAttrs",), "runtime.contract.op_handler": ("OpHandler",),
    "runtime.executor.step": ("RunOptions",), "runtime.host.cancellation": ("CancelToken",),
    "runtime.service.host_program": ("HostProgram",), "runtime.service.load": ("load",),
    "runtime.service.request": ("RequestContext",),
    "runtime.service.runtime": ("HostContext", "default_host", "devices", "plugins", "register"),
    "runtime.version": ("__version__",),
}
_MODULES = {"api": "api", "bef": "runtime.program.bef.file", "errors": "errors", "graphdef": "graphs.graph.graphdef"}
_FORWARDED = {  # modules of other distributions, or "module:name"
    "TensorHandle": "heald_eager.tensor_handle:TensorHandle", "coo_tensor": "heald_eager.layout_handles:coo_tensor",
    "execute": "heald_eager.default_runtime:execute", "function": "heald_eager.function:function",
    "mlir": "heald_mlir", "ops": "heald_eager.op_functions", "saved_model": "heald_saved_model",
    "scalar_tensor": "heald_eager.layout_handles:scalar_tensor", "tfg": "heald_mlir.tfg",
}

__all__ = ["CancelToken", "Graph", "HostContext", "HostProgram", "Model", "OpAttrs", "OpHandler", "RequestContext",
           "RunMetadata", "RunOptions", "Session", "TensorHandle", "__version__", "api", "bef", "coo_tensor",
           "default_host", "devices", "errors", "execute", "function", "graphdef", "load", "ops", "plugins",
           "register", "scalar_tensor"]


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name in _MODULES:
        value = import_module(f".{_MODULES[name]}", __name__)
    elif name in _FORWARDED:
        from .runtime.support.lazy_exports import import_of_distribution

        value = import_of_distribution(_FORWARDED[name], f"heald.{name}")
    else:
        module = next((module for module, names in _WHERE.items() if name in names), None)
        if module is None:
            raise AttributeError(f"module 'heald' has no attribute '{name}'")
        from .runtime.support.gc_pause import gc_paused

        with gc_paused():
            value = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
