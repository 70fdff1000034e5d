"""Metadata of random numbers: stateful, or drawn from a seed or a key and counter as inputs."""

from __future__ import annotations

from heald.api import Attrs, DType, InvalidArgument, ValueInfo, dtypes, info, shape_text

from .rules import rule
from .shapes import (
    Dims,
    check_single,
    count_in,
    dims_of_rank,
    elements_in,
    same_dim,
    same_shape,
    single_integer,
    vector,
)
from .variables import variable

KEY, COUNTER, SEED = (1,), (2,), (2,)
MOST_ELEMENTS = 2**63 - 1


@rule("RandomStandardNormal", "RandomUniform", "TruncatedNormal", values=("shape",))
def random(attrs: Attrs, shape: ValueInfo) -> ValueInfo:
    return _random_tensor(attrs["dtype"], shape)


@rule("RandomUniformInt", values=("shape",))
def random_int(attrs: Attrs, shape: ValueInfo, minval: ValueInfo, maxval: ValueInfo) -> ValueInfo:
    return _random_tensor(attrs["Tout"], shape, minval, maxval)


@rule("StatelessRandomNormal", "StatelessRandomUniform", "StatelessRandomUniformFullInt", "StatelessRandomUniformInt",
      "StatelessTruncatedNormal", values=("shape",))
def stateless(attrs: Attrs, shape: ValueInfo, seed: ValueInfo, *bounds: ValueInfo) -> ValueInfo:
    same_shape((seed.shape, SEED), "seed must have shape [2]")
    return _random_tensor(attrs["dtype"], shape, *bounds)


@rule("StatelessRandomNormalV2", "StatelessRandomUniformFullIntV2", "StatelessRandomUniformIntV2",
      "StatelessRandomUniformV2", "StatelessTruncatedNormalV2", values=("shape", "alg"))
def stateless_v2(
    attrs: Attrs, shape: ValueInfo, key: ValueInfo, counter: ValueInfo, alg: ValueInfo, *bounds: ValueInfo
) -> ValueInfo:
    _check_key(key, counter, alg)
    return _random_tensor(attrs["dtype"], shape, *bounds)


def _check_key(key: ValueInfo, counter: ValueInfo, alg: ValueInfo) -> None:
    same_shape((key.shape, KEY), "key must have shape [1]")
    (length,) = dims_of_rank(counter, 1, "counter")
    single_integer(alg, "alg")
    if length is not None and length < COUNTER[0]:
        raise InvalidArgument(f"counter must be a vector of length 2 at least, given shape {shape_text(counter.shape)}")


def _random_tensor(dtype: DType, shape: ValueInfo, *bounds: ValueInfo) -> ValueInfo:
    for bound, name in zip(bounds, ("minval", "maxval"), strict=False):
        dims_of_rank(bound, 0, name)
    return info(dtype, _lengths(shape))


def _lengths(shape: ValueInfo) -> Dims | None:
    lengths = vector(shape, "shape")
    for length in lengths or ():
        if length is not None and length < 0:
            raise InvalidArgument(f"Dimension {length} must be >= 0")
    if (elements_in(lengths) or 0) > MOST_ELEMENTS:
        raise InvalidArgument(f"Shape {shape_text(lengths)} would have more than 2**63 - 1 elements")
    return lengths


@rule("RandomGamma", "RandomPoisson", "RandomPoissonV2", values=("shape",))
def of_parameters(attrs: Attrs, shape: ValueInfo, parameters: ValueInfo) -> ValueInfo:
    """The output has a tensor of `shape` for each parameter, whose dimensions are last."""
    lengths = _lengths(shape)
    dtype = attrs.get("dtype", parameters.dtype)
    if lengths is None or parameters.shape is None:
        return info(dtype, None)
    if (elements_in((*lengths, *parameters.shape)) or 0) > MOST_ELEMENTS:
        raise InvalidArgument(f"Shape {shape_text((*lengths, *parameters.shape))} would have more than 2**63 - 1 "
                              "elements")
    return info(dtype, (*lengths, *parameters.shape))


@rule("StatelessRandomGammaV2", "StatelessRandomPoisson", values=("shape",))
def stateless_of_parameters(attrs: Attrs, shape: ValueInfo, seed: ValueInfo, parameters: ValueInfo) -> ValueInfo:
    same_shape((seed.shape, SEED), "seed must have shape [2]")
    return _ending_with(attrs["dtype"], shape, parameters)


@rule("StatelessRandomGammaV3", values=("shape", "alg"))
def stateless_gamma_v3(
    attrs: Attrs, shape: ValueInfo, key: ValueInfo, counter: ValueInfo, alg: ValueInfo, alpha: ValueInfo
) -> ValueInfo:
    _check_key(key, counter, alg)
    return _ending_with(attrs["dtype"], shape, alpha)


def _ending_with(dtype: DType, shape: ValueInfo, parameters: ValueInfo) -> ValueInfo:
    lengths = _lengths(shape)
    if lengths is not None and parameters.shape is not None:
        count = len(parameters.shape)
        if count > len(lengths):
            raise InvalidArgument("Shape passed in must end with broadcasted shape.")
        same_shape((lengths[len(lengths) - count :], parameters.shape),
                   "Shape passed in must end with broadcasted shape")
    return info(dtype, lengths)


