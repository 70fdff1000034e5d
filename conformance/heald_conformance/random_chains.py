"""Random chains of the ops that a fusion declares, for the comparison of its kernel with the single nodes.

A chain begins with an op of `heads`, if the fusion has some and the seed says so, and goes on with ops of `ops`. It is
drawn op by op on the device itself, one node at a time. An op whose result leaves ordinary numbers is drawn again: a
fused kernel rounds less, and huge or undefined numbers would show nothing but that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from heald.api import FusionDef, Node, dtypes, errors

from .arrays import generator
from .samples import first_attributes, samples, varied_type
from .subject import Subject, constant, placeholder, tolerant_of_fallback

Array = np.ndarray[Any, Any]
FLOAT = dtypes.float32
SHAPES = ((7,), (3, 16), (2, 5, 4, 8), (64, 129))
LONGEST = 8  # ops of a chain
DRAWS = 24  # ops that are tried for a chain
LARGEST_HEAD_ELEMENTS = 1 << 14  # of the result of a head
LARGEST_NUMBER = 64.0
HEAD_SHARE = 0.85  # of the chains of a fusion with heads: without one, most such kernels decline
UNEVEN = frozenset((  # functions with jumps, where the last bit of an input decides
    "Ceil", "Floor", "FloorDiv", "FloorMod", "Mod", "Rint", "Round", "Sign", "TruncateDiv", "TruncateMod"))


class Chain(NamedTuple):
    """The nodes of a graph, the arrays to feed, and the names of the chain's nodes in their order."""

    nodes: list[Node]
    feeds: dict[str, Array]
    names: list[str]


def random_chain(on: Subject, fusion: FusionDef, seed: str) -> Chain | None:
    """The chain of a seed: two ops or more; None where the device takes no such ops one by one."""
    random = generator("chain", fusion.kernel.op, seed)
    chain = _start(on, fusion, random)
    ops = sorted(op for op in fusion.ops - UNEVEN if on.has_kernel(op, T=FLOAT))
    for number in range(DRAWS if chain is not None and ops else 0):
        assert chain is not None
        if len(chain.names) == LONGEST:
            break
        grown = _grow(on, chain, ops[int(random.integers(len(ops)))], f"n{number}", random)
        chain = grown if grown is not None and _has_ordinary_numbers(on, grown) else chain
    return chain if chain is not None and len(chain.names) > 1 else None


def _start(on: Subject, fusion: FusionDef, random: np.random.Generator) -> Chain | None:
    """A chain of a head, or one without nodes: its input."""
    heads = sorted(op for op in fusion.heads if on.candidates(op))
    if heads and (not fusion.ops or random.random() < HEAD_SHARE):
        head = _head(on, heads[int(random.integers(len(heads)))], random)
        if head is not None:
            return head
    shape = SHAPES[int(random.integers(len(SHAPES)))]
    return Chain([placeholder("x")], {"x": random.normal(size=shape).astype(np.float32)}, [])


def _head(on: Subject, op: str, random: np.random.Generator) -> Chain | None:
    """A chain of one head, by one of the op's samples; None for an op without a sample of floats that the device
    takes."""
    definition = on.host.registries.ops.get(op)
    rule = on.host.registries.ops.metadata(definition)
    every = [*samples(definition, FLOAT if varied_type(definition) else None, rule.values if rule else ())]
    for index in random.permutation(len(every))[:LONGEST]:
        sample = every[int(index)]
        tensors = definition.expand_inputs(sample.attrs)
        inputs = [f"h{i}" for i in range(len(tensors))]
        first = next((i for i, tensor in enumerate(tensors) if tensor.dtype is FLOAT), None)
        if first is None or not on.has_kernel(op, **sample.attrs) or not all(x.size for x in sample.inputs):
            continue
        nodes = [placeholder(name, t.dtype) if i == first else constant(name, x, t.dtype)
                 for i, (name, x, t) in enumerate(zip(inputs, sample.inputs, tensors, strict=True))]
        nodes.append(Node("head", op, inputs, attrs=sample.attrs, device=on.name))
        chain = Chain(nodes, {inputs[first]: sample.inputs[first]}, ["head"])
        if _has_ordinary_numbers(on, chain):
            return chain
    return None


def _grow(on: Subject, chain: Chain, op: str, name: str, random: np.random.Generator) -> Chain | None:
    """The chain with one more op, whose other operands are constants or the chain's input; None for an op of other
    types."""
    definition = on.host.registries.ops.get(op)
    attrs = first_attributes(definition, FLOAT)
    tensors = definition.expand_inputs(attrs) if attrs is not None else []
    if attrs is None or not tensors or any(tensor.dtype is not FLOAT for tensor in tensors):
        return None
    (last,) = values_of(on, chain, chain.names[-1:]) if chain.names else chain.feeds.values()
    shapes = [last.shape, last.shape[-1:], ()]
    at, inputs, nodes = int(random.integers(len(tensors))), [], []
    for i in range(len(tensors)):
        if i == at:
            inputs.append(chain.names[-1] if chain.names else "x")
            continue
        shape = shapes[int(random.integers(len(shapes)))]
        inputs.append(f"{name}/{i}")
        nodes.append(constant(inputs[-1], random.normal(size=shape).astype(np.float32)))
    nodes.append(Node(name, op, inputs, attrs=attrs, device=on.name))
    return Chain([*chain.nodes, *nodes], chain.feeds, [*chain.names, name])


def _has_ordinary_numbers(on: Subject, chain: Chain) -> bool:
    """True if the device computes the last node, alone, as floats of ordinary size and of the shape before it."""
    try:
        *before, last = values_of(on, chain, chain.names[-2:])
    except errors.HealdError:
        return False
    is_of_shape = not before or before[0].shape == last.shape
    return bool(is_of_shape and last.dtype == np.float32 and 0 < last.size <= LARGEST_HEAD_ELEMENTS
                and np.isfinite(last).all() and np.abs(last).max() <= LARGEST_NUMBER)


def values_of(on: Subject, chain: Chain, names: Sequence[str]) -> list[Array]:
    """The values of some nodes of a chain, all of which are fetched: no kernel does two of its nodes."""
    with tolerant_of_fallback(), on.session(chain.nodes) as session:
        results = dict(zip(chain.names, session.run(list(chain.names), chain.feeds), strict=True))
        return [results[name] for name in names]
