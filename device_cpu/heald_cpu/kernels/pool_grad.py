"""The index of each window's largest element, and the gradients of pooling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from heald.api import Attachable, Attrs, Bind, Kernels, errors

from ..element_types import REAL
from .pool import Taps, window_attrs, window_counts, window_taps
from .staging import Scratched, with_channels_last

Index = tuple[slice, ...]
POOLED_3D = ("bfloat16", "float32")
TIE = 1e-5  # elements nearer than this to the largest element count as equally large


def _places(taps: list[Taps]) -> Iterator[tuple[Index, Index]]:
    """For each tap of the window, row by row: indices of the outputs, and of the inputs under the tap."""
    for along in product(*taps):
        yield (slice(None), *(o for o, _ in along)), (slice(None), *(i for _, i in along))


def _taps_of_space(attrs: Attrs, shape: tuple[int, ...]) -> list[Taps]:
    taps = window_taps(attrs, shape)
    if attrs["ksize"][-1] != 1 or attrs["strides"][-1] != 1:
        raise errors.Unimplemented("the index of the largest element across the depth is not implemented")
    return taps


def _challenge(best: Any, winner: Any, candidates: Any, label: Any) -> None:
    """Let candidates compete for their windows. The first of equal elements wins. The very first candidate (winner -1)
    always wins; if it is NaN, no later one beats it."""
    wins = (best < candidates) | (winner < 0)
    np.copyto(best, candidates, where=wins)
    np.copyto(winner, label, where=wins)


def max_pool_with_argmax(b: Bind) -> Callable[..., None]:
    """MaxPoolWithArgmax. An index counts in the flattened image or, with `include_batch_in_index`, batch."""
    n, *image = b.inputs[0].meta.dims
    taps = _taps_of_space(window_attrs(b), (n, *image))
    batch = n if b.attrs["include_batch_in_index"] else 1
    index = np.arange(batch * int(np.prod(image)), dtype=b.attrs["Targmax"].numpy).reshape(batch, *image)

    def run(x: Any, best: Any, winner: Any) -> None:
        winner.fill(-1)
        for o, i in _places(taps):
            _challenge(best[o], winner[o], x[i], index[i])

    return run


def max_pool_gradient(b: Bind) -> Attachable:
    """The winner of a window gets the window's gradient."""
    places = list(_places(_taps_of_space(b.attrs, b.inputs[0].meta.dims)))

    def attach(x: Any, _: Any, gradient: Any, out: Any) -> Callable[[], None]:
        best, winner = np.zeros(gradient.shape, x.dtype), np.empty(gradient.shape, np.int32)

        def run() -> None:
            winner.fill(-1)
            for number, (o, i) in enumerate(places):
                _challenge(best[o], winner[o], x[i], number)
            out.fill(0)
            for number, (o, i) in enumerate(places):
                np.add(out[i], gradient[o], out=out[i], where=winner[o] == number)

        return run

    return with_channels_last(b, Scratched(lambda ins, outs: attach(*ins, *outs)), (0, 1, 2))


def max_pool_3d_gradient(b: Bind) -> Attachable:
    """Every element as large as the largest of its window gets the window's gradient. If the largest is infinite, no
    element gets it."""
    places = list(_places(_taps_of_space(b.attrs, b.inputs[0].meta.dims)))

    def attach(x: Any, largest: Any, gradient: Any, out: Any) -> Callable[[], None]:
        def run() -> None:
            out.fill(0)
            for o, i in places:
                np.add(out[i], gradient[o], out=out[i], where=np.abs(x[i] - largest[o]) < TIE)

        return run

    return with_channels_last(b, Scratched(lambda ins, outs: attach(*ins, *outs)), (0, 1, 2))


def avg_pool_gradient(b: Bind) -> Attachable:
    taps = window_taps(b.attrs, b.outputs[0].dims)
    count = window_counts(b, taps, b.inputs[1].meta.dims)

    def attach(_: Any, gradient: Any, out: Any) -> Callable[[], None]:
        share = np.empty(gradient.shape, gradient.dtype)
        steps = _unfolding(taps, share, out)

        def run() -> None:
            np.divide(gradient, count, out=share)
            for target, passes in steps:
                target.fill(0)
                for into, gradients in passes:
                    np.add(into, gradients, out=into)

        return run

    return with_channels_last(b, Scratched(lambda ins, outs: attach(*ins, *outs)), (1,))


def _unfolding(taps: list[Taps], share: Any, out: Any) -> list[tuple[Any, list[tuple[Any, Any]]]]:
    """The passes along one spatial dimension after the other: each a target, and pairs of its parts and their
    addends."""
    steps, source = [], share
    for axis, along in enumerate(taps, 1):
        shape = (*out.shape[: axis + 1], *source.shape[axis + 1 :])
        target = out if axis == len(taps) else np.empty(shape, out.dtype)
        before = (slice(None),) * axis
        steps.append((target, [(target[(*before, i)], source[(*before, o)]) for o, i in along]))
        source = target
    return steps


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("MaxPoolWithArgmax", dtypes={"T": REAL})(max_pool_with_argmax)
    kernels.kernel("MaxPoolGrad", dtypes={"T": REAL})(max_pool_gradient)
    same = {"T": POOLED_3D, "TInput": POOLED_3D}
    kernels.kernel("MaxPool3DGrad", dtypes=same, when=lambda a: a["T"] is a["TInput"])(max_pool_3d_gradient)
    kernels.kernel("AvgPoolGrad")(avg_pool_gradient)
    kernels.kernel("AvgPool3DGrad", dtypes={"T": POOLED_3D})(avg_pool_gradient)
