"""The kernels: the CPU plugin's, over simulated memory. Config limits the ops and dtypes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import heald_cpu.kernels
from heald.api import Attrs, Bind, Declined, DType, Kernels, ValueInfo, dtypes, errors

from .config import Config
from .cost import flops
from .native import Kernel, Native

BindFunction = Callable[..., Any]
RANDOM = ("RandomNormal", "RandomUniform", "RandomUniformFullInt", "RandomUniformInt", "TruncatedNormal")
HOST_INPUTS: dict[str, tuple[str, ...]] = {  # inputs that are parameters, read in host memory
    "ArgMax": ("dimension",), "ArgMin": ("dimension",), "ConcatV2": ("axis",), "ExpandDims": ("dim",),
    "Fill": ("dims",), "GatherV2": ("axis",), "Max": ("reduction_indices",), "Mean": ("reduction_indices",),
    "Min": ("reduction_indices",), "MirrorPad": ("paddings",), "Pad": ("paddings",), "PadV2": ("paddings",),
    "Prod": ("reduction_indices",), "Range": ("start", "limit", "delta"), "Reshape": ("shape",),
    "Slice": ("begin", "size"), "Split": ("split_dim",), "StridedSlice": ("begin", "end", "strides"),
    "Sum": ("reduction_indices",), "Tile": ("multiples",), "Transpose": ("perm",), "ConjugateTranspose": ("perm",),
    "Multinomial": ("num_samples",), "StatelessMultinomial": ("num_samples",),
    **{f"{op}{suffix}": ("fft_length",) for op in ("RFFT", "IRFFT") for suffix in ("", "2D", "3D")},
    **dict.fromkeys(("RandomStandardNormal", "RandomUniform", "RandomUniformInt", "TruncatedNormal"), ("shape",)),
    **{f"Stateless{name}": ("shape",) for name in RANDOM},
    **{f"Stateless{name}V2": ("shape", "alg") for name in RANDOM},
}
UNSUPPORTED_FLAGS = ("allocates", "asynchronous", "nonstrict", "step", "retains")  # of kernels without a stream


class KernelRelay(Kernels):
    """A registry for the CPU plugin's kernels, which registers SIM's kernels over them."""

    def __init__(self, to: Kernels, config: Config) -> None:
        self._to = to
        self._ops = config.ops
        self._dtypes = None if config.dtypes is None else frozenset(map(dtypes.named, config.dtypes))

    def later(self, ops: Sequence[str], register: Callable[..., None]) -> None:
        register(self)

    def kernel(
        self, op: str, *, dtypes: Mapping[str, str | Iterable[str]] | None = None,
        when: Callable[[Attrs], bool] | None = None, host: Iterable[str] = (), **flags: Any,
    ) -> Callable[[BindFunction], BindFunction]:
        def add(bind: BindFunction) -> BindFunction:
            if (self._ops is None or op in self._ops) and not any(flags.get(flag) for flag in UNSUPPORTED_FLAGS):
                self._to.kernel(op, dtypes=dtypes, when=partial(_has_bytes, when),
                                host=(*host, *HOST_INPUTS.get(op, ())),
                                **flags)(partial(bind_on_stream, bind, self._dtypes))
            return bind

        return add


def register_kernels(kernels: Kernels, config: Config) -> None:
    heald_cpu.kernels.register_kernels(KernelRelay(kernels, config))


def bind_on_stream(bind: BindFunction, allowed: frozenset[DType] | None, b: Bind) -> Any:
    """Bind the CPU's kernel. The run function launches it on the stream."""
    missing = set() if allowed is None else {dtype.name for dtype in _in_memory(b)} - {d.name for d in allowed}
    if missing:
        return b.decline(f"there are no kernels for {', '.join(sorted(missing))} in [plugin.sim] dtypes")
    bound = bind(_from_memory(b))
    if bound is None or isinstance(bound, Declined):
        return bound
    kernel = Kernel(b.op, b.node, bound if callable(bound) else bound.run, tuple(x.meta for x in b.inputs), b.outputs,
                    flops(b))
    return StreamKernel(b.device.native, b.stream, kernel, getattr(bound, "shows", None))


class StreamKernel:
    """A kernel of the CPU, bound to a stream. `shows`: the parts of inputs that its results are, if they are."""

    def __init__(self, native: Native, stream: Hashable, kernel: Kernel, shows: Any = None) -> None:
        self._kernel = kernel
        self._launch = partial(native.launch, stream, kernel)
        self.shows = shows

    def run(self, *arguments: Any) -> None:
        self._launch(arguments)

    def attach(self, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> Callable[[], None]:
        """Raises InvalidArgument for a buffer that is smaller than the kernel's metadata."""
        buffers = inputs + outputs
        for buffer, meta in zip(buffers, (*self._kernel.inputs, *self._kernel.outputs), strict=True):
            if buffer.nbytes < meta.nbytes:
                raise errors.InvalidArgument(f"{buffer} is smaller than {meta}, an operand of {self._kernel.op}",
                                             hint="give buffers of the types and shapes that the kernel was bound for")
        return partial(self._launch, buffers)


def _from_memory(b: Bind) -> Bind:
    """The Bind for the CPU's kernel, without the values of float inputs in device memory. The kernel has to read them
    there: a wrong value in that memory then shows in the result."""
    if b.op in HOST_INPUTS:
        return b
    inputs = tuple(ValueInfo(x.meta, dims=x.dims, handle=x.handle) if x.dtype.kind in "fc" else x for x in b.inputs)
    return Bind(b.node, b.op, b.attrs, inputs, b.outputs, b.device, b.stream, {}, keep=b.keep, needed=b.needed)


def _in_memory(b: Bind) -> Iterator[DType]:
    """Yield the dtypes of all operands in device memory."""
    for x in b.inputs:
        if b.op not in HOST_INPUTS or x.value is None:
            yield x.dtype
    for meta in b.outputs:
        yield meta.dtype


def _has_bytes(when: Callable[[Attrs], bool] | None, attrs: Attrs) -> bool:
    """True unless the kernel has operands of string, resource or variant, which stay on the host."""
    for value in attrs.values():
        types = value if isinstance(value, tuple | list) else (value,)
        if any(isinstance(t, DType) and not t.itemsize for t in types):
            return False
    return when is None or when(attrs)
