"""heald runs TensorFlow graphs without TensorFlow, on every device you can pip install.

    model = heald.load("model.pb")
    y = model(x)

Public names are imported when first used: `import heald` itself imports nothing. Not even a module of Python's own is
imported here, because `python -m heald` comes by before the working folder is removed from sys.path.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from . import api as api
    from . import errors as errors
    from .contract.op_attrs import OpAttrs as OpAttrs
    from .contract.op_handler import OpHandler as OpHandler
    from .eager import op_functions as ops
    from .eager.default_runtime import execute as execute
    from .eager.function import function as function
    from .eager.layouts import coo_tensor as coo_tensor
    from .eager.layouts import scalar_tensor as scalar_tensor
    from .eager.tensor_handle import TensorHandle as TensorHandle
    from .executor.step import RunOptions as RunOptions
    from .graph import graphdef as graphdef
    from .graph.graph import Graph as Graph
    from .host.cancellation import CancelToken as CancelToken
    from .program.bef import file as bef
    from .session.host_program import HostProgram as HostProgram
    from .session.load import load as load
    from .session.model import Model as Model
    from .session.request import RequestContext as RequestContext
    from .session.run_metadata import RunMetadata as RunMetadata
    from .session.runtime import HostContext as HostContext
    from .session.runtime import default_host as default_host
    from .session.runtime import devices as devices
    from .session.runtime import plugins as plugins
    from .session.runtime import register as register
    from .session.session import Session as Session

__version__ = "0.1.0"

_WHERE = {
    "CancelToken": "host.cancellation", "Graph": "graph.graph", "HostContext": "session.runtime",
    "HostProgram": "session.host_program", "Model": "session.model", "OpAttrs": "contract.op_attrs",
    "OpHandler": "contract.op_handler", "RequestContext": "session.request", "RunMetadata": "session.run_metadata",
    "RunOptions": "executor.step", "Session": "session.session",
    "TensorHandle": "eager.tensor_handle", "coo_tensor": "eager.layouts", "default_host": "session.runtime",
    "devices": "session.runtime", "execute": "eager.default_runtime", "function": "eager.function",
    "load": "session.load", "plugins": "session.runtime", "register": "session.runtime",
    "scalar_tensor": "eager.layouts",
}
_MODULES = {"api": "api", "bef": "program.bef.file", "errors": "errors", "graphdef": "graph.graphdef",
            "ops": "eager.op_functions"}
# modules of other distributions
_FORWARDED = {"mlir": "heald_mlir", "saved_model": "heald_saved_model", "tfg": "heald_mlir.tfg"}

__all__ = ["CancelToken", "Graph", "HostContext", "HostProgram", "Model", "OpAttrs", "OpHandler", "RequestContext",
           "RunMetadata", "RunOptions", "Session", "TensorHandle", "__version__", "api", "bef", "coo_tensor",
           "default_host", "devices", "errors", "execute", "function", "graphdef", "load", "ops", "plugins",
           "register", "scalar_tensor"]


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name in _MODULES:
        globals()[name] = found = import_module(f".{_MODULES[name]}", __name__)
        return found
    if name in _FORWARDED:
        from .support.lazy_exports import of_distribution

        return of_distribution(_FORWARDED[name], f"heald.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module 'heald' has no attribute '{name}'")
    from .support.gc_pause import gc_paused

    with gc_paused():
        value = getattr(import_module(f".{_WHERE[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
