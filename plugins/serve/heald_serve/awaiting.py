"""Outputs as a coroutine waits for them: whoever gives up cancels the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic

import heald
from heald.errors import DeadlineExceeded

from .later import value_of
from .predict import Arrays, Prediction, Predictor


async def outputs_of(
    predictor: Predictor, prediction: Prediction, on_disconnect: list[Callable[[], object]] | None = None, *,
    late: str = "the deadline of the request has passed"
) -> Arrays:
    """The outputs of a prediction. A cancelled coroutine, a deadline and a client that is gone cancel the run.

    `on_disconnect`: the functions that are called when the client is gone. Raises the errors of `Predictor.submit`, and
    DeadlineExceeded with the text `late`. A brief run is done here, without limits, alone or in a batch.
    """
    outputs = predictor.run_briefly(prediction)
    if outputs is not None:
        return outputs
    later = predictor.join_turn(prediction)
    if later is not None:
        return await value_of(later)
    token = heald.CancelToken()
    future = predictor.submit(prediction._replace(cancel=token))
    callbacks = [] if on_disconnect is None else on_disconnect
    callbacks.append(token.cancel)
    seconds = None if prediction.deadline is None else prediction.deadline - monotonic()
    try:
        return await asyncio.wait_for(asyncio.wrap_future(future), seconds)
    except TimeoutError:
        token.cancel()
        raise DeadlineExceeded(late) from None
    except asyncio.CancelledError:
        token.cancel()
        raise
    finally:
        callbacks.remove(token.cancel)
