"""The executor runs linked functions, each step in a frame of its own.

A step first calls the flat list of its frame: calls without arguments, in order, with no test between them. Calls that
depend on a pending value run afterwards in a `DataflowRun`, which the step's `StepLoop` drives. Calls that wait for
every pending value are attached, too: a second list, the frame's tail.

- Nothing static happens per run. The linker infers shapes, binds kernels and builds the executable beforehand.
- Bound calls are immutable and shared by concurrent steps. Per-step state lives in the step's frame.
- Two steps never share a frame, and one thread at a time drives a step. So no counter of a step needs a lock.
- The executor knows no control flow. Kernels call functions of the program through `Step.call`, which never waits.
- No module here imports the linker, a session or a plugin. Devices, memory and threads come from the `Host`.

Modules: `executable` has the run, `step` the kernels' view of it, `call_level` the depth of calls.
`repeated_call` runs the turns of a loop in one frame.
`calls/` has the forms of calls, a class each; `call_reports` has their errors and traces, `queue_devices` the devices
that a run awaits. `only_call` serves executables of one call without a frame.
`frame_layout` has the properties of frames as data, made of `call_order`, `register_table`, `lifetimes` and
`memory_plan`; `fences` has the order of a device's streams. `frame_factory` makes a `frame` with attached calls;
`fresh_calls` has the calls of a DataflowRun. `replay` turns kernels into one launch, `joined_calls` attached calls.
`schedule`, `autotune`, `task_partition` and `parallel_schedule` decide the order of calls. `dataflow` and `step_loop`
await values that come later. `host_array` checks payloads; `array_contract` and `dead_memory` are test modes. `trace`
records times, `device_clock` has the times of devices with queues.
"""

from typing import TYPE_CHECKING

from ..support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from . import only_call as only_call
    from .array_contract import buffer_poisoner as buffer_poisoner
    from .array_contract import check_returned as check_returned
    from .array_contract import checked_run_function as checked_run_function
    from .array_contract import poison_array as poison_array
    from .calls.kernel_call import KernelCall as KernelCall
    from .calls.returned_results import make_run_on_list as make_run_on_list
    from .executable import Executable as Executable
    from .host_array import check_payload as check_payload
    from .host_array import view as view
    from .only_call import allocating_run as allocating_run
    from .trace import HOST_CLOCK as HOST_CLOCK
    from .trace import Event as Event
    from .trace import Trace as Trace
    from .trace import clock_spans as clock_spans
    from .trace import clock_texts as clock_texts

if not TYPE_CHECKING:  # with it, mypy would take every name for an export
    __getattr__ = lazy_exports(__name__, {
        ".array_contract": ("buffer_poisoner", "check_returned", "poison_array", "checked_run_function"),
        ".calls.kernel_call": ("KernelCall",),
        ".calls.returned_results": ("make_run_on_list",),
        ".executable": ("Executable",),
        ".host_array": ("check_payload", "view"),
        ".only_call": ("allocating_run",),
        ".trace": ("Event", "HOST_CLOCK", "Trace", "clock_spans", "clock_texts"),
    })
