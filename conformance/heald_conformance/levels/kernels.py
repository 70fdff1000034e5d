"""Kernels: every registered kernel returns the recorded results of TensorFlow, and the results of the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

import heald
import numpy as np
from heald.api import DType, Node, dtypes, errors

from ..arrays import fixed_size_types
from ..case import sentence
from ..golden import Case, cases, disagreements
from ..launches import PATTERNS, NoLaunch, launch_sample
from ..random_chains import Chain, random_chain, values_of
from ..samples import Sample, positions, samples, varied_type
from ..subject import REFERENCE, Site, Subject, constant, placeholder, tolerant_of_fallback
from ..verdict import Broken, NotApplicable, expect_close, fail

Array = np.ndarray[Any, Any]
T = TypeVar("T")

# TensorFlow documents these ops so: an index out of range is an error on the CPU, and gives zeros on other devices.
ZEROS_OUT_OF_RANGE = ("GatherV2",)
LONGEST_RUN_SECONDS = 60.0  # seconds of a run: a kernel that waits for what never comes is an error
MOST_SHOWN_ELEMENTS = 64  # of all inputs of a case, in the text of its failure
NO_DIVISION = "Integer division by zero"  # error text of its CPU kernels; the result on other devices is undefined


class Declined(Exception):
    """No kernel of the device takes the node. Nothing was tried, so no rule is broken."""


def recorded_ops(on: Subject) -> list[str]:
    return sorted({k.op for k in on.kernels()} & cases(on.settings.recordings).keys())


def ops_and_types(on: Subject) -> Iterator[str]:
    """Yield `AddV2-float32`, or `LogicalAnd` for an op without a type attribute. Empty for the reference itself."""
    if on.here.runtime is None:
        return
    for op in sorted({k.op for k in on.kernels()}):
        attr = varied_type(on.host.registries.ops.get(op))
        if attr is None:
            yield op
        else:
            yield from (f"{op}-{dtype.name}" for dtype in fixed_size_types() if takes(on, op, attr, dtype))


def takes(on: Subject, op: str, attr: str, dtype: DType) -> bool:
    """True if the op and a kernel of the device take this type. A kernel that takes any type is tried with a few."""
    allowed = on.host.registries.ops.get(op).attrs[attr].allowed or dtypes.ALL
    few = {dtypes.float32, dtypes.int32}.intersection(allowed) or allowed
    declared = [k.dtypes.get(attr) for k in on.candidates(op)]
    return dtype in allowed and any(dtype in (few if types is None else types) for types in declared)


@sentence(over=lambda on: sorted(on.kernels_of_unknown_ops()))
def a_kernel_is_for_an_op_that_exists(on: Subject, op: str) -> None:
    """Fails for each kernel whose op no plugin brings. There is no case where every op exists."""
    kernel, hint = on.kernels_of_unknown_ops()[op]
    raise Broken(f"plugin {kernel.pack}: kernel for '{op}': no such op; {hint}", rule="kernels",
                 expected="the name of a registered op", got=f"kernels.kernel('{op}')")


@sentence(over=recorded_ops)
def a_kernel_agrees_with_tensorflow(on: Subject, op: str) -> None:
    """Runs TensorFlow's recorded cases of the op that a kernel of the device takes."""
    wrong, reasons, tried = [], set(), 0
    recorded = cases(on.settings.recordings)[op]
    for case in some(on, recorded, 4):
        for fed in ways_to_feed(on, len(case.inputs), read(on, case)):
            try:
                got = outputs(on, case, fed)
            except Declined as declined:
                reasons.add(str(declined))
                continue
            tried += not isinstance(got, errors.HealdError)
            differences = [] if may_succeed_on_device(on, case, got) else disagreements(case, got)
            wrong += [f"{line} ({fed_text(fed)}, attributes {case.attrs}{small_inputs(case.inputs)})"
                      for line in differences]
    if wrong:
        count = "once" if len(wrong) == 1 else f"{len(wrong)} times"
        raise Broken(f"{op} gives something else than TensorFlow, {count}", rule="kernels",
                     expected="what TensorFlow gave", got="\n            ".join(wrong[:5]))
    check_any_tried(tried, reasons or {"errors only"},
                    f"none of {len(recorded)} recorded cases of {op} is for its kernels")


