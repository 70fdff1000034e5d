"""Host programs: flat lists of kernel calls over registers, as pure data.

The compiler lowers graphs to programs, and users write programs of host kernels directly. The linker binds a program to
the kernels of a host.

- A program names kernels, functions and devices, and holds none of them.
- Registers are numbered per function and assigned once. Calls stand in an order in which they may run.
- The verifier checks all that holds for any kernel. The linker checks calls against kernel declarations.
- The room imports no op graph; every room that compiles, links or runs builds on it.

Modules: `host_program` has the types, `compiled_model` a program with the facts for loading it as a model. `verifier`
rejects programs that are not well formed. `bef/` is the binary form.
"""

from typing import TYPE_CHECKING

from ..support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from .host_program import OWN as OWN

__getattr__ = lazy_exports(__name__, {".host_program": ("OWN",)})
