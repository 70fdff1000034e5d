"""The linker binds a function of a host program to the kernels of one host, and returns an executable.

For given argument metadata it infers shapes, folds known values, fuses calls, binds kernels and lays out constants. All
static work of a program happens here, once per link, so that runs look nothing up.

- `link` is the only place where a program meets kernels. Programs are data and know none.
- A call with unknown shapes becomes a `LazyKernel`, which binds in the run and remembers its bound kernels.
- A kernel that declines is a refusal. When all candidates decline, `NodesDeclined` carries the refusals, and the
  session places the graph anew.
- The linker changes neither the program nor the graph. Links of one program share values through `SharedByLinks`.
- Types are derived, never believed: the ops' rules derive them from arguments and constants, and a stated type that
  contradicts is an error. If no rule derives a type, a run compares its arrays with the stated one.
- The linker imports the compiler's inference and the executor, and neither imports the linker.

Modules: `link` binds a whole function, `binder` one call, `host_binding` a call of a host kernel. `candidates` has the
kernels that may take a call, `kernel_permits` limits how many run at once, `scratch_kernel` gives them scratch,
`part_views` leaves out copies of parts. `folding` computes calls with known inputs, `known_values` keeps their results.
`fusion` groups calls for one kernel, `patterns` lets a pack's own function find them, `fused_binding` binds both.
`group_binding` asks compilers for the kernels of their groups, `lazy_group` in runs where shapes depend on data.
`result_inference` derives the facts about the results of functions. `checked_program` compares calls of programs from
outside with their declarations, `checked_memory` the memory that calls read. `specialise` writes folded values back
into a program. `stored_constants` reads and collects the packed weights of compiled files, `preparation` links compiled
functions for these and strips constants. `shared_by_links` has the values that the links of one program share.
"""

from typing import TYPE_CHECKING

from ..support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from .binder import Binder as Binder

if not TYPE_CHECKING:  # with it, mypy would take every name for an export
    __getattr__ = lazy_exports(__name__, {
        ".binder": ("Binder",),
    })