@sentence(over=ops_and_types)
def a_kernel_agrees_with_the_cpu(on: Subject, op: str) -> None:
    """Runs the op with random inputs of many shapes and attributes, on the device and on CPU:0."""
    name, _, type_name = op.partition("-")
    registries = on.host.registries
    definition = registries.ops.get(name)
    rule = registries.ops.metadata(definition)
    refusals, reasons, tried = [], set(), 0
    dtype = dtypes.named(type_name) if type_name else None
    read_inputs = rule.values if rule else ()
    every_sample = list(samples(definition, dtype, read_inputs, on.settings.recordings))
    for sample in some(on, served_samples(on, name, every_sample) or every_sample, 8):
        feedings = ways_to_feed(on, len(sample.inputs), sample.read, sample.settings)
        try:
            want = apply(on, name, sample, on.reference, feedings[0])
        except (Declined, errors.HealdError) as refused:
            refusals.append(str(refused))
            continue  # a sample that the reference refuses is ignored
        for fed in feedings:
            try:
                results = apply(on, name, sample, on.here, fed)
            except Declined as declined:
                reasons.add(str(declined))
                continue
            except errors.HealdError as error:
                fail(f"{name}{sample}, which {REFERENCE} takes", error, rule="kernels",
                     expected="its result, or a bind that declines")
            tried += 1
            for index, (g, w) in enumerate(zip(results, want, strict=True)):
                expect_close(g, w, tolerance(on, sample, w), f"output {index} of {name}{sample}, {fed_text(fed)}",
                             "kernels")
    if not reasons:
        check_any_tried(tried, set(refusals[:1]), f"{REFERENCE} takes no sample of {name}")
    check_any_tried(tried, reasons, f"no sample of {name} that {REFERENCE} takes is for its kernels")


class LaunchOutcomes(NamedTuple):
    """The broken rules that launches of an op's kernels showed.

    `tried`: the number of launches; `reasons`: the reasons for which samples were not launched.
    """

    unwritten: list[Broken]
    returned: list[Broken]
    changed: list[Broken]
    reasons: set[str]
    tried: int


def launched_ops(on: Subject) -> list[str]:
    """The ops whose kernels write their outputs. The reference has all ops, so its quick form takes some of them."""
    ops = sorted({k.op for k in on.kernels() if not k.returns})
    return some(on, ops, 25) if on.here.runtime is None else ops


@sentence(over=launched_ops)
def a_kernel_writes_every_element_of_its_outputs(on: Subject, op: str) -> None:
    """Compares outputs in buffers that held one pattern with outputs in buffers that held the other."""
    report(launch_outcomes(on, op), launch_outcomes(on, op).unwritten, op)


@sentence(over=launched_ops)
def a_kernel_returns_no_array_in_place_of_its_outputs(on: Subject, op: str) -> None:
    report(launch_outcomes(on, op), launch_outcomes(on, op).returned, op)


@sentence(over=launched_ops)
def a_kernel_leaves_its_inputs_as_they_are(on: Subject, op: str) -> None:
    report(launch_outcomes(on, op), launch_outcomes(on, op).changed, op)


def report(what: LaunchOutcomes, wrong: Sequence[Broken], op: str) -> None:
    for first in wrong:
        raise first
    check_any_tried(what.tried, what.reasons, f"no kernel of {op} was launched")


@cache
def launch_outcomes(on: Subject, op: str) -> LaunchOutcomes:
    """Launch the op's kernels with a few samples of each type. The result is cached, for three cases use it."""
    unwritten, returned, changed, reasons, tried = [], [], [], set(), 0
    for sample, feedings in launch_samples(on, op):
        what = f"{op}{sample}, {fed_text(feedings[0])}"
        try:
            outputs, inputs = launch_sample(on, op, sample, feedings[0])
        except errors.PluginError as error:
            returned.append(Broken(what, expected="None, or an output", got=error, rule="kernels.outputs"))
            continue
        except (NoLaunch, errors.HealdError) as error:
            reasons.add(str(error))
            continue
        tried += 1
        patterns = " and ".join(f"0x{pattern:X}" for pattern in PATTERNS)
        try:
            for index, (a, b) in enumerate(zip(*outputs, strict=True)):
                expect_close(b, a, tolerance(on, sample, a), f"output {index} of {what}, in buffers of {patterns}",
                             "kernels.outputs")
        except Broken as broken:
            unwritten.append(broken)
        changed += [Broken(f"input {i} of {what}", expected="the bytes that it had", got="others",
                           rule="kernels.inputs") for i in inputs]
    return LaunchOutcomes(unwritten, returned, changed, reasons, tried + len(returned))


