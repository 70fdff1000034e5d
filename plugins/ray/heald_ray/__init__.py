"""heald on Ray: models over data sets and on Ray Serve, by processes on one machine or many.

    connection   the one call of ray.init: address, tokens, the module path of workers
    address_probe  whether a cluster answers at an address, and whether it asks for tokens
    model_files  a model's files as bytes in Ray's object store, and as files on each node
    sent_config  the caller's config on the workers, as JSON of its layers
    versions     Python, heald and its plugins on the caller's side and on the workers'
    resources    resources that no node declares, told as an error
    predictor    the class that `ds.map_batches` runs in its actors
    run_engine   `heald run --engine ray`: batches of rows to actors, answers in order
    deployment   a Ray Serve deployment over the request code of heald serve
    ray_cluster  the target "ray" of heald.Session: a worker of Ray for each task
    call_message the arguments of a call between workers, as few values
    ray_answer   the answer to a call of an actor, taken by the thread that waits for it
    session      steps over workers of any engine; task_graphs and step_plan cut the graph and the step
    trace_message the events of all workers in one trace
    lifelines    the deaths of workers, which end their steps, and the renewal of workers that started again

Graphs and weights travel as the bytes of their files. heald adds no pickle of its own to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .connection import connect as connect
    from .deployment import make_application as make_application
    from .predictor import Predictor as Predictor
    from .predictor import predictor_arguments as predictor_arguments
    from .resources import check_resources as check_resources

__all__ = ["Predictor", "check_resources", "connect", "make_application", "predictor_arguments"]

_MODULES = {"connect": "connection", "Predictor": "predictor", "predictor_arguments": "predictor",
            "check_resources": "resources", "make_application": "deployment"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        try:
            return getattr(import_module(f".{_MODULES[name]}", __name__), name)
        except ImportError as error:
            from heald.api import install_hint
            from heald.errors import NotFound

            raise NotFound(f"heald_ray.{name}: {error}", hint=install_hint("heald-ray[data,serve]")) from None
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
