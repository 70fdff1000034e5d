"""`heald run --engine ray`: the step of a run over many rows, by actors.

The caller reads and decodes the rows, and writes the answers in their order, as in a run on one machine. Only the step
differs: it hands a batch to an actor and waits for the outputs. Two batches are under way for each actor, so that the
next one is on the node when an actor becomes free. An actor has one batch at a time.

heald retries nothing. An actor that dies ends the run with Unavailable, and `--resume` goes on from the journal.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import ceil
from typing import Any

from heald.errors import FailedPrecondition, HealdError, Unavailable, typed_error

from .connection import open_connection
from .predictor import LoadedModel, model_arguments
from .resources import check_resources

BATCHES_PER_ACTOR = 2
START_SECONDS = 300.0  # for the start of all actors: a process and a model each


class BatchRunner:
    """An actor: a model that runs the batches that callers hand to it, one at a time.

    `load` is a call of its own, because Ray turns the error of a constructor into a text.
    """

    def load(self, arguments: Mapping[str, Any]) -> list[str]:
        """Load the model, and return the names of its outputs. Raises as `LoadedModel`."""
        self._loaded = LoadedModel(**arguments)
        return list(self._loaded.model.outputs)

    def run(self, *arrays: Any) -> list[Any]:
        return self._loaded.run(*arrays)


class BatchStep:
    """Called with the arrays of a batch, it returns the outputs of an actor. Any thread may call."""

    def __init__(self, actors: Sequence[Any]) -> None:
        self._actors = actors
        self._pending = [0] * len(actors)
        self._lock = threading.Lock()

    def __call__(self, *arrays: Any) -> Sequence[Any]:
        """Raises the actor's error, Unavailable for an actor that died."""
        with self._lock:
            index = self._pending.index(min(self._pending))
            self._pending[index] += 1
        try:
            results: Sequence[Any] = _get(self._actors[index].run.remote(*arrays))
        finally:
            with self._lock:
                self._pending[index] -= 1
        return results


@contextmanager
def open_step(
    model: str, *, address: str, insecure: bool, actors: int, resources: Mapping[str, float],
    path_on_workers: str | None, outputs: Sequence[str], options: Mapping[str, Any],
) -> Iterator[BatchStep]:
    """Yield the step of `actors` actors, each with `resources`, which end with the block.

    `path_on_workers`: The path of the model on all nodes; None to send its files. `options`: Of `heald.load`.

    Raises as `connect`, `check_resources` and `heald.load`; FailedPrecondition for a model with other outputs.
    """
    is_local = address == "local"
    custom = {name: amount for name, amount in resources.items() if name not in ("CPU", "GPU")}
    needs = {"CPU": 1.0, **resources}
    started = {"cpus": ceil(actors * needs["CPU"])} if is_local else {}
    with open_connection(address, insecure=insecure, **started):
        check_resources(needs, actors=actors)
        arguments = model_arguments(path_on_workers or model, model_on_workers=path_on_workers is not None, **options)
        import ray

        kind = ray.remote(BatchRunner).options(
            num_cpus=needs["CPU"], num_gpus=needs.get("GPU", 0), resources=custom, max_restarts=0, max_task_retries=0)
        runners = [kind.remote() for _ in range(actors)]
        for names in _get([runner.load.remote(arguments) for runner in runners], START_SECONDS):
            if list(names) != list(outputs):
                raise FailedPrecondition(f"the model of a worker has the outputs {', '.join(names)}, and the caller's "
                                         f"{', '.join(outputs)}", hint="both paths must lead to one model")
        yield BatchStep(runners)


def _get(reference: Any, seconds: float | None = None) -> Any:
    """Return the results. Raises heald's error of an actor, Unavailable for an actor that died or does not start."""
    import ray
    from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError

    try:
        return ray.get(reference, timeout=seconds)
    except GetTimeoutError:
        raise Unavailable(f"the workers did not start within {seconds:g} s",
                          hint="other programs may hold the cluster's resources; `ray status` lists them") from None
    except RayTaskError as error:
        raise _cause_of(error) from None
    except RayActorError as error:
        raise Unavailable(f"a worker died: {_first_line(error)}",
                          hint="--resume goes on behind the last batch that was written") from None
    except RayError as error:
        raise Unavailable(f"Ray: {_first_line(error)}") from None


def _cause_of(error: Any) -> HealdError:
    cause = error.cause if isinstance(error.cause, Exception) else error
    return cause if isinstance(cause, HealdError) else typed_error(cause)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:500]