def launch_samples(on: Subject, op: str) -> Iterator[tuple[Sample, list[frozenset[int]]]]:
    """Some samples of each type that the device's kernels take, with the ways to feed them."""
    definition = on.host.registries.ops.get(op)
    rule, attr = on.host.registries.ops.metadata(definition), varied_type(definition)
    types = [None] if attr is None else [d for d in fixed_size_types() if takes(on, op, attr, d)]
    for dtype in types[: on.size(len(types), 2)]:
        candidates = samples(definition, dtype, rule.values if rule else (), on.settings.recordings)
        full = [sample for sample in candidates if all(x.size for x in sample.inputs)]
        for sample in (served_samples(on, op, full) or full)[: on.size(8, 1)]:
            yield sample, ways_to_feed(on, len(sample.inputs), sample.read, sample.settings)


def served_samples(on: Subject, op: str, every: list[Sample]) -> list[Sample]:
    """The samples whose attributes a kernel takes: a device may register the inference form of an op alone."""
    return [sample for sample in every if on.has_kernel(op, **sample.attrs)]


def may_succeed_on_device(on: Subject, case: Case, got: Sequence[Array] | errors.HealdError) -> bool:
    """True if the result is allowed where TensorFlow's CPU kernels raise.

    A device may compute a case that they call Unimplemented. Devices with memory of their own cannot check elements.
    """
    if isinstance(got, errors.HealdError):
        return False
    if case.code == errors.Unimplemented.code and on.here.name != REFERENCE:
        return True
    if on.host_visible:
        return False
    if case.op in ZEROS_OUT_OF_RANGE and "is not in [" in case.message:
        return not any(array.any() for array in got)
    return NO_DIVISION.lower() in case.message.lower()


