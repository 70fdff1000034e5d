"""Eager ops: one op at a time, asynchronous, with the user's source line in errors.

- A call matches its signature, runs the metadata function, and returns handles at once. It raises shape and dtype
  errors itself. Every later error is the state of its handles.
- An op is bound through the same registries, kernels and binder as a call of a graph. No program is made.
- The fast path is one look-up in a table. A call that needs a test has no entry there.
- A handle is a value: no op writes its array, unless the handle was donated, or is gone (`references`).
- Errors and cancellation settle promises; the first to settle a promise wins.
- This room may use sessions' runtime and feeds. Only the command line is above it.
- The runtime has parts, and a part does not know the runtime: `context` is the state that all of them share. Handles
  know their runtime as a `HandleOwner`.

Modules: `tensor_handle` has the public class, `handle_state` its states, `operators` its operators. `execute` has the
fast path, and `core_runtime` the runtime behind it. Its parts, from the bottom up:

- `bound_op` (an op and its kernel), `asynchrony` (which calls return before their kernel has run), `promise` (values
  that come later), `context`, `queued_call` (a call that waits for its inputs), `references` (values that no other
  object shows), `layouts` (conversions of scalar and sparse tensors), `bound_op_cache`;
- `transfers` (copies between memories), `dispatch` (run now, queue, or enqueue on a device), `op_chains` and `call_end`
  (the order of effects), `op_executor` (one op on its device);
- `signature` (inputs and attributes), `call_memo` (calls that have succeeded), `op_handlers`, `source_line`.

`function` has composite ops: `function_source` makes a session's step of a graph, `composite_run` is one call as a
program. `default_runtime`, `layout_handles` and `op_functions` are `heald.execute`, `heald.scalar_tensor` and
`heald.ops`; `op_lookup` and `op_signature` make the functions of the latter. `program_runtime` serves programs,
`attrs_text` prints attributes.
"""

from typing import TYPE_CHECKING

from heald.runtime.support import lazy_exports

if TYPE_CHECKING:
    from .op_handlers import LinkedHandler as LinkedHandler
    from .program_runtime import completion as completion
    from .program_runtime import runtime_of as runtime_of
    from .tensor_handle import TensorHandle as TensorHandle

if not TYPE_CHECKING:  # with it, mypy would take every name for an export
    __getattr__ = lazy_exports.lazy_exports(__name__, {
        ".op_handlers": ("LinkedHandler",),
        ".program_runtime": ("completion", "runtime_of"),
        ".tensor_handle": ("TensorHandle",),
    })