@rule("StatelessShuffle", values=("alg",))
def stateless_shuffle(_: Attrs, x: ValueInfo, key: ValueInfo, counter: ValueInfo, alg: ValueInfo) -> ValueInfo:
    _check_key(key, counter, alg)
    return ValueInfo(x.meta)


@rule("RngReadAndSkip")
def read_and_skip(attrs: Attrs, resource: ValueInfo, algorithm: ValueInfo, delta: ValueInfo) -> ValueInfo:
    skip(attrs, resource, algorithm, delta)
    return info(dtypes.int64, (3,))


@rule("RngSkip")
def skip(_: Attrs, resource: ValueInfo, algorithm: ValueInfo, delta: ValueInfo) -> tuple[ValueInfo, ...]:
    _check_state(resource)
    check_single(algorithm, "algorithm")
    check_single(delta, "delta")
    return ()


def _check_state(resource: ValueInfo) -> None:
    state = variable(resource, dtypes.int64)
    dims_of_rank(state, 1, "the state of a generator")


@rule("StatefulStandardNormalV2", "StatefulTruncatedNormal", "StatefulUniform", "StatefulUniformFullInt",
      "StatefulUniformInt", values=("shape",))
def of_state(
    attrs: Attrs, resource: ValueInfo, algorithm: ValueInfo, shape: ValueInfo, *bounds: ValueInfo
) -> ValueInfo:
    _check_state(resource)
    check_single(algorithm, "algorithm")
    return _random_tensor(attrs["dtype"], shape, *bounds)


@rule("StatelessRandomGetKeyCounter")
def key_and_counter(_: Attrs, seed: ValueInfo) -> tuple[ValueInfo, ...]:
    same_shape((seed.shape, SEED), "seed must have shape [2]")
    return info(dtypes.uint64, KEY), info(dtypes.uint64, COUNTER)


@rule("StatelessRandomGetKeyCounterAlg")
def key_counter_and_algorithm(attrs: Attrs, seed: ValueInfo) -> tuple[ValueInfo, ...]:
    return (*key_and_counter(attrs, seed), info(dtypes.int32, ()))


@rule("StatelessRandomGetAlg")
def algorithm(_: Attrs) -> ValueInfo:
    return info(dtypes.int32, ())


@rule("Multinomial", values=("num_samples",))
def multinomial(attrs: Attrs, logits: ValueInfo, num_samples: ValueInfo) -> ValueInfo:
    batch, classes = dims_of_rank(logits, 2, "logits")
    count = count_in(num_samples, "num_samples")
    if classes == 0:
        raise InvalidArgument("num_classes should be positive, got 0")
    return info(attrs["output_dtype"], (batch, count))


@rule("StatelessMultinomial", values=("num_samples",))
def stateless_multinomial(attrs: Attrs, logits: ValueInfo, num_samples: ValueInfo, seed: ValueInfo) -> ValueInfo:
    same_shape((seed.shape, SEED), "seed must have shape [2]")
    return multinomial(attrs, logits, num_samples)


@rule("RandomShuffle")
def random_shuffle(_: Attrs, value: ValueInfo) -> ValueInfo:
    return ValueInfo(value.meta)


@rule("LogUniformCandidateSampler", "UniformCandidateSampler")
def candidates(attrs: Attrs, true_classes: ValueInfo) -> tuple[ValueInfo, ...]:
    batch, count = dims_of_rank(true_classes, 2, "true_classes")
    if count not in (None, attrs["num_true"]):
        raise InvalidArgument(f"true_classes must have num_true columns, expected: {count} was: {attrs['num_true']}")
    if attrs["unique"] and attrs["num_sampled"] > attrs["range_max"]:
        raise InvalidArgument("Sampler's range is too small.")
    sampled = (attrs["num_sampled"],)
    true = (batch, attrs["num_true"])
    return info(dtypes.int64, sampled), info(dtypes.float32, true), info(dtypes.float32, sampled)


@rule("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2")
def distorted_box(attrs: Attrs, size: ValueInfo, boxes: ValueInfo, *covered: ValueInfo) -> tuple[ValueInfo, ...]:
    same_dim(dims_of_rank(size, 1, "image_size")[0], 3, "the elements of image_size and 3")
    same_dim(dims_of_rank(boxes, 3, "bounding_boxes")[2], 4, "the last dimension of bounding_boxes and 4")
    for x in covered:
        dims_of_rank(x, 0, "min_object_covered")
    for name, what in (("aspect_ratio_range", "Aspect ratio range"), ("area_range", "Area range")):
        if len(attrs[name]) != 2:
            raise InvalidArgument(f"{what} field must specify 2 dimensions")
        if not min(attrs[name]) > 0:
            raise InvalidArgument(f"{what} must be non-negative: {list(attrs[name])}")
    if not max(attrs["area_range"]) <= 1:
        raise InvalidArgument(f"Area range must be less then or equal to 1.0: {list(attrs['area_range'])}")
    if attrs["max_attempts"] < 1:
        raise InvalidArgument(f"Max attempts must be non-negative: {attrs['max_attempts']}")
    return info(size.dtype, (3,)), info(size.dtype, (3,)), info(dtypes.float32, (1, 1, 4))
