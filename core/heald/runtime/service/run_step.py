"""The Step of one run, as its RunOptions ask for it."""

from __future__ import annotations

from typing import Any, TypeVar

from ...errors import InvalidArgument
from ..executor.step import RunOptions, Step
from ..host.cancellation import CancelToken
from ..host.host import Host

S = TypeVar("S", bound=Step)


def make_run_step(
    kind: type[S], host: Host, options: RunOptions, parents: tuple[CancelToken, ...], **more: Any
) -> S:
    """Return a step of this class for one run, which `parents`, the host and the options' token cancel.

    `more`: further arguments of the class. Raises InvalidArgument for options of the wrong type, NotFound for an
    unknown work queue.
    """
    if not isinstance(options, RunOptions):
        raise InvalidArgument(f"options= is {type(options).__name__}", hint="pass heald.RunOptions(timeout=2.0)")
    options.check()
    user_tokens = () if options.cancel is None else (options.cancel,)
    workers = None if options.work_queue is None else host.workers(_queue_name(options.work_queue))
    if options.trace:
        from ..executor.trace import Trace  # most runs have none

        more["trace"] = Trace()
    step = kind(host, options.timeout, (*parents, host.cancellation, *user_tokens), **more)
    if workers is not None:
        step.workers = workers
    return step


def check_limits(options: RunOptions, run_kind: str) -> RunOptions:
    """Return the options of a run that gives no records. Raises InvalidArgument when they ask for records; `way` says
    how to get them."""
    if isinstance(options, RunOptions) and (options.trace or options.partition_graphs):
        raise InvalidArgument("this call returns no trace and no partition graphs", hint=run_kind)
    return options


def _queue_name(work_queue: object) -> str:
    if not isinstance(work_queue, str):
        raise InvalidArgument(f"RunOptions.work_queue is a name or None, not {type(work_queue).__name__}",
                              hint="name a section [work_queues.NAME] of config")
    return work_queue
