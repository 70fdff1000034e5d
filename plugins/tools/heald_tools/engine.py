"""The engine of a run over many rows: this process, or the processes of Ray by heald-ray."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from heald.api.cli import positive

if TYPE_CHECKING:
    from .rows.request import Model

ENGINES = ("ray",)
DEFAULT_ACTORS = 2
# They decide about places and processes, never about answers: the journal leaves them out.
ENGINE_OPTIONS = ("engine", "address", "insecure", "actors", "actor_resource", "model_on_workers")


def add_engine(parser: ArgumentParser) -> None:
    """Add the options for an engine of many processes."""
    group = parser.add_argument_group("many processes", "an engine runs the batches of many rows; docs/ray-data.md")
    group.add_argument("--engine", choices=ENGINES, help="run the batches in processes of Ray, by heald-ray")
    group.add_argument("--address", metavar="HOST:PORT", help="a running cluster (one that starts and ends here)")
    group.add_argument("--insecure", action="store_true", default=None, help="accept a cluster without tokens")
    group.add_argument("--actors", type=positive, metavar="N",
                       help=f"processes, each with the model ({DEFAULT_ACTORS})")
    group.add_argument("--actor-resource", type=resource_amount, action="append", metavar="NAME=N",
                       help="what each process needs of its node, such as GPU=1 or OPENCL=1 (repeatable)")
    group.add_argument("--model-on-workers", metavar="PATH", help="the model's path on all nodes; its files stay there")


def resource_amount(text: str) -> tuple[str, float]:
    name, _, amount = text.partition("=")
    try:
        number = float(amount)
    except ValueError:
        number = -1.0
    if not name or not 0 < number < float("inf"):
        raise ArgumentTypeError(f"'{text}' is no resource with an amount above 0, such as GPU=1")
    return name, number


def check_engine(args: Namespace, *, is_served: bool, is_of_rows: bool) -> None:
    """Raises InvalidArgument for an option of an engine without one, and for a run that engines do not have."""
    from heald.errors import InvalidArgument

    if args.engine is None:
        for name in ENGINE_OPTIONS:
            if getattr(args, name) is not None:
                raise InvalidArgument(f"--{name.replace('_', '-')} is for --engine", hint="give --engine ray, too")
        return
    reasons = {"is for many rows": not is_of_rows, "is for models of this machine, and this one is served": is_served,
               "has no --target: its processes share no state": bool(args.target),
               "has no --timeout": args.timeout is not None, "has no --tags": args.tags is not None,
               "has no --format": args.format is not None}
    for reason, holds in reasons.items():
        if holds:
            raise InvalidArgument(f"--engine {args.engine} {reason}", hint="leave one of them out")


@contextmanager
def with_engine(args: Namespace, model: Model) -> Iterator[Model]:
    """Yield the model whose step runs in the engine. Raises Unimplemented without heald-ray, and its errors."""
    if args.engine is None:
        yield model
        return
    from heald.api import install_hint
    from heald.errors import InvalidArgument, Unimplemented

    try:
        from heald_ray.run_engine import BATCHES_PER_ACTOR, open_step
    except ImportError:
        raise Unimplemented("--engine ray needs heald-ray", hint=install_hint("heald-ray")) from None
    resources: dict[str, float] = {}
    for name, amount in args.actor_resource or ():
        if name in resources:
            raise InvalidArgument(f"--actor-resource names {name} twice")
        resources[name] = amount
    options: dict[str, Any] = {"device": args.device, "signature": args.signature, "outputs": args.fetch or None}
    actors = args.actors or DEFAULT_ACTORS
    with open_step(args.model, address=args.address or "local", insecure=bool(args.insecure), actors=actors,
                   resources=resources, path_on_workers=args.model_on_workers, outputs=model.outputs,
                   options=options) as step:
        yield model._replace(step=step, in_flight=actors * BATCHES_PER_ACTOR)
