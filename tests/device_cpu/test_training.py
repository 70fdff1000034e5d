"""Optimizers on resource variables. tests/data/optimizers.json has what the ops of tensorflow-cpu 2.21, called one by
one, made of the same variables in three steps: arrays of shape [2,8] in base64. Complex ones begin with, and are given,
1+0.5j times the numbers."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import heald
import ml_dtypes
import numpy as np
import pytest
from builders.graphs import const, graph
from harness.run_op import REGISTRIES
from harness.threads import in_threads
from heald.errors import FailedPrecondition, InvalidArgument
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.node import Node
from heald.runtime.values import dtypes
from heald_cpu.kernels import training

DATA = json.loads((Path(__file__).parent.parent / "data" / "optimizers.json").read_text("utf-8"))
OPS = sorted({case["op"] for case in DATA["cases"]})
ROUNDED_OTHERWISE = frozenset(f"Resource{op}" for op in (  # where TensorFlow approximates 1/sqrt, pow and exp
    "ApplyAdadelta", "ApplyAdagrad", "ApplyPowerSign", "ApplyProximalAdagrad", "SparseApplyAdadelta",
    "SparseApplyAdagrad", "SparseApplyAdagradDA", "SparseApplyCenteredRMSProp", "SparseApplyFtrl", "SparseApplyFtrlV2",
    "SparseApplyProximalAdagrad", "SparseApplyRMSProp"))
Values = dict[str, Any]


def inputs_of(op: str) -> tuple[list[str], list[str]]:
    """The names of the op's variables, and of its other inputs."""
    args = REGISTRIES.ops.get(op).inputs
    variables = [arg.name for arg in args if arg.dtype is dtypes.resource]
    return variables, [arg.name for arg in args if arg.name not in variables]


class Trained:
    """A session that applies an op to variables, which begin with these values, if any. `share`: names of others."""

    def __init__(
        self, op: str, values: Values, *, is_known: bool = True, share: Values | None = None, **attrs: Any,
    ) -> None:
        self.variables, self.others = inputs_of(op)
        self.dtype = next(iter(values.values())).dtype
        self.session = heald.Session(graph(*self._nodes(op, values, is_known, share or {}, attrs)))
        self.session.run([], {f"{name}/first": x for name, x in values.items()},
                         targets=[f"{name}/assign" for name in values])

    def _nodes(self, op: str, values: Values, is_known: bool, share: Values, attrs: Values) -> Iterator[Node]:
        types: Values = {"dtype": dtypes.of_numpy(self.dtype)}
        for name in self.variables:
            shape = ShapeAttr(values[name].shape) if is_known and name in values else None
            yield Node(name, "VarHandleOp", attrs=types | {"shape": shape, "shared_name": share.get(name, name)})
            yield Node(f"{name}/first", "Placeholder", attrs=types)
            yield Node(f"{name}/assign", "AssignVariableOp", (name, f"{name}/first"), attrs=types)
            yield Node(f"{name}/read", "ReadVariableOp", (name,), attrs=types)
        for name in self.others:
            integer = {"indices": dtypes.int32, "global_step": dtypes.int64}.get(name)
            yield Node(name, "Placeholder", attrs={"dtype": integer} if integer else types)
        more = {"Tindices": dtypes.int32} if "indices" in self.others else {}
        yield Node("step", op, (*self.variables, *self.others), attrs={"T": types["dtype"]} | more | attrs)

    def step(self, **inputs: Any) -> None:
        integers = {"indices": np.int32, "global_step": np.int64}
        self.session.run([], {name: np.asarray(inputs[name], integers.get(name, self.dtype)) for name in self.others},
                         targets=["step"])

    def read(self) -> list[np.ndarray[Any, Any]]:
        variables: list[np.ndarray[Any, Any]] = self.session.run([f"{name}/read" for name in self.variables])
        return variables


def recorded_steps(case: Values) -> tuple[Values, list[Values]]:
    """The initial values of the variables, and the inputs of each step."""
    dtype = dtypes.named(case["dtype"]).numpy
    unit = 1 + 0.5j if dtype.kind == "c" else 1
    values = {name: (np.array(DATA["variables"][name]) * unit).astype(dtype) for name in inputs_of(case["op"])[0]}
    numbers = DATA["numbers"] | {"lr_power": case.get("lr_power")}
    gradients = [(np.array(x) * unit).astype(dtype) for x in DATA["steps"]["grad"]]
    return values, [numbers | {"grad": grad, "delta": grad, "indices": indices, "global_step": step}
                    for grad, indices, step in zip(gradients, *map(DATA["steps"].get, ("indices", "global_step")),
                                                   strict=True)]


