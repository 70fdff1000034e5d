"""Lifetimes: when the values of a run die, and which arrays are read outside the order of the calls.

Liveness of values is computed here, once when a function is linked, from the order of its calls. It answers two
questions about every register.

1. May the register's array be a buffer of the memory plan? The plan gives a buffer to the next value after the last
   read in the flat list and the tail (`Use`). So an array that anybody reads outside this order is *lent* and gets no
   buffer. The readers outside the order are:
   - the user of the results,
   - a device that works through its queue,
   - a kernel that reads arguments after it has returned, or retains them,
   - a call in a DataflowRun, which runs in any order,
   - the tail, for values from before it: other calls may run between the producer and the tail.
   Aliases share the array of their root, so all sets hold roots.
2. When may the frame forget the value of an open register? After its last consumer (`dying`), where the order of calls
   is known. Fixed registers never die: they hold the same payload in every run. Arguments and results live until the
   end of the run, and so do values that a DataflowRun may still read. A DataflowRun counts consumers instead; `lasting`
   has the registers that it must not drop, since the caller or the tail takes them.

Invariants:
- A buffer of the memory plan is never lent. Results, arguments of asynchronous kernels and of calls that wait for them
  (but values within the tail), retained arrays, and arrays that a queued transfer reads are not planned.
- Kept results are planned, and live until the end of the run. Every way out of a frame copies them: `run`, `invoke` and
  RepeatedCall.
- A retained feed is copied before the run (`RetainedFeedCopy`), a retained result is copied on return: the user may
  write both after the run.
- A value dies with its last consumer where the order of calls is known, else with the run.

Rule: a `Use` lists roots, never aliases. Else the plan ends a buffer's lifetime before the last read of a view, and the
view shows the next value. `[debug] poison` does not find this fault: the bytes belong to a value that lives.

Rule: a form of call that lets an argument be read after it has returned, or by another thread, must say so in
`reads_after_return`, `retained` or `sees_host`. A register that is lent too often costs memory; a register that is lent
too seldom gives wrong numbers. `[debug] poison` overwrites dead memory and finds the second kind.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..support.records import record
from .call_order import OrderedCalls
from .calls.bound_call import BoundCall
from .memory_plan import Use
from .register_table import RegisterTable

LARGEST_COPIED_BYTES = 4096  # of a feed or a result that may be copied into the frame, or out of it


@record
class Lifetimes:
    """The uses of values in the order of the calls, and the arrays that are read outside of it.

    `retained`: roots of the arrays that a kernel keeps, so that they belong neither to the frame nor to the user.
    `lent`: roots of the arrays that are read outside the order of the calls; the retained arrays are among them.
    `kept`: roots of small results that have a buffer of the plan until the end of the run, and are copied for the user.
    `uses`: the uses of each call, for the memory plan.
    """

    retained: frozenset[int]
    lent: frozenset[int]
    kept: frozenset[int]
    uses: Sequence[Use]


@record
class Deaths:
    """The ends of the values in open registers.

    `dying`: by index of an attached call, the open registers whose values die there, arguments first.
    `lasting`: the registers whose values outlive the calls before the tail, each with the count -1 of a DataflowRun.
    """

    dying: Mapping[int, Sequence[int]]
    lasting: Mapping[int, int]


def find_lifetimes(order: OrderedCalls, registers: RegisterTable) -> Lifetimes:
    retained = frozenset(registers.root[bound.call.args[i]] for bound in order.calls for i in bound.retained)
    read_later = _find_read_later(order, registers) | retained
    results = frozenset(registers.root[r] for r in registers.results)
    kept = _find_kept(order, registers, results - read_later)
    lent = (results - kept) | read_later
    return Lifetimes(retained, lent, kept, [_use_of(bound, registers, lent) for bound in order.calls])


def _find_kept(order: OrderedCalls, registers: RegisterTable, results: Collection[int]) -> frozenset[int]:
    """Return the small results whose producer is faster with a fixed array and a copy than with a new array."""
    if order.is_asynchronous or order.has_host_kernels:  # a DataflowRun may return them
        return frozenset()
    return frozenset(r for bound in order.calls if bound.prefers_fixed_arrays and bound.plannable
                     for r in bound.call.results
                     if r in results and r not in registers.device_of and registers.has_size(r)
                     and registers.metas[r].nbytes <= LARGEST_COPIED_BYTES)


def _find_read_later(order: OrderedCalls, registers: RegisterTable) -> frozenset[int]:
    """Return the roots of the arrays that calls read outside their order, but for retained arrays."""
    calls = order.calls
    read_later = [a for bound in calls if not bound.sees_host
                  for a in bound.call.args if a not in registers.device_of]
    read_later += [a for bound in calls if bound.reads_after_return for a in bound.call.args]
    read_later += [r for n in order.dataflow_calls for r in (*calls[n].call.args, *calls[n].call.results)]
    # copied feeds are in place before the run
    read_later += order.registers_from_outside(order.tail).difference(registers.arguments)
    return frozenset(registers.root[r] for r in read_later)


def _use_of(bound: BoundCall, registers: RegisterTable, lent: frozenset[int]) -> Use:
    call, metas = bound.call, registers.metas
    reads = tuple(registers.root[a] for a in call.args)
    writes: tuple[tuple[int, int], ...] = ()
    if bound.plannable:
        writes = tuple((r, metas[r].nbytes) for r in call.results if r not in lent and registers.has_size(r))
    shared = tuple((call.results[output], reads[argument]) for output, argument in bound.inplace.items()
                   if _has_same_layout(bound, output, argument, registers))
    return Use(reads, writes, bound.memory, shared)


def _has_same_layout(bound: BoundCall, output: int, argument: int, registers: RegisterTable) -> bool:
    """True when the output may have the buffer of the argument: an array that shows a part of it is none."""
    if bound.call.args[argument] in registers.parts:
        return False
    written, read = registers.metas[bound.call.results[output]], registers.metas[bound.call.args[argument]]
    return written.is_static and written.shape == read.shape and written.dtype.itemsize == read.dtype.itemsize


def find_deaths(order: OrderedCalls, registers: RegisterTable, fixed: frozenset[int]) -> Deaths:
    """Return the ends of the values in the registers that are not fixed."""
    calls = order.calls
    last = {r: n for n, bound in enumerate(calls) for r in (*bound.call.needs, *bound.call.results)}
    outliving = {*registers.results, *registers.arguments, *fixed}
    outliving |= {r for n in order.dataflow_calls for r in calls[n].call.needs}
    outliving |= {r for bound in calls if bound.pends for r in bound.returned_registers}  # the run's end awaits them
    dying: dict[int, list[int]] = {}
    for number in set(last.values()) - order.dataflow_calls:
        call = calls[number].call
        dead = [r for r in dict.fromkeys((*call.needs, *call.results)) if last[r] == number and r not in outliving]
        if dead:
            dying[number] = dead
    return Deaths(dying, dict.fromkeys((*registers.results, *order.registers_from_outside(order.tail)), -1))
