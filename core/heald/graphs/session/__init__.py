"""Sessions: the objects that users run, and the runtime of the process behind them.

A `Session` places a graph once. For each combination of feeds, fetches and targets it prepares a step: prune, passes,
lower, link. A run then converts feeds and calls the linked executable.

- Every public entry passes `errors.boundary`, so users see typed errors only.
- Results belong to the user, and feeds are never written. An array that a run does not own is copied first.
- Several threads may share a session. Locks guard preparation and linking; a run with known shapes takes none.
- A run looks up its prepared step by names and its executable by shapes, and nothing else.
- Sessions without a config of their own share the runtime of the process. No lower room imports this one.

Modules: `session` runs graphs and `model` runs files, `prepared_step` runs one combination. `step_graph` and
`constant_folding` apply passes to the graph of a step. `step_graphs` returns that graph and its partitions.
`partial_run` feeds and fetches a step in several calls, `asynchronous_step` runs one for callers that do not wait,
`effects` finds the steps whose runs keep their order, `extension` adds nodes to a session's graph. `feeds` converts
feeds, `arguments` orders them. `ahead_of_time` compiles models, `compiled_model` runs them.
`host_program` and `request` run host programs. `run_metadata` has the records of a run,
`step_statistics` reads them back for placement. `runtime` holds config,
plugins and host, `device_process` lists devices in processes of their own. `compare` compares the results of two
devices.
"""

from typing import TYPE_CHECKING

from ...runtime.support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from .ahead_of_time import compile_model as compile_model
    from .asynchronous_step import AsynchronousStep as AsynchronousStep
    from .model import Signature as Signature
    from .model import find_inputs as find_inputs
    from .model import find_outputs as find_outputs
    from .session import Session as Session

__getattr__ = lazy_exports(__name__, {
    ".ahead_of_time": ("compile_model",),
    ".asynchronous_step": ("AsynchronousStep",),
    ".model": ("Signature", "find_inputs", "find_outputs"),
    ".session": ("Session",),
})
