"""The forms of calls of a linked program, one class a module.

`bound_call` has BoundCall, the base of all forms, with the properties that the frame layout asks for. A form states the
properties in which it differs, and does three things: `make_frame_call` returns its FrameCall over the registers of a
frame, `make_fresh_call` its FreshCall for a DataflowRun, `typed_error` the error for an exception of the call.

- The linker chooses the form. The layout and the frame factory ask the form at link and attach time; runs ask nothing.
- No module outside asks a call which form it is in order to run it. A new form is a new module here, and a place in the
  linker that makes it.
- Properties that several forms share (results that come later, retained arguments, the step as an argument) are fields
  of the call or of its kernel. No form exists for a combination of them.

Forms with a kernel: `kernel_call` (bound when linked), `lazy_call` (binds in the run), `view_call` (runs nothing),
these three over `op_call`; `part_view_call` (a view of parts); `host_kernel_call`.
`failing_call` has no kernel: its inputs do not fit, and a run that reaches it fails.
Forms that move values, over `transfer`: `copy_in` to a device, `copy_out` to the host, `peer_copy` between devices,
`wrapped_feed` (a device reads a feed in place), `event_call` (an event of a stream). `feed_copy` copies a feed that a
kernel retains, within host memory.

`frame_calls` has the types of attached and fresh calls and the functions that several forms share, `returned_results`
the checks of kernels that return their results. `call_environment` is all that forms know of the executable and its
host, `unfinished_frame` all that they know of a frame.
"""