@pytest.mark.parametrize("op", OPS)
def test_three_steps_give_what_tensorflow_gave(op: str) -> None:
    for case in (case for case in DATA["cases"] if case["op"] == op):
        values, steps = recorded_steps(case)
        trained = Trained(op, values, **case["attrs"])
        for step in steps:
            trained.step(**step)
        got = np.stack(trained.read())
        want = np.stack([np.frombuffer(base64.b64decode(x), got.dtype).reshape(2, 8) for x in case["after"]])
        if got.dtype.kind != "c" and op not in ROUNDED_OTHERWISE and case.get("lr_power") != -0.75:
            np.testing.assert_array_equal(got, want, str(case))
        else:
            places = 64 if case.get("lr_power") == -0.75 else 8  # differences of powers are divided by a small number
            limit = places * float(ml_dtypes.finfo(got.real.dtype).eps)
            np.testing.assert_allclose(got.astype(complex), want.astype(complex), limit, limit, err_msg=str(case))


def momentum(shape: tuple[int, ...] = (4, 2), **options: Any) -> Trained:
    """Of 1 and 2, which goes as the rate does."""
    return Trained("ResourceApplyMomentum", {"var": np.ones(shape, np.float32), "accum": np.full(shape, 2, np.float32)},
                   **options)


def rows_of(op: str = "Momentum", shape: tuple[int, ...] = (4, 2), **options: Any) -> Trained:
    return Trained(f"ResourceSparseApply{op}", {"var": np.ones(shape, np.float32), "accum": np.ones(shape, np.float32)},
                   **options)


def test_rows_that_are_named_several_times_are_updated_one_after_the_other() -> None:
    gradients, indices = np.arange(10, dtype=np.float32).reshape(5, 2) - 3, [3, 1, 3, 3, 0]
    together, single = rows_of(), rows_of()
    together.step(lr=0.5, grad=gradients, indices=indices, momentum=0.9)
    for row, gradient in zip(indices, gradients, strict=True):
        single.step(lr=0.5, grad=[gradient], indices=[row], momentum=0.9)
    np.testing.assert_array_equal(together.read(), single.read())
    assert (together.read()[0][2] == 1).all()


def test_large_variables_are_updated_like_small_ones() -> None:
    rng = np.random.default_rng(0)
    var, grad = rng.standard_normal((2, 3, training.CACHED_BYTES // 4), np.float32)
    trained = Trained("ResourceApplyMomentum", {"var": var, "accum": np.zeros_like(var)})
    trained.step(lr=0.5, grad=grad, momentum=0.5)
    np.testing.assert_array_equal(trained.read(), [var - grad * np.float32(0.5), grad])


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,)])
def test_variables_may_be_scalars_or_empty(shape: tuple[int, ...]) -> None:
    trained = momentum(shape)
    trained.step(lr=0.5, grad=np.zeros(shape), momentum=0.5)
    var, accum = trained.read()
    np.testing.assert_array_equal(var, np.full(shape, 0.5))
    np.testing.assert_array_equal(accum, np.ones(shape))


def test_an_update_of_no_rows_changes_nothing() -> None:
    trained = rows_of()
    trained.step(lr=0.5, grad=np.zeros((0, 2)), indices=[], momentum=0.5)
    assert all((x == 1).all() for x in trained.read())


def test_a_nan_that_is_no_maximum_yet_is_passed_over() -> None:
    names = ("var", "m", "v", "vhat")
    trained = Trained("ResourceApplyAdamWithAmsgrad", dict.fromkeys(names, np.ones(2, np.float32)))
    trained.step(**DATA["numbers"], grad=[np.nan, 1])
    assert [np.isnan(x).tolist() for x in trained.read()] == [[True, False], [True, False], [True, False], [False] * 2]


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(("op", "changes"), [
    ("Momentum", {"grad": np.ones((4, 2)), "indices": [0, 1, 2, 4]}),
    ("Momentum", {"grad": np.ones((1, 2)), "indices": [-1]}),
    ("Momentum", {"grad": np.ones((1, 3)), "indices": [0]}),
    ("Momentum", {"grad": np.ones(2), "indices": [0, 0]}),
    ("Momentum", {"grad": np.ones((1, 2)), "indices": [0, 0]}),
    ("Momentum", {"grad": np.ones((1, 2)), "indices": [[0]]}),
    ("Momentum", {"grad": np.ones((1, 2)), "indices": 0}),
    ("Momentum", {"grad": np.ones((1, 2)), "indices": [0], "lr": [0.5]}),
    ("Adagrad", {"grad": np.ones((1, 0)), "indices": [0]}),
    ("ProximalAdagrad", {"grad": np.ones((1, 2)), "indices": [0], "lr": 0}),
    ("ProximalAdagrad", {"grad": np.ones((1, 2)), "indices": [0], "l1": -1}),
    ("ProximalAdagrad", {"grad": np.ones((1, 2)), "indices": [0], "l2": np.nan}),
])
def test_rows_that_do_not_fit_change_nothing(op: str, changes: Values, is_known: bool) -> None:
    trained = rows_of(op, is_known=is_known)
    with pytest.raises(InvalidArgument):
        trained.step(**DATA["numbers"] | changes)
    assert all((x == 1).all() for x in trained.read())


