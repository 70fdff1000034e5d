"""The operations that TFRT's tests give to the handler of the CPU."""

from __future__ import annotations

from functools import partial

import numpy as np
from heald.api import OpSpec, TensorMetadata, ValueInfo, dtypes, errors, info

ELEMENTWISE = {"add": np.add, "equal": np.equal}


def _same(_, x, y):
    if x.dtype is not y.dtype or x.shape != y.shape:
        raise errors.InvalidArgument(f"the tensors are {x.meta} and {y.meta}, expected one type and one shape")
    return info(x.dtype, x.shape)


def _like(_, x):
    return info(x.dtype, x.shape)


def _create_tensor(attrs):
    value = attrs["values"].array()
    if any(dim is None for dim in attrs["shape"]):
        raise errors.InvalidArgument("the shape has an unknown dimension")
    if value.size not in (1, int(np.prod(attrs["shape"]))):
        raise errors.InvalidArgument(f"{value.size} values are given for the shape {list(attrs['shape'])}")
    return info(dtypes.of_numpy(value.dtype), tuple(attrs["shape"]))


def _reduction_metadata(dtype):
    def metadata(attrs, x):
        dims = None if x.shape is None else tuple(d for i, d in enumerate(x.shape) if i != attrs["axis"])
        return info(dtype or x.dtype, dims)

    return metadata


def _cast(attrs, x):
    return info(attrs["type"], x.shape)


def _vector(_, x):
    return info(x.dtype, (None,))


def _unknown(_, x):
    return ValueInfo(TensorMetadata(x.dtype, None))


T = "T: type"
OPS = [
    *(OpSpec(f"tfrt_test.{name}", ["x: T", "y: T"], ["z: T"], [T], metadata=_same) for name in ELEMENTWISE),
    OpSpec("tfrt_test.create_dense_tensor", [], ["y: T"], ["shape: shape", "values: tensor", "T: type"],
           metadata=_create_tensor),
    OpSpec("tfrt_test.argmax", ["x: T"], ["y: int32"], [T, "axis: int = 1"],
           metadata=_reduction_metadata(dtypes.int32)),
    OpSpec("tfrt_test.reduce_mean", ["x: T"], ["y: T"], [T, "axis: int = 0"], metadata=_reduction_metadata(None)),
    OpSpec("tfrt_test.async.noop", ["x: T"], ["y: T"], [T], metadata=_like),
    OpSpec("tfrt_test.async.noop_no_md", ["x: T"], ["y: T"], [T], metadata=_unknown),
    OpSpec("tfrt_test.print", ["x: T"], [], [T], stateful=True),
    OpSpec("tfrt_test.error.tensor", ["x: T"], ["y: T"], [T], metadata=_like),
    OpSpec("tfrt_test.cast", ["x: T"], ["y: type"], [T, "type: {half, float}"], metadata=_cast),
    OpSpec("tfrt_test.relu", ["x: T"], ["y: T"], [T], metadata=_like),
    OpSpec("tfrt_test.odd_collector", ["x: int32"], ["y: int32"], metadata=_vector),
]


def register(kernels):
    for name, function in ELEMENTWISE.items():
        kernels.kernel(f"tfrt_test.{name}")(partial(_elementwise, function))
    kernels.kernel("tfrt_test.create_dense_tensor")(_create)
    for name, bind in (("argmax", _argmax), ("reduce_mean", _reduce_mean), ("relu", _relu), ("cast", _casting)):
        kernels.kernel(f"tfrt_test.{name}")(bind)
    kernels.kernel("tfrt_test.async.noop", asynchronous=True, step=True)(_run_later)
    kernels.kernel("tfrt_test.async.noop_no_md", asynchronous=True, step=True)(_run_later)
    kernels.kernel("tfrt_test.print", step=True)(_print)
    kernels.kernel("tfrt_test.error.tensor")(_fail)
    kernels.kernel("tfrt_test.odd_collector", allocates=True)(lambda _: lambda x: x[x % 2 == 1])


def _elementwise(function, _):
    return lambda x, y, out: np.copyto(out, function(x, y), casting="unsafe")


def _create(bind):
    dims = tuple(bind.attrs["shape"])
    values = bind.attrs["values"].array()
    filled = values.reshape(-1)[0] if values.size == 1 else values.reshape(dims)
    return lambda out: np.copyto(out, filled)


def _argmax(bind):
    return lambda x, out: np.copyto(out, np.argmax(x, bind.attrs["axis"]), casting="unsafe")


def _reduce_mean(bind):
    return lambda x, out: np.copyto(out, np.mean(x, bind.attrs["axis"]), casting="unsafe")


def _relu(_):
    return lambda x, out: np.maximum(x, 0, out=out)


def _casting(_):
    return lambda x, out: np.copyto(out, x, casting="unsafe")


def _run_later(_):
    return lambda step, x: [step.enqueue(x.copy)]


def _print(_):
    from heald_mlir.kernels.host_tensors import text_of

    return lambda step, x: step.host.print_line(text_of(x))


def _fail(_):
    def run(x, out):
        raise errors.Internal("error from test.error.tensor implementation")

    return run


