"""Service: the runtime of the process, and the objects by which users load and run host programs.

- Every public entry passes `errors.boundary`, so users see typed errors only.
- Results belong to the user, and feeds are never written. An array that a run does not own is copied first.
- A run looks up its executable by shapes, and nothing else. Programs without a config of their own share the runtime
  of the process.
- The room knows no graph. A file with a graph becomes a model by the function that core's graphs register.

`runtime`: Runtime: config, plugins and host; the public functions `register`, `plugins` and `devices`.
`load`, `loading`: `heald.load`; the choice of the loader that reads a file. `model_place`: The model in an archive, or
    under a folder of versions.
`compiled_model`, `host_program`: Compiled models and host programs, as users run them.
`prepared_step`: One combination of feeds and fetches, with its executables by feed shapes.
`feeds`, `named_feeds`, `arguments`: Conversion of feeds; feeds by the caller's names; arguments in order.
`request`, `run_step`: RequestContext: resources, trace and cancellation of related executions; the Step of one run.
`device_process`: Lists devices in processes of their own.
"""

from typing import TYPE_CHECKING

from ..support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from . import runtime as runtime
    from .arguments import dict_of_mapping as dict_of_mapping
    from .arguments import inputs_in_order as inputs_in_order
    from .compiled_model import LoadedCompiledModel as LoadedCompiledModel
    from .feeds import convert_feed as convert_feed
    from .run_step import check_limits as check_limits
    from .runtime import HostContext as HostContext
    from .runtime import Runtime as Runtime

if not TYPE_CHECKING:  # with it, mypy would take every name for an export
    __getattr__ = lazy_exports(__name__, {
        ".arguments": ("inputs_in_order", "dict_of_mapping"),
        ".compiled_model": ("LoadedCompiledModel",),
        ".feeds": ("convert_feed",),
        ".run_step": ("check_limits",),
        ".runtime": ("HostContext", "Runtime"),
    })