def some(on: Subject, everything: list[T], few: int) -> list[T]:
    """The whole list; in the quick suite, at least `few` elements at equal distances."""
    return everything[:: max(1, len(everything) // on.size(len(everything) or 1, few))]


def tolerance(on: Subject, sample: Sample, want: Array) -> tuple[float, float]:
    """The tolerance of the output's type, or of an input's type where that is larger."""
    names = {want.dtype.name} if want.dtype.kind in "iub" else {want.dtype.name, *(x.dtype.name for x in sample.inputs)}
    return max(on.settings.tolerance(name) for name in names)


def check_any_tried(tried: int, reasons: set[str], what: str) -> None:
    if not tried:
        raise NotApplicable(f"{what}: {'; '.join(sorted(reasons)[:3]) or 'there is none'}")


def ways_to_feed(
    on: Subject, count: int, read: frozenset[int], settings: frozenset[int] = frozenset()
) -> list[frozenset[int]]:
    """Sets of inputs to feed; all other inputs are constants.

    The sets are: all inputs but settings, the first of these, and all inputs. An input that metadata reads is fed to
    devices in host memory only, for kernels of other devices cannot be bound without its elements.
    """
    everything = frozenset(range(count))
    usual = everything - read
    numbers = usual - settings or usual
    feedings = [numbers, frozenset(sorted(numbers)[:1]), usual, *([everything] if on.host_visible else [])]
    return list(dict.fromkeys(feedings))


def small_inputs(inputs: Sequence[Array]) -> str:
    """The values of a case's inputs for its failure, empty where they are too many to read."""
    if sum(array.size for array in inputs) > MOST_SHOWN_ELEMENTS:
        return ""
    return "".join(f", input {i} {' '.join(repr(array).split())}" for i, array in enumerate(inputs))


def fed_text(fed: frozenset[int]) -> str:
    return f"fed: {', '.join(f'input {i}' for i in sorted(fed)) or 'nothing'}"


def apply(on: Subject, op: str, sample: Sample, site: Site, fed: frozenset[int]) -> list[Array]:
    """The op's outputs on a site's device. Inputs that are not in `fed` are constants."""
    tensors = on.host.registries.ops.get(op).expand_inputs(sample.attrs)
    nodes = [placeholder(f"i{i}", t.dtype) if i in fed else constant(f"i{i}", x, t.dtype)
             for i, (x, t) in enumerate(zip(sample.inputs, tensors, strict=True))]
    nodes.append(Node("op", op, [node.name for node in nodes], attrs=sample.attrs, device=site.name))
    return fetch_outputs(on, nodes, {f"i{i}": sample.inputs[i] for i in fed}, site)


def read(on: Subject, case: Case) -> frozenset[int]:
    """The inputs of a recorded case that its op's metadata function reads."""
    op = on.host.registries.ops.get(case.op)
    rule = on.host.registries.ops.metadata(op)
    return positions(op, case.graph().nodes["op"].attrs, rule.values) if rule else frozenset()


def outputs(on: Subject, case: Case, fed: frozenset[int]) -> Sequence[Array] | errors.HealdError:
    """The outputs, or the error, of a recorded case's node on the device."""
    graph = case.graph()
    nodes = dict(graph.nodes)
    nodes["op"] = nodes["op"].replace(device=on.name)
    for i, x in enumerate(case.inputs):
        if i not in fed:
            nodes[f"i{i}"] = constant(f"i{i}", x, graph.nodes[f"i{i}"].attrs["dtype"])
    try:
        return fetch_outputs(on, list(nodes.values()), {f"i{i}": case.inputs[i] for i in fed}, on.here)
    except errors.HealdError as error:
        return error


def fetch_outputs(on: Subject, nodes: Sequence[Node], feeds: dict[str, Array], site: Site) -> list[Array]:
    """The outputs of node `op`. Raises Declined if it does not run on the device, or not by a kernel under test, and
    the node's own error."""
    with tolerant_of_fallback(), site.session(nodes) as session:
        entry = session.nodes["op"]
        if isinstance(entry, errors.HealdError):
            raise entry
        names = [f"op:{i}" for i in range(len(entry.output_tensors))]
        metadata = heald.RunMetadata()
        try:
            options = heald.RunOptions(timeout=LONGEST_RUN_SECONDS, trace=True)
            results: list[Array] = session.run(names, feeds, targets=() if names else ["op"], options=options,
                                               metadata=metadata)
        except (errors.Unimplemented, errors.PermissionDenied) as error:  # the latter: an op that opens files
            raise Declined(error.message) from None
        except errors.InvalidArgument as error:
            if not runs_there(session, site.name):
                raise Declined(error.message) from None
            raise
        if not runs_there(session, site.name):
            raise Declined("; ".join(f"{who}: {why}" for who, why in session.placement()["op"].refused) or "elsewhere")
        if site is on.here and not has_run(session, metadata):
            raise Declined("the results are known before the run: no kernel is called")
        kernel = session.placement()["op"].kernel
        if kernel is not None and on.pack is not None and (kernel.pack == on.pack) != (site is on.here):
            raise Declined(f"the kernel of {kernel.pack} serves it on {site.name}")
        return results


def has_run(session: heald.Session, metadata: heald.RunMetadata) -> bool:
    """True if a kernel was called for node `op`, or needs no call because its output is the buffer of an input."""
    kernel = session.placement()["op"].kernel
    called = any(event.call.node == "op" for event in metadata.trace.events) if metadata.trace else False
    return called or bool(kernel and kernel.alias)


def runs_there(session: heald.Session, device: str) -> bool:
    return session.placement()["op"].device == device


def fusions_and_ops(on: Subject) -> Iterator[str]:
    """Yield `Elementwise-Tanh`: each fusion of the device's packs with each op that it takes."""
    if on.here.runtime is None:
        return
    for pack in sorted({k.pack for k in on.kernels()}):
        for fusion in on.host.registries.kernels.fusions(on.type, pack):
            yield from (f"{fusion.kernel.op}-{op}" for op in sorted(fusion.ops | fusion.heads))


@sentence(over=fusions_and_ops)
def a_fused_kernel_agrees_with_the_cpu(on: Subject, fusion_and_op: str) -> None:
    """Fuses the op with an addition of a vector that broadcasts, a comparison with zero, and a subtraction."""
    _, _, name = fusion_and_op.partition("-")
    definition = on.host.registries.ops.get(name)
    attr = varied_type(definition)
    reasons, tried = set(), 0
    for sample in some(on, list(samples(definition, dtypes.float32 if attr else None, ())), 8):
        try:
            want = fetch_followed_op(on, name, sample, on.reference)
        except (Declined, errors.HealdError):
            continue  # the ops that follow take float32, and shapes that broadcast
        try:
            got = fetch_followed_op(on, name, sample, on.here)
        except Declined as declined:
            reasons.add(str(declined))
            continue
        tried += 1
        expect_close(got[0], want[0], tolerance(on, sample, want[0]), f"{name}{sample} and what follows", "kernels")
    check_any_tried(tried, reasons, f"no sample of {name} that {REFERENCE} takes is for its kernels")


def fetch_followed_op(on: Subject, op: str, sample: Sample, site: Site) -> list[Array]:
    """Relu(vector + op(...)) - x on a site's device, where x has the shape of the op's result."""
    device = site.name
    inputs = [f"i{i}" for i in range(len(sample.inputs))]
    tensors = on.host.registries.ops.get(op).expand_inputs(sample.attrs)
    nodes = [placeholder("i0", tensors[0].dtype)]
    nodes += [constant(n, x, t.dtype) for n, x, t in zip(inputs[1:], sample.inputs[1:], tensors[1:], strict=True)]
    nodes.append(Node("first", op, inputs, attrs=sample.attrs, device=device))
    feeds = {"i0": sample.inputs[0]}
    shape = fetch_outputs(on, [*nodes, nodes[-1].replace(name="op")], feeds, site)[0].shape
    feeds["x"] = np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    vector = np.linspace(-2, 2, shape[-1] if shape else 1, dtype=np.float32)
    floats = {"T": dtypes.float32}
    nodes += [
        placeholder("x"), constant("vector", vector if shape else vector[0]),
        Node("sum", "AddV2", ["vector", "first"], attrs=floats, device=device),
        Node("relu", "Relu", ["sum"], attrs=floats, device=device),
        Node("op", "Sub", ["relu", "x"], attrs=floats, device=device),
    ]
    return fetch_outputs(on, nodes, feeds, site)


def fusions_and_seeds(on: Subject) -> Iterator[str]:
    """Yield `Elementwise-0`, ...: each fusion of the packs under test with the seeds of its chains."""
    for pack in sorted({k.pack for k in on.kernels()}):
        for fusion in on.host.registries.kernels.fusions(on.type, pack):
            yield from (f"{pack}.{fusion.kernel.op}-{seed}" for seed in range(on.size(12, 3)))


@sentence(over=fusions_and_seeds)
def a_random_chain_is_the_same_with_fusions_and_without(on: Subject, fusion_and_seed: str) -> None:
    """Runs a chain of a fusion's declared ops twice: with its last value fetched alone, and with every value fetched,
    which leaves no two nodes to one kernel."""
    name, _, seed = fusion_and_seed.rpartition("-")
    pack, _, op = name.partition(".")
    (fusion,) = [f for f in on.host.registries.kernels.fusions(on.type, pack) if f.kernel.op == op]
    chain = random_chain(on, fusion, seed)
    if chain is None:
        raise NotApplicable(f"the device has no chain of float32 for the fusion {name}")
    texts = []
    for length in range(len(chain.names), 1, -1):  # a kernel may take less than the whole
        part = chain._replace(names=chain.names[:length])
        groups = compare_chain(on, part)
        texts = [" ".join(node.op for node in chain.nodes if node.name in part.names)]
        if name in groups:
            return
    raise NotApplicable(f"the fusion {name} takes nothing of the chain {texts[0]}, nor of longer ones of the seed")


def compare_chain(on: Subject, chain: Chain) -> set[str]:
    """Compare the last value of a chain with fusions and without. Returns the names of the kernels of several nodes."""
    single = values_of(on, chain, chain.names)
    with tolerant_of_fallback(), on.session(chain.nodes) as session:
        metadata = heald.RunMetadata()
        options = heald.RunOptions(timeout=LONGEST_RUN_SECONDS, trace=True)
        (fused,) = session.run(chain.names[-1:], chain.feeds, options=options, metadata=metadata)
        calls = [event.call for event in metadata.trace.events if event.call.fused] if metadata.trace else []
    relative, absolute = on.settings.tolerance("float32")
    scale = len(chain.names) * float(max(1.0, *(np.abs(value).max() for value in single)))
    groups = " and ".join(f"{call.code} of {', '.join(call.fused)}" for call in calls)
    ops = ", ".join(f"{node.name} = {node.op}" for node in chain.nodes if node.name in chain.names)
    expect_close(fused, single[-1], (relative * len(chain.names), absolute * scale),
                 f"the chain {ops}, with {groups or 'no fusion'}, against its nodes one by one", "kernels")
    return {call.code for call in calls}