@pytest.mark.parametrize("is_known", [True, False])
def test_scalars_have_no_rows(is_known: bool) -> None:
    with pytest.raises(InvalidArgument):
        rows_of(shape=(), is_known=is_known).step(lr=0.5, grad=[1], indices=[0], momentum=0.5)


@pytest.mark.parametrize("changes", [
    {"lr": 0}, {"lr": -1}, {"l1": -1}, {"l2": -1}, {"l2_shrinkage": -1}, {"lr_power": 1}])
def test_ftrl_of_rows_takes_no_numbers_of_the_other_sign(changes: Values) -> None:
    ones = np.ones((4, 2), np.float32)
    trained = Trained("ResourceSparseApplyFtrlV2", {"var": ones, "accum": ones, "linear": ones})
    numbers = DATA["numbers"] | {"lr_power": -0.5, "grad": np.ones((1, 2)), "indices": [0]}
    with pytest.raises(InvalidArgument, match="scalar"):
        trained.step(**numbers | changes)
    trained.step(**numbers)


@pytest.mark.parametrize("is_known", [True, False])
def test_slots_and_gradient_must_have_the_shape_of_the_variable(is_known: bool) -> None:
    with pytest.raises(InvalidArgument, match="same shape"):
        momentum(is_known=is_known).step(lr=0.5, grad=np.ones((2, 4)), momentum=0.5)
    values = {"var": np.ones(3, np.float32), "accum": np.ones(2, np.float32)}
    for op, rows in (("Apply", {"grad": np.ones(3)}), ("SparseApply", {"grad": [1], "indices": [0]})):
        with pytest.raises(InvalidArgument, match="same shape"):
            Trained(f"Resource{op}Momentum", values, is_known=is_known).step(lr=0.5, momentum=0.5, **rows)


def test_a_number_that_is_no_scalar_is_named() -> None:
    with pytest.raises(InvalidArgument, match="lr must have rank 0"):
        momentum().step(lr=[0.5], grad=np.ones((4, 2)), momentum=0.5)


@pytest.mark.parametrize("there", ["var", "accum"])
def test_a_variable_without_a_value_is_not_trained(there: str) -> None:
    trained = Trained("ResourceApplyMomentum", {there: np.ones(3, np.float32)})
    with pytest.raises(FailedPrecondition, match="is uninitialized"):
        trained.step(lr=0.5, grad=np.ones(3), momentum=0.5)
    assert (trained.session.run(f"{there}/read") == 1).all()


def test_a_value_read_before_a_step_stays_as_it_was() -> None:
    trained = momentum()
    before = trained.read()
    trained.step(lr=0.5, grad=np.ones((4, 2)), momentum=0.5)
    assert [x.min() for x in before] == [1, 2] == [x.max() for x in before]


def test_a_variable_that_is_its_own_slot_becomes_what_the_slot_does() -> None:
    trained = momentum(share={"accum": "var"})
    trained.step(lr=0.5, grad=np.ones((4, 2)), momentum=0.5)
    assert all((x == 2).all() for x in trained.read())


@pytest.fixture
def often() -> Iterator[None]:
    """Threads take turns after every few instructions."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_threads_that_take_the_same_variables_in_another_order_lose_no_step(often: None) -> None:
    names, types, attrs = ("var", "accum"), {"dtype": dtypes.float32}, {"T": dtypes.float32}
    session = heald.Session(graph(
        const("zeros", np.zeros(20_000)), const("ones", np.ones(20_000)), const("lr", 0), const("momentum", 1),
        *(Node(name, "VarHandleOp", attrs=types | {"shape": None, "shared_name": name}) for name in names),
        *(Node(f"{name}/assign", "AssignVariableOp", (name, "zeros"), attrs=types) for name in names),
        *(Node(f"{name}/read", "ReadVariableOp", (name,), attrs=types) for name in names),
        Node("there", "ResourceApplyMomentum", ("var", "accum", "lr", "ones", "momentum"), attrs=attrs),
        Node("back", "ResourceApplyMomentum", ("accum", "var", "lr", "ones", "momentum"), attrs=attrs)))
    session.run([], targets=[f"{name}/assign" for name in names])

    def work(index: int) -> None:
        step = session.make_callable([], targets=["back" if index % 2 else "there"])
        for _ in range(50):
            step()

    in_threads(work)  # each step adds 1 to its second variable, and writes its first one as it was
    assert [set(x) for x in session.run([f"{name}/read" for name in names])] == [{100}, {100}]


@pytest.mark.parametrize(("sparse", "table"), [("", training.DENSE_OPTIMIZERS), ("Sparse", training.SPARSE_OPTIMIZERS)])
def test_the_table_tells_where_the_gradient_is(sparse: str, table: tuple[training.Optimizer, ...]) -> None:
    for row in table:
        others = inputs_of(f"Resource{sparse}Apply{row.op}")[1]
        assert others[row.gradient] in ("grad", "delta")
        assert not sparse or others[row.gradient + 1] == "indices"
