"""Host programs: flat lists of kernel calls over registers, as pure data.

The compiler lowers graphs to programs, and users write programs of host kernels directly. The linker binds a program to
the kernels of a host.

- A program names kernels, functions and devices, and holds none of them.
- Registers are numbered per function and assigned once. Calls stand in an order in which they may run.
- The verifier checks all that holds for any kernel. The linker checks calls against kernel declarations.
- The room imports no op graph; every room that compiles, links or runs builds on it.

Modules: `host_program` has the types, `typed_attribute` the numbers of attributes, `compiled_model` a program with the
facts for loading it as a model. `stream_analysis` and `execution_order` find the order of calls. `infer` derives
the types of registers, `deferred_errors` keeps the errors of calls that a run may skip. `verifier` rejects programs
that are not well formed. `groups` moves calls into the functions that compilers take, and back. `bef/` is the binary
form.
"""

from typing import TYPE_CHECKING

from ..support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from .bef.encode import ELEMENT_TYPES as ELEMENT_TYPES
    from .compiled_model import CompiledModel as CompiledModel
    from .execution_order import in_execution_order as in_execution_order
    from .groups import GroupOutcome as GroupOutcome
    from .host_program import COPY as COPY
    from .host_program import GROUP as GROUP
    from .host_program import HOST as HOST
    from .host_program import RUNTIME_CODES as RUNTIME_CODES
    from .host_program import Call as Call
    from .host_program import ProgramDef as ProgramDef
    from .host_program import ProgramFunction as ProgramFunction
    from .host_program import RegisterType as RegisterType
    from .host_program import native_function as native_function
    from .infer import infer_outputs as infer_outputs
    from .stream_analysis import Stream as Stream
    from .stream_analysis import analyse_streams as analyse_streams
    from .stream_analysis import stream_numbers as stream_numbers
    from .typed_attribute import ShapeAttribute as ShapeAttribute
    from .typed_attribute import is_number as is_number
    from .typed_attribute import number_type as number_type
    from .typed_attribute import plain_value as plain_value
    from .typed_attribute import typed_number as typed_number
    from .verifier import verify as verify

if not TYPE_CHECKING:  # with it, mypy would take every name for an export
    __getattr__ = lazy_exports(__name__, {
        ".bef.encode": ("ELEMENT_TYPES",),
        ".compiled_model": ("CompiledModel",),
        ".execution_order": ("in_execution_order",),
        ".groups": ("GroupOutcome",),
        ".host_program": (
            "COPY", "Call", "GROUP", "HOST", "ProgramDef", "ProgramFunction", "RUNTIME_CODES", "RegisterType",
            "native_function"),
        ".infer": ("infer_outputs",),
        ".stream_analysis": ("Stream", "analyse_streams", "stream_numbers"),
        ".typed_attribute": ("ShapeAttribute", "is_number", "number_type", "plain_value", "typed_number"),
        ".verifier": ("verify",),
    })
