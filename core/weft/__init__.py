"""weft runs TensorFlow graphs without TensorFlow, on every device you can pip install.

    model = weft.load("model.pb")
    y = model(x)

Public names are imported when first used: `import weft` itself imports nothing. Not even a module of Python's own is
imported here, because `python -m weft` comes by before the working folder is removed from sys.path.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from . import api as api
    from . import errors as errors
    from . import graphdef as graphdef
    from .graph import Graph as Graph
    from .model import Model as Model
    from .model import load as load
    from .program import HostProgram as HostProgram
    from .running.request import RequestContext as RequestContext
    from .running.step import CancelToken as CancelToken
    from .running.step import RunOptions as RunOptions
    from .running.trace import RunMetadata as RunMetadata
    from .runtime import HostContext as HostContext
    from .runtime import default_host as default_host
    from .runtime import devices as devices
    from .runtime import plugins as plugins
    from .runtime import register as register
    from .session import Session as Session

__version__ = "0.1.0"

_WHERE = {
    "CancelToken": "running.step", "Graph": "graph", "HostContext": "runtime", "HostProgram": "program",
    "Model": "model", "RequestContext": "running.request", "RunMetadata": "running.trace",
    "RunOptions": "running.step", "Session": "session", "default_host": "runtime", "devices": "runtime",
    "load": "model", "plugins": "runtime", "register": "runtime",
}
_MODULES = ("api", "errors", "graphdef")

__all__ = ["CancelToken", "Graph", "HostContext", "HostProgram", "Model", "RequestContext", "RunMetadata", "RunOptions",
           "Session", "__version__", "api", "default_host", "devices", "errors", "graphdef", "load", "plugins",
           "register"]


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in _WHERE:
        raise AttributeError(f"module 'weft' has no attribute '{name}'")
    from .collector import resting

    with resting():
        value = getattr(import_module(f".{_WHERE[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
