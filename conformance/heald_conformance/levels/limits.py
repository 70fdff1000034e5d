"""Limits: tensors and launches beyond the counts that kernels hold, numbers at the ends of their types, dilations.

Small operands hide an index of 16 or 32 bits, a grid that a driver refuses, and an exponential that overflows. A device
may refuse a tensor that is too large for it: by ResourceExhausted, or by a bind that declines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from heald.api import DType, Node, dtypes, errors
from heald.runtime.support import available_memory as system_memory

from ..arrays import fixed_size_types
from ..case import sentence
from ..elementwise import OPS, Op
from ..long_samples import LONG_FORMS, long_sample
from ..samples import Sample, Shapes, first_attributes, sample_of_shapes, varied_type
from ..subject import REFERENCE, Array, Subject, placeholder
from ..verdict import NotApplicable, expect, expect_close, expect_same_bits, fail
from .kernels import Declined, apply, check_any_tried, takes, tolerance, ways_to_feed

LARGE_BYTES = (1 << 31) + 4096  # more than a signed index of 32 bits counts
NEEDED_MEMORY = 8 << 30  # bytes of the machine's: operands and results, on the host and on a device beside it
CHUNK = 1 << 24  # elements that are compared at a time
IMAGE_AND_FILTER: Shapes = ((2, 9, 9, 3), (3, 3, 3, 2))
DILATED: Mapping[str, Shapes] = {
    "Conv2D": IMAGE_AND_FILTER, "DepthwiseConv2dNative": IMAGE_AND_FILTER,
    "_FusedConv2D": (*IMAGE_AND_FILTER, (2,)), "_FusedDepthwiseConv2dNative": (*IMAGE_AND_FILTER, (6,)),
}
DILATIONS = ((1, 2, 2, 1), (1, 3, 3, 1), (1, 2, 1, 1), (1, 1, 3, 1))
OVERFLOWING = ("Softmax", "LogSoftmax", "Sigmoid", "Tanh", "Softplus", "Softsign", "Elu", "Selu", "Exp", "Expm1", "Erf")
WIDE_OPS = tuple(op for op in OPS if op.arity == 1)
LOGICAL_NOT = Op("LogicalNot", 1, np.logical_not)
BATCH_NORMS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")


def long_forms(on: Subject) -> Iterator[str]:
    """Yield `Conv2D-images`. Empty for the reference itself."""
    if on.here.runtime is not None:
        yield from (f"{op}-{form}" for op in sorted(LONG_FORMS) if on.candidates(op) for form in LONG_FORMS[op])


@sentence(over=long_forms)
def a_kernel_with_many_rows_or_elements_agrees_with_the_cpu(on: Subject, op_and_form: str) -> None:
    """More than 65,535 rows, images, channels, columns, or groups of 64 elements, in one type."""
    name, _, form = op_and_form.partition("-")
    definition = on.host.registries.ops.get(name)
    sample = long_sample(definition, first_type(on, name), LONG_FORMS[name][form], read_inputs(on, name))
    agree(on, name, [] if sample is None else [sample])


@sentence(over=lambda on: [op for op in DILATED if on.here.runtime is not None and on.candidates(op)])
def a_dilated_convolution_agrees_with_the_cpu(on: Subject, op: str) -> None:
    definition, dtype = on.host.registries.ops.get(op), first_type(on, op)
    first = first_attributes(definition, dtype) or {}
    agree(on, op, [sample_of_shapes(definition, dtype, first | {"strides": (1, 1, 1, 1), "padding": padding,
                                                                "dilations": dilations}, DILATED[op], ())
                   for padding in ("SAME", "VALID") for dilations in DILATIONS])


def overflowing_ops(on: Subject) -> Iterator[str]:
    """Yield `Softmax-float16`. Empty for the reference itself."""
    if on.here.runtime is not None:
        for op in (op for op in OVERFLOWING if on.candidates(op)):
            yield from (f"{op}-{d.name}" for d in fixed_size_types() if d.kind == "f" and takes(on, op, "T", d))


@sentence(over=overflowing_ops)
def an_exponential_of_large_numbers_agrees_with_the_cpu(on: Subject, op_and_type: str) -> None:
    """Rows of 1e4 and -1e4, which a device must subtract before it takes exponentials, of infinities, and of NaN."""
    op, _, type_name = op_and_type.partition("-")
    dtype = dtypes.named(type_name)
    attrs = first_attributes(on.host.registries.ops.get(op), dtype) or {}
    agree(on, op, [Sample(attrs, (extreme_rows(dtype, columns),), frozenset(), frozenset()) for columns in (4, 1001)])


def extreme_rows(dtype: DType, columns: int) -> Array:
    """Rows whose exponentials overflow, or vanish, in every float type."""
    rows = np.zeros((10, columns), np.float64)
    rows[0], rows[1], rows[2] = 1e4, -1e4, -np.inf
    rows[3], rows[3, 0] = -np.inf, 2.0
    rows[4] = np.where(np.arange(columns) % 2, 1e4, -1e4)
    rows[5, 0], rows[6, 0], rows[7, 0] = 1e4, np.inf, np.nan
    rows[8] = 1e4 + np.arange(columns) % 7
    rows[9] = np.linspace(-100, 100, columns)
    return rows.astype(dtype.numpy)


@sentence(over=lambda on: [op for op in BATCH_NORMS if on.here.runtime is not None and on.candidates(op)])
def a_batch_norm_of_inference_agrees_with_the_cpu(on: Subject, op: str) -> None:
    """A device without the form of training declines it: this form alone is asked for."""
    definition, dtype = on.host.registries.ops.get(op), first_type(on, op)
    first = first_attributes(definition, dtype) or {}
    agree(on, op, [sample_of_shapes(definition, dtype, first | {"is_training": False, "epsilon": epsilon},
                                    ((2, 5, 4, 3), *((3,),) * 4), ()) for epsilon in (1e-4, 1e-2)])


def first_type(on: Subject, op: str) -> DType | None:
    """float32, or the first type that the op's kernels take; None for an op without a type attribute."""
    attr = varied_type(on.host.registries.ops.get(op))
    if attr is None:
        return None
    types = [d for d in fixed_size_types() if takes(on, op, attr, d)]
    return dtypes.float32 if dtypes.float32 in types or not types else types[0]


