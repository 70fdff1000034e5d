"""The ops that the compiler itself interprets, by role and by name, with their signatures.

Core names no other op: plugins declare the rest. A plugin's op set may declare these ops too, with equal signatures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...errors import InvalidArgument
from ..support.records import NamedTuple
from ..values import dtypes
from ..values.dtypes import DType
from . import structural_metadata as rules
from .op import MetadataFunction, OpDef
from .op_spec import OpSpec

CONST = "Const"
NO_OP = "NoOp"
PLACEHOLDER = "Placeholder"
IDENTITY, IDENTITY_N = "Identity", "IdentityN"
ARG, RETVAL = "_Arg", "_Retval"
SEND, RECV, HOST_SEND, HOST_RECV = "_Send", "_Recv", "_HostSend", "_HostRecv"
MUST_FEED = frozenset({PLACEHOLDER, "PlaceholderV2"})  # placeholders that have no value of their own
PLACEHOLDERS = MUST_FEED | {"PlaceholderWithDefault"}
VALUELESS = frozenset({CONST, NO_OP, *MUST_FEED})  # their outputs are no results of a model
FRAME_OP = "_Frame"  # a loop in general form: `body` is one iteration, whose values may be dead
IF, STATELESS_IF, WHILE, STATELESS_WHILE = "If", "StatelessIf", "While", "StatelessWhile"
CASE, STATELESS_CASE = "Case", "StatelessCase"
IFS, CASES, WHILES = map(frozenset, ((IF, STATELESS_IF), (CASE, STATELESS_CASE), (WHILE, STATELESS_WHILE)))
CALL, STATEFUL_CALL = "PartitionedCall", "StatefulPartitionedCall"
BATCH_CALL = "BatchFunction"  # TensorFlow joins calls of several requests in it; here each call is a batch of its own
CALLS = frozenset({CALL, STATEFUL_CALL, BATCH_CALL})


class OfElements(NamedTuple):
    """The function of an op on datasets: (state..., components of an element..., captured values...) -> (results...).

    `results`: the types of the results, or the attributes that list them.
    `state`: the attribute that lists the types of the state; "" without one.
    `passed`: the attributes that the host kernel receives.
    """

    results: tuple[DType | str, ...]
    state: str = ""
    passed: tuple[str, ...] = ("output_types", "output_shapes")


class ControlFlow(NamedTuple):
    """An op that calls functions of the graph.

    `code`: the host kernel that does it.
    `functions`: the attributes that name functions.
    `leading`: the number of inputs in front of the functions' arguments.
    `extra`: the number of arguments that the kernel itself adds in front of these.
    `is_loop`: True when the functions are called again with their own results.
    `trailing`: the number of inputs behind the functions' arguments.
    `elements`: the form of a function that is called with the elements of a dataset.
    """

    code: str
    functions: tuple[str, ...]
    leading: int = 0
    extra: int = 0
    is_loop: bool = False
    trailing: int = 0
    elements: OfElements | None = None


_CALL_CONTROL_FLOW = ControlFlow("heald.call", ("f",))
_IF_CONTROL_FLOW = ControlFlow("heald.if", ("then_branch", "else_branch"), leading=1)
_CASE_CONTROL_FLOW = ControlFlow("heald.case", ("branches",), leading=1)
_WHILE_CONTROL_FLOW = ControlFlow("heald.while", ("cond", "body"), is_loop=True)
_TYPES = "output_types"
REDUCTION_CODE = "dataset.reduce"
_CHOICE, _EXPANSION = OfElements((dtypes.bool_,)), OfElements((dtypes.variant,))
_MAP = OfElements((_TYPES,), passed=(*_CHOICE.passed, "preserve_cardinality"))
_SCAN = OfElements(("Tstate", _TYPES), "Tstate", (*_MAP.passed, "Tstate"))
_REDUCTION = OfElements(("Tstate",), "Tstate", (*_CHOICE.passed, "Tstate"))
_FACTORY = OfElements((dtypes.variant,), passed=(*_CHOICE.passed, "container", "shared_name"))
# Ops on datasets, whose kernels a plugin has. A run calls their functions later, for each element that it asks for.
_DATASETS: Mapping[str, ControlFlow] = {
    "MapDataset": ControlFlow("dataset.map", ("f",), 1, elements=_MAP),
    "ParallelMapDataset": ControlFlow("dataset.map", ("f",), 1, trailing=1, elements=_MAP),
    "ParallelMapDatasetV2": ControlFlow("dataset.map", ("f",), 1, trailing=1, elements=_MAP),
    "FilterDataset": ControlFlow("dataset.filter", ("predicate",), 1, elements=_CHOICE),
    "TakeWhileDataset": ControlFlow("dataset.take_while", ("predicate",), 1, elements=_CHOICE),
    "FlatMapDataset": ControlFlow("dataset.flat_map", ("f",), 1, elements=_EXPANSION),
    "InterleaveDataset": ControlFlow("dataset.interleave", ("f",), 1, trailing=2, elements=_EXPANSION),
    "ParallelInterleaveDatasetV2": ControlFlow("dataset.interleave", ("f",), 1, trailing=3, elements=_EXPANSION),
    "ParallelInterleaveDatasetV3": ControlFlow("dataset.interleave", ("f",), 1, trailing=3, elements=_EXPANSION),
    "ParallelInterleaveDatasetV4": ControlFlow("dataset.interleave", ("f",), 1, trailing=5, elements=_EXPANSION),
    "ScanDataset": ControlFlow("dataset.scan", ("f",), 1, elements=_SCAN),
    "ReduceDataset": ControlFlow(REDUCTION_CODE, ("f",), 1, elements=_REDUCTION),
    "OneShotIterator": ControlFlow("dataset.one_shot_iterator", ("dataset_factory",), elements=_FACTORY),
}
CONTROL_FLOW: Mapping[str, ControlFlow] = {
    **dict.fromkeys((CALL, STATEFUL_CALL, BATCH_CALL), _CALL_CONTROL_FLOW),
    **dict.fromkeys(IFS, _IF_CONTROL_FLOW), **dict.fromkeys(CASES, _CASE_CONTROL_FLOW),
    **dict.fromkeys(WHILES, _WHILE_CONTROL_FLOW),
    "For": ControlFlow("heald.for", ("body",), leading=3, extra=1, is_loop=True),
    FRAME_OP: ControlFlow("heald.frame", ("body",)),
    **_DATASETS,
}
CHAIN_CODES = frozenset({"tfrt.new.chain", "tfrt.merge.chains"})  # calls that never return results that come later
KEEPING_CODES = frozenset(flow.code for flow in _DATASETS.values())  # calls whose arguments are read after they return

# The control flow of TensorFlow 1. An op on references does the same as the plain op.
SWITCH, MERGE, ENTER, EXIT, NEXT_ITERATION = "Switch", "Merge", "Enter", "Exit", "NextIteration"
SWITCHES = frozenset({SWITCH, "RefSwitch"})
SWITCH_N = "_SwitchN"  # one of `num_outs` outputs is alive: TensorFlow lowers Case to it
MERGES = frozenset({MERGE, "RefMerge"})
ENTERS = frozenset({ENTER, "RefEnter"})
EXITS = frozenset({EXIT, "RefExit"})
NEXT_ITERATIONS = frozenset({NEXT_ITERATION, "RefNextIteration"})  # their outputs are for the next iteration
LOOP_COND = "LoopCond"
V1_CONTROL_FLOW = SWITCHES | {SWITCH_N} | MERGES | ENTERS | EXITS | NEXT_ITERATIONS | {LOOP_COND}
CONTROL_TRIGGER = "ControlTrigger"  # waits for its control inputs, and is alive even if they are dead
SWITCH_CODE, SWITCH_N_CODE, MERGE_CODE = "heald.switch", "heald.switch_n", "heald.merge"
DEAD_VALUES: Mapping[str, str] = {  # ops that give dead values, or live ones in spite of them: their host kernels
    **dict.fromkeys(SWITCHES, SWITCH_CODE), SWITCH_N: SWITCH_N_CODE, **dict.fromkeys(MERGES, MERGE_CODE),
    CONTROL_TRIGGER: "heald.trigger"}

# iterators, which have no elements before a node of the op MAKE_ITERATOR starts them
ITERATORS = frozenset({"Iterator", "IteratorV2", "AnonymousIterator", "AnonymousIteratorV2", "AnonymousIteratorV3"})
MAKE_ITERATOR = "MakeIterator"

SENDS, RECVS = frozenset({"_Send", "_HostSend"}), frozenset({"_Recv", "_HostRecv"})  # through the step's rendezvous
SEND_CODE, RECV_CODE = "heald.send", "heald.recv"

# the runtime itself serves these
NO_KERNEL = frozenset({CONST, PLACEHOLDER, NO_OP, CONTROL_TRIGGER, *CONTROL_FLOW, *V1_CONTROL_FLOW, *SENDS, *RECVS})

LEGACY_SCALARS = 21  # up to this GraphDef version a placeholder of shape [] may be of any shape
DEPRECATED = {"PlaceholderV2": 23}  # the GraphDef versions from which on ops are refused

OF_SWITCHES = "_of_switches"  # marks an If or While made of Switches, whose conditions are scalars

_FALSE_TEXTS = (b"", "")


def is_true(condition: Any, *, scalar: bool = False) -> bool:
    """True for a condition by TensorFlow's rule: a number that is not 0, a text that is not empty, an array with
    elements. Switch takes scalars only: with `scalar`, an array raises InvalidArgument."""
    if condition.shape != ():
        if scalar:
            raise InvalidArgument(f"the condition of a Switch must be a scalar, but it has shape "
                                  f"{list(condition.shape)}")
        return bool(condition.size)
    value = condition.item()
    return value not in _FALSE_TEXTS if isinstance(value, bytes | str) else bool(value)


def branch(branches: Sequence[Any], index: Any) -> Any:
    """Return the branch with this index, the last one for an index out of range.

    Raises InvalidArgument for an index that is not a scalar, and where there is no branch.
    """
    if not branches:
        raise InvalidArgument("a Case needs a branch, a Switch an output, and it has none")
    if index.shape != ():
        raise InvalidArgument(f"the index of a Case must be a scalar, but it has shape {list(index.shape)}")
    number = int(index)
    return branches[number if 0 <= number < len(branches) else -1]


METADATA_FUNCTIONS: Mapping[str, MetadataFunction] = {
    IDENTITY: rules.same, "PlaceholderWithDefault": rules.placeholder_with_default,
    **dict.fromkeys(SWITCHES, rules.switch), SWITCH_N: rules.switch_n, **dict.fromkeys(MERGES, rules.merge),
    **dict.fromkeys(ENTERS, rules.enter), **dict.fromkeys(EXITS | NEXT_ITERATIONS, rules.passed_on),
    LOOP_COND: rules.loop_cond,
    **dict.fromkeys((IF, STATELESS_IF, WHILE, STATELESS_WHILE, CASE, STATELESS_CASE), rules.declared_outputs),
}

_TRANSFER = ("tensor_name: string", "send_device: string", "send_device_incarnation: int", "recv_device: string",
             "client_terminated: bool = false")
_FRAME = ("T: type", "frame_name: string", "is_constant: bool = false", "parallel_iterations: int = 10")
_INDEXED = ("T: type", "index: int >= 0")
_LISTS = ("Tin: list(type) >= 0", "Tout: list(type) >= 0")
_SHAPES = "output_shapes: list(shape) = []"
_IF = ("Tcond: type", *_LISTS, "then_branch: func", "else_branch: func", _SHAPES)
_WHILE = ("T: list(type) >= 0", "cond: func", "body: func", _SHAPES, "parallel_iterations: int = 10")
_GENERAL = ("T: list(type) >= 0", "Tout: list(type) >= 0", "body: func", "variables: int >= 0")
_CASE = (*_LISTS, "branches: list(func) >= 1", _SHAPES)
_CALL = (*_LISTS, "f: func", "config: string = ''", "config_proto: string = ''", "executor_type: string = ''")
_BATCH_CALL = (
    "f: func", "num_batch_threads: int", "max_batch_size: int", "batch_timeout_micros: int",
    "max_enqueued_batches: int = 10", "allowed_batch_sizes: list(int) = []", "container: string = ''",
    "shared_name: string = ''", "batching_queue: string = ''", "low_priority_max_batch_size: int = 0",
    "low_priority_batch_timeout_micros: int = 0", "low_priority_allowed_batch_sizes: list(int) = []",
    "low_priority_max_enqueued_batches: int = 0",
    "mixed_priority_policy: {'low_priority_padding_with_max_batch_size', "
    "'low_priority_padding_with_next_allowed_batch_size', 'priority_isolation', 'priority_merge'} = "
    "'low_priority_padding_with_max_batch_size'",
    "batch_padding_policy: {'PAD_UP', 'BATCH_DOWN', 'MINIMIZE_TPU_COST_PER_REQUEST'} = 'PAD_UP'",
    "Tin: list(type) >= 1", "Tcaptured: list(type) >= 0", "Tout: list(type) >= 1",
    "enable_large_batch_splitting: bool = false",
)

_SPECS = {spec.name: spec for spec in (
    OpSpec(CONST, (), ["output: dtype"], ["value: tensor", "dtype: type"]),
    OpSpec(PLACEHOLDER, (), ["output: dtype"], ["dtype: type", "shape: shape = None"]),
    OpSpec("PlaceholderV2", (), ["output: dtype"], ["dtype: type", "shape: shape"]),
    OpSpec("PlaceholderWithDefault", ["input: dtype"], ["output: dtype"], ["dtype: type", "shape: shape"]),
    OpSpec(NO_OP),
    OpSpec(IDENTITY, ["input: T"], ["output: T"], ["T: type"]),
    OpSpec(IDENTITY_N, ["input: T"], ["output: T"], ["T: list(type) >= 1"]),

    OpSpec(ARG, (), ["output: T"], _INDEXED, stateful=True),
    OpSpec("_DeviceArg", (), ["output: T"], _INDEXED, stateful=True),
    OpSpec(RETVAL, ["input: T"], (), _INDEXED, stateful=True),
    OpSpec("_DeviceRetval", ["input: T"], (), _INDEXED, stateful=True),
    OpSpec(SEND, ["tensor: T"], (), ["T: type", *_TRANSFER], stateful=True),
    OpSpec(HOST_SEND, ["tensor: T"], (), ["T: type", *_TRANSFER], stateful=True),
    OpSpec(RECV, (), ["tensor: tensor_type"], ["tensor_type: type", *_TRANSFER], stateful=True),
    OpSpec(HOST_RECV, (), ["tensor: tensor_type"], ["tensor_type: type", *_TRANSFER], stateful=True),

    OpSpec("Switch", ["data: T", "pred: bool"], ["output_false: T", "output_true: T"], ["T: type"]),
    OpSpec("RefSwitch", ["data: Ref(T)", "pred: bool"], ["output_false: Ref(T)", "output_true: Ref(T)"], ["T: type"]),
    OpSpec(SWITCH_N, ["data: T", "output_index: int32"], ["outputs: num_outs * T"], ["num_outs: int >= 1", "T: type"]),
    OpSpec("Merge", ["inputs: N * T"], ["output: T", "value_index: int32"], ["T: type", "N: int >= 1"]),
    OpSpec("RefMerge", ["inputs: N * Ref(T)"], ["output: Ref(T)", "value_index: int32"], ["T: type", "N: int >= 1"]),
    OpSpec("Enter", ["data: T"], ["output: T"], _FRAME),
    OpSpec("RefEnter", ["data: Ref(T)"], ["output: Ref(T)"], _FRAME),
    OpSpec("Exit", ["data: T"], ["output: T"], ["T: type"]),
    OpSpec("RefExit", ["data: Ref(T)"], ["output: Ref(T)"], ["T: type"]),
    OpSpec("NextIteration", ["data: T"], ["output: T"], ["T: type"]),
    OpSpec("RefNextIteration", ["data: Ref(T)"], ["output: Ref(T)"], ["T: type"]),
    OpSpec("LoopCond", ["input: bool"], ["output: bool"]),
    OpSpec(CONTROL_TRIGGER),

    OpSpec("If", ["cond: Tcond", "input: Tin"], ["output: Tout"], _IF, stateful=True),
    OpSpec("StatelessIf", ["cond: Tcond", "input: Tin"], ["output: Tout"], _IF),
    OpSpec("While", ["input: T"], ["output: T"], _WHILE, stateful=True),
    OpSpec("StatelessWhile", ["input: T"], ["output: T"], _WHILE),
    OpSpec("Case", ["branch_index: int32", "input: Tin"], ["output: Tout"], _CASE, stateful=True),
    OpSpec("StatelessCase", ["branch_index: int32", "input: Tin"], ["output: Tout"], _CASE),
    OpSpec(FRAME_OP, ["input: T"], ["output: Tout"], _GENERAL, stateful=True),
    OpSpec("For", ["start: int32", "limit: int32", "delta: int32", "input: T"], ["output: T"],
           ["T: list(type) >= 0", "body: func"]),

    OpSpec("PartitionedCall", ["args: Tin"], ["output: Tout"], _CALL),
    OpSpec("StatefulPartitionedCall", ["args: Tin"], ["output: Tout"], _CALL, stateful=True),
    OpSpec(BATCH_CALL, ["in_tensors: Tin", "captured_tensors: Tcaptured"], ["out_tensors: Tout"], _BATCH_CALL),
)}


class _Ops(Mapping[str, OpDef]):
    """The ops by name. Each is read from its notation when it is asked for."""

    def __getitem__(self, name: str) -> OpDef:
        definition = _SPECS[name].definition()
        return definition._replace(metadata=METADATA_FUNCTIONS.get(name), deprecated=DEPRECATED.get(name))

    def __contains__(self, name: object) -> bool:
        return name in _SPECS

    def __iter__(self) -> Iterator[str]:
        return iter(_SPECS)

    def __len__(self) -> int:
        return len(_SPECS)


OPS: Mapping[str, OpDef] = _Ops()
