"""Sessions: the objects by which users run graphs.

A `Session` places a graph once. For each combination of feeds, fetches and targets it prepares a step: prune, passes,
lower, link. A run then converts feeds and calls the linked executable.

- Every public entry passes `errors.boundary`, so users see typed errors only.
- Results belong to the user, and feeds are never written. An array that a run does not own is copied first.
- Several threads may share a session. Locks guard preparation and linking; a run with known shapes takes none.
- A run looks up its prepared step by names and its executable by shapes, and nothing else.
- Sessions without a config of their own share the runtime of the process. No lower room imports this one.

`session`, `model`: Session, which runs graphs; Model, which runs files. `targets` chooses a plugin's session.
`target_session`: The session of a model whose steps run at a plugin's target.
`signature_check`: The signatures of a file against its graph.
`graph_reader`: The graph of an opened file.
`pre_placement`, `graph_placement`: The passes before placement; the device of each node of the graph after them.
`step_compiler`, `function_compiler`: From a step to its program; one function of it while it is compiled.
`constant_folding`, `effects`: Values of constants alone; steps whose runs keep their order.
`graph_export`, `requested_passes`: The graph of a step for people, and its partitions; passes that a user names.
`partial_run`, `asynchronous_step`: A step in several calls; a step for callers that do not wait.
`connections`: Tensors in the place of others within a callable.
`extension`, `fed_references`: Nodes that a session's graph gets later; feeds in the place of variables.
`ahead_of_time`: Compiles models into files.
`run_metadata`, `cost_graph`, `step_statistics`: The records of a run, which placement reads back.
"""

from typing import TYPE_CHECKING

from ...runtime.support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from .ahead_of_time import compile_model as compile_model
    from .asynchronous_step import AsynchronousStep as AsynchronousStep
    from .constant_folding import ConstantFolder as ConstantFolder
    from .model import Signature as Signature
    from .model import find_inputs as find_inputs
    from .model import find_outputs as find_outputs
    from .pre_placement import run_pre_placement_passes as run_pre_placement_passes
    from .session import Session as Session

if not TYPE_CHECKING:  # with it, mypy would take every name for an export
    __getattr__ = lazy_exports(__name__, {
        ".ahead_of_time": ("compile_model",),
        ".asynchronous_step": ("AsynchronousStep",),
        ".constant_folding": ("ConstantFolder",),
        ".model": ("Signature", "find_inputs", "find_outputs"),
        ".pre_placement": ("run_pre_placement_passes",),
        ".session": ("Session",),
    })