def read_inputs(on: Subject, op: str) -> tuple[str, ...]:
    rule = on.host.registries.ops.metadata(on.host.registries.ops.get(op))
    return tuple(rule.values) if rule else ()


def agree(on: Subject, op: str, samples: list[Sample]) -> None:
    """Compare the samples with the reference. A sample that it or the device declines is ignored, unless all are."""
    reasons, tried = set(), 0
    for sample in samples:
        fed = ways_to_feed(on, len(sample.inputs), sample.read, sample.settings)
        try:
            want = apply(on, op, sample, on.reference, fed[0])
        except (Declined, errors.HealdError) as refused:
            reasons.add(f"{REFERENCE}: {refused}")
            continue
        try:
            results = apply_on_device(on, op, sample, fed)
        except (Declined, errors.ResourceExhausted) as refused:
            reasons.add(str(refused))
            continue
        tried += 1
        for index, (g, w) in enumerate(zip(results, want, strict=True)):
            expect_close(g, w, tolerance(on, sample, w), f"output {index} of {op}{sample}", "kernels")
    check_any_tried(tried, reasons, f"no sample of {op} is for its kernels, and for {REFERENCE}'s")


def apply_on_device(on: Subject, op: str, sample: Sample, feedings: list[frozenset[int]]) -> list[Array]:
    """The results of the first way to feed the inputs that the device does not decline. Raises Declined."""
    for number, fed in enumerate(feedings):
        try:
            return apply(on, op, sample, on.here, fed)
        except Declined:
            if number + 1 == len(feedings):
                raise
        except errors.ResourceExhausted:
            raise
        except errors.HealdError as error:
            fail(f"{op}{sample}, which {REFERENCE} takes", error, rule="kernels",
                 expected="its result, ResourceExhausted, or a bind that declines")
    raise AssertionError(f"{op} has no way to feed its inputs")


@sentence(over=lambda on: [] if on.settings.quick else ["float32", "int8", "bool"])
def a_tensor_of_more_than_2_gib_is_computed_or_refused(on: Subject, type_name: str) -> None:
    """An index of bytes overflows 32 bits for float32, an index of elements for the types of one byte."""
    require_memory()
    dtype = dtypes.named(type_name)
    ops = [op for op in WIDE_OPS if on.has_kernel(op.name, T=dtype)]
    if type_name == "bool":
        ops = [LOGICAL_NOT] if on.has_kernel(LOGICAL_NOT.name) else []
    if not ops:
        names = ", ".join(op.name for op in WIDE_OPS)
        raise NotApplicable(f"{on.type} has no kernel of {type_name} for any of {names}")
    x, op = sparse_vector(dtype), ops[0]
    nodes = [placeholder("x", dtype), Node("y", op.name, ["x"], attrs={} if type_name == "bool" else {"T": dtype},
                                           device=on.name)]
    try:
        (got,) = on.run(nodes, ["y"], {"x": x})
    except (errors.ResourceExhausted, errors.Unimplemented) as refused:
        raise NotApplicable(f"it refuses {x.nbytes} bytes: {refused}") from None
    except errors.HealdError as error:
        fail(f"{op.name} of {x.size} elements of {type_name}", error, rule="kernels",
             expected="its result, ResourceExhausted or Unimplemented")
    expect(got.shape == x.shape, f"{op.name} of {x.size} elements", expected=x.shape, got=got.shape, rule="kernels")
    for start in range(0, x.size, CHUNK):
        part = slice(start, start + CHUNK)
        what = f"{op.name} of {x.size} elements of {type_name}, elements from {start}"
        expect_same_bits(got[part], op.compute(x[part]), what, "kernels")


@sentence(over=lambda on: [] if on.settings.quick else ["in and out"])
def a_copy_of_more_than_2_gib_is_bit_exact(on: Subject, _: str) -> None:
    require_memory()
    x = sparse_vector(dtypes.uint8)
    buffer = on.device.allocate(x.nbytes)
    if buffer is None:
        raise NotApplicable(f"it has no memory for {x.nbytes} bytes")
    try:
        got = np.empty_like(x)
        on.enqueue_in(x, buffer)
        on.enqueue_out(buffer, got)
        on.finish()
    finally:
        on.device.free(buffer)
    for start in range(0, x.size, CHUNK):
        part = slice(start, start + CHUNK)
        expect_same_bits(got[part], x[part], f"{x.nbytes} bytes copied in and out, bytes from {start}",
                         "Device.copy_out")


def require_memory() -> None:
    """Raises NotApplicable where the machine has too little memory for operands and results of 2 GiB."""
    left = system_memory.available_memory()
    if left is not None and left < NEEDED_MEMORY:
        raise NotApplicable(f"the machine has {left >> 20} MiB of free memory, {NEEDED_MEMORY >> 20} are needed")


def sparse_vector(dtype: DType) -> Array:
    """A vector of more than 2 GiB. All but some elements are zeros, whose pages the system shares."""
    count = LARGE_BYTES // dtype.itemsize
    x = np.zeros(count, dtype.numpy)
    for place in (0, count // 2 - 3, count // 2, count - 5):
        x[place : place + 5] = np.arange(1, 6).astype(dtype.numpy)
    return x
