"""Outputs as a coroutine waits for them: whoever gives up cancels the run."""

from __future__ import annotations

import asyncio

import heald

from .predict import Arrays, Prediction, Predictor


async def outputs_of(predictor: Predictor, prediction: Prediction) -> Arrays:
    """The outputs of a prediction. A cancelled coroutine cancels the run. Raises the errors of `Predictor.submit`."""
    token = heald.CancelToken()
    future = predictor.submit(prediction._replace(cancel=token))
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        token.cancel()
        raise
