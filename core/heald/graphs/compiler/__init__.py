"""The compiler turns a graph into a host program: resolve, place, prune, passes, lower.

Each step is a function from values to values. A session calls them in this order, and stores the results.

- The compiler reads no file, opens no device and starts no thread. `place` asks the host through `DeviceView`.
- The compiler binds and runs no kernel itself. Placement picks kernels by their declarations; the linker binds them.
- A node that cannot be resolved or placed is recorded as an error. Only a step that needs the node raises it.
- No function recurses on the depth of a graph, since files may nest arbitrarily deep.
- The graph stays as it is: passes and inlining return new graphs.

Modules: `resolve` matches nodes with the op table. `place`, `colocation`, `host_integers` and `cost_rule` choose
devices, the last by `node_cost`. `names` reads the names of users, `default_outputs` and `needed_feeds` find a graph's
outputs and inputs. `prune` orders the needed nodes. `pass_manager` runs passes, `passes` has the compiler's own,
`patterns` rewrites by tables of fusions. `inline` replaces calls by bodies, `function_form` numbers the outputs in a
body, `lifted_graph` has a graph as one function. `functionalize` turns the control flow of TensorFlow 1 into calls:
`frames` finds the loops around each node, `liveness` the condition of its life, `loops` and `conditionals` write the
calls, and `function_library` has their functions. `client_graph` has feeds and fetches as nodes, `step_devices` gives
all of its nodes devices, and `partition` cuts it by device: graphs for people and transports, which no program is made
of. `call_site` and `function_body` have the nodes that call functions, and their bodies. `infer_node` derives metadata
of single nodes, `lower` writes the program, and `group_claims` moves
the groups of compilers into functions. `feed_hint` tells what to feed in the place of an iterator.
"""

from typing import TYPE_CHECKING

from ...runtime.support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from . import inline as inline
    from . import resolve as resolve
    from .client_graph import called_functions as called_functions
    from .colocation import colocation_groups as colocation_groups
    from .colocation import with_successors_as_partners as with_successors_as_partners
    from .lifted_graph import lift_graph as lift_graph
    from .lifted_graph import unlift_graph as unlift_graph
    from .names import HANDLE_TYPES as HANDLE_TYPES
    from .names import flatten_fetches as flatten_fetches
    from .names import name_tuple as name_tuple
    from .names import target_node as target_node
    from .names import tensor_of_name as tensor_of_name
    from .partition import HostTensors as HostTensors
    from .partition import Partitioner as Partitioner
    from .pass_manager import NodeFacts as NodeFacts
    from .pass_manager import run_passes as run_passes
    from .resolve import Resolved as Resolved
    from .resolve import faulty_nodes as faulty_nodes
    from .step_devices import outermost_loops as outermost_loops

if not TYPE_CHECKING:  # with it, mypy would take every name for an export
    __getattr__ = lazy_exports(__name__, {
        ".client_graph": ("called_functions",),
        ".colocation": ("colocation_groups", "with_successors_as_partners"),
        ".lifted_graph": ("lift_graph", "unlift_graph"),
        ".names": ("HANDLE_TYPES", "flatten_fetches", "name_tuple", "target_node", "tensor_of_name"),
        ".partition": ("HostTensors", "Partitioner"),
        ".pass_manager": ("NodeFacts", "run_passes"),
        ".resolve": ("Resolved", "faulty_nodes"),
        ".step_devices": ("outermost_loops",),
    })
