"""heald.execute: inputs, attributes, metadata errors at the call, donations, handles."""

from __future__ import annotations

import copy
import keyword
import os
import pickle
import subprocess
import sys
import textwrap
import threading

import heald
import numpy as np
import pytest
from heald import errors
from heald.runtime.values import dtypes
from hypothesis import given
from hypothesis import strategies as st

ONES = np.ones((2, 2), np.float32)
X = np.float32([[1, 2], [3, 4]])


def line() -> int:
    return sys._getframe(1).f_lineno


def test_an_op_takes_arrays_numbers_and_handles_and_returns_a_handle():
    handle = heald.execute("AddV2", ONES, 2)
    again = heald.execute("AddV2", handle, handle)
    assert isinstance(again, heald.TensorHandle)
    assert (again.shape, again.dtype.name, again.device) == ((2, 2), "float32", "CPU:0")
    assert np.array_equal(again.numpy(), np.full((2, 2), 6, np.float32))


def test_an_op_takes_objects_with_dlpack_and_with_the_array_interface():
    class Dlpack:
        def __dlpack__(self, **options):
            return ONES.__dlpack__(**options)

        def __dlpack_device__(self):
            return ONES.__dlpack_device__()

    class Interface:
        __array_interface__ = ONES.__array_interface__

    assert heald.execute("AddV2", Dlpack(), Interface()).numpy().tolist() == [[2, 2], [2, 2]]


def test_several_results_are_a_tuple_and_none_is_an_empty_tuple():
    assert len(heald.execute("Split", 0, ONES, attrs={"num_split": 2})) == 2
    assert heald.execute("Assert", True, [1]) == ()


def test_a_list_argument_is_given_as_a_list_or_spread():
    listed = heald.execute("ConcatV2", [ONES, ONES], 0).numpy()
    assert np.array_equal(listed, heald.execute("ConcatV2", ONES, ONES, 0).numpy())
    assert listed.shape == (4, 2)


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda: heald.execute("AddV2", ONES, np.ones(3, np.float32)), errors.InvalidArgument, "Incompatible shapes"),
    (lambda: heald.execute("AddV2", ONES, heald.TensorHandle([1, 2])), errors.InvalidArgument, "the cast may lose"),
    (lambda: heald.execute("AddV2", heald.TensorHandle(ONES), heald.TensorHandle([1])),
     errors.InvalidArgument, "int32"),
    (lambda: heald.execute("AddV2", ONES), errors.InvalidArgument, "takes 2 inputs (x, y), 1 were given"),
    (lambda: heald.execute("AddV2", ONES, object()), errors.InvalidArgument, "is no tensor"),
    (lambda: heald.execute("AddV2", ONES, [[1], [2, 3]]), errors.InvalidArgument, "input 'y'"),
    (lambda: heald.execute("AddV2", ONES, ONES, attrs={"U": 1}), errors.InvalidArgument, "no attribute 'U'"),
    (lambda: heald.execute("MatMul", ONES, ONES, attrs={"transpose_a": 3}), errors.InvalidArgument, "must be bool"),
    (lambda: heald.execute("Const", attrs={"value": 1, "dtype": "float32"}), errors.InvalidArgument, "value is int64"),
    (lambda: heald.execute("Cast", ONES), errors.InvalidArgument, "'DstT' (type) of op Cast is missing"),
    (lambda: heald.execute("AdV2", ONES), errors.NotFound, "did you mean AddV2"),
    (lambda: heald.execute("add_v2", ONES, ONES), errors.NotFound, "did you mean AddV2"),
    (lambda: heald.execute(7), errors.InvalidArgument, "expected a name"),
    (lambda: heald.ops.add_v2(ONES), errors.InvalidArgument, "takes 2 inputs (x, y), 1 were given"),
    (lambda: heald.ops.add_v2(x=ONES, y=ONES), errors.InvalidArgument, "'x' is an input: give inputs by position"),
    (lambda: heald.ops.relu(T="float32"), errors.InvalidArgument, "takes 1 inputs (features), 0 were given"),
    (lambda: heald.execute("AddV2", ONES, ONES, donate=1), errors.InvalidArgument, "donate=(0,)"),
    (lambda: heald.execute("AddV2", ONES, ONES, handler=ONES), errors.InvalidArgument, "handler is a ndarray"),
    (lambda: heald.TensorHandle([1], "flat32"), errors.InvalidArgument, "'flat32' is not a data type"),
    (lambda: heald.TensorHandle([1], "resource"), errors.InvalidArgument, "the value is no resource"),
    (lambda: heald.TensorHandle(None), errors.InvalidArgument, "no tensor"),
    (lambda: heald.TensorHandle(ONES).to(3), errors.InvalidArgument, "device is a int"),
    (lambda: heald.scalar_tensor(3, 1), errors.InvalidArgument, "no sequence of integers"),
    (lambda: heald.coo_tensor([[9]], [1], (2,)), errors.InvalidArgument, "outside of shape [2]"),
    (lambda: heald.execute("AddV2", ONES, ONES, device="TPU:0"), errors.NotFound, "no plugin brings"),
    (lambda: heald.execute("AddV2", ONES, ONES, device=3), errors.InvalidArgument, "device is a int"),
    (lambda: heald.execute("AddV2", ONES, ONES, handler="lodging"), errors.NotFound, "did you mean logging"),
    (lambda: heald.execute("AddV2", ONES, ONES, handler=3), errors.InvalidArgument, "make_op"),
    (lambda: heald.execute("AddV2", ONES, ONES, donate=(0,)), errors.InvalidArgument, "no TensorHandle"),
    (lambda: heald.execute("AddV2", ONES, ONES, donate=(5,)), errors.InvalidArgument, "inputs are 0 to 1"),
    (lambda: heald.execute("AddV2", ONES, ONES, chain="c"), errors.InvalidArgument, "chain=() begins"),
    (lambda: heald.execute("AddV2", ONES, ONES, attrs=3), errors.InvalidArgument, "mapping"),
    (lambda: heald.execute("Assign", ONES, ONES), errors.Unimplemented, "references"),
    (lambda: heald.execute("DepthToSpace", np.ones((1, 1, 1, 4), bool), attrs={"block_size": 2, "T": "complex256"}),
     errors.InvalidArgument, "not a data type"),
])
def test_a_wrong_call_raises_at_once_and_names_the_users_line(call, kind, text):
    with pytest.raises(kind) as raised:
        call()
    assert text in str(raised.value)
    assert raised.value.location is not None
    assert raised.value.location.file == __file__
    assert raised.value.location.line == call.__code__.co_firstlineno


def test_an_error_of_a_kernel_is_the_state_of_its_handle_and_of_those_behind_it():
    called = line() + 1
    failed = heald.execute("GatherV2", ONES, [5], 0)
    later = heald.ops.add_v2(failed, 1)
    for handle in (failed, later):
        with pytest.raises(errors.InvalidArgument, match=r"indices\[0\] = 5") as raised:
            handle.numpy()
        assert raised.value.location == (__file__, called, None)
        assert raised.value.op == "GatherV2"
        assert "error InvalidArgument" in repr(handle)


def test_a_failed_op_without_results_raises():
    with pytest.raises(errors.InvalidArgument, match="assertion failed"):
        heald.execute("Assert", False, ["no"])


def test_a_python_number_takes_the_tensors_type_and_an_array_keeps_its_own():
    assert heald.execute("AddV2", np.float16([1]), 2).dtype.name == "float16"
    assert heald.execute("AddV2", 1, 2).dtype.name == "int32"
    assert heald.execute("AddV2", 1.5, 2.5).dtype.name == "float32"
    assert heald.execute("AddV2", np.float64(1), 2).dtype.name == "float64"
    with pytest.raises(errors.InvalidArgument, match=r"1\.5, which int32 cannot hold"):
        heald.execute("AddV2", heald.TensorHandle([1]), 1.5)


def test_attributes_of_any_spelling_are_those_of_the_op_table():
    forms = [np.float64, np.dtype("float64"), "double", "float64", heald.api.dtypes.float64]
    assert {heald.execute("Cast", ONES, attrs={"DstT": form}).dtype.name for form in forms} == {"float64"}


def test_a_donated_handle_is_consumed_and_its_buffer_is_the_results():
    x = heald.TensorHandle(np.ones(1000, np.float32))
    memory = x.numpy().ctypes.data
    y = heald.execute("Mul", x, 2, donate=(0,))
    assert y.numpy().ctypes.data == memory
    assert y.numpy()[0] == 2
    with pytest.raises(errors.FailedPrecondition, match="was donated"):
        x.numpy()
    with pytest.raises(errors.FailedPrecondition, match="was donated"):
        heald.execute("Mul", x, 2).numpy()


def test_a_call_that_raises_leaves_its_donated_handles():
    x = heald.TensorHandle(ONES)
    with pytest.raises(errors.InvalidArgument):
        heald.execute("AddV2", x, np.ones(3, np.float32), donate=(0,))
    assert np.array_equal(x.numpy(), ONES)


def test_a_donated_buffer_that_the_user_has_read_is_not_overwritten():
    x = heald.TensorHandle(np.ones(1000, np.float32))
    array = x.numpy()
    assert heald.execute("Mul", x, 2, donate=(0,)).numpy()[0] == 2
    assert array[0] == 1


def test_a_handle_shares_its_memory_read_only_and_copies_the_callers():
    array = ONES.copy()
    handle = heald.TensorHandle(array)
    array[:] = 7
    assert handle.numpy()[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        handle.numpy()[0, 0] = 3
    flat = heald.execute("Reshape", array, [4])
    array[:] = 9
    assert flat.numpy()[0] == 7


def test_a_handle_is_an_array_to_numpy_and_exports_dlpack():
    handle = heald.TensorHandle([[1, 2], [3, 4]], np.int64)
    assert np.asarray(handle).dtype == np.int64
    assert np.array(handle, np.float32).sum() == 10
    assert np.from_dlpack(handle).tolist() == [[1, 2], [3, 4]]
    assert (len(handle), int(handle.numpy()[0, 1])) == (2, 2)
    assert bool(heald.TensorHandle(True))
    assert float(heald.TensorHandle(2.5)) == 2.5
    assert [10, 20][heald.TensorHandle(1)] == 20
    for read in (bool, int, float, heald.TensorHandle.item):
        with pytest.raises(errors.InvalidArgument, match="4 elements"):
            read(handle)


def test_a_constant_is_a_handle_and_ops_of_graphs_alone_say_so():
    assert heald.execute("Const", attrs={"value": ONES, "dtype": "float32"}).numpy().tolist() == ONES.tolist()
    assert heald.execute("NoOp") == ()
    with pytest.raises(errors.Unimplemented, match=r"Placeholder has a meaning in graphs only"):
        heald.execute("Placeholder", attrs={"dtype": "float32"})


def test_files_are_opened_by_permission_only():
    with pytest.raises(errors.PermissionDenied, match=r"set \[files\] read"):
        heald.execute("ReadFile", __file__)


def test_handles_are_values():
    handle = heald.TensorHandle(ONES)
    assert copy.copy(handle) is copy.deepcopy(handle) is handle
    with pytest.raises(errors.FailedPrecondition, match=r"pickle handle\.numpy\(\)"):
        pickle.dumps(handle)


def test_a_dequeue_returns_at_once_and_a_later_enqueue_gives_its_value():
    queue = heald.execute("FIFOQueueV2", attrs={"component_types": [np.float32], "shapes": [[]]})
    element = heald.execute("QueueDequeueV2", queue, attrs={"component_types": ["float32"]})
    assert not element.is_available
    heald.execute("QueueEnqueueV2", queue, [np.float32(3)])
    assert float(element) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_goes_on():
    handle = heald.execute("AddV2", ONES, 1)
    code = textwrap.dedent("""
        import os, numpy as np, heald
        x = heald.execute("AddV2", np.ones(2), 1)
        child = os.fork()
        if not child:
            os._exit(int(float(heald.execute("Sum", heald.execute("AddV2", x, x), 0)) + 0.5))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "8"
    assert handle.numpy()[0, 0] == 2


def test_ops_are_functions_by_their_small_names():
    assert heald.ops.matmul(ONES, ONES, transpose_b=True).numpy()[0, 0] == 2
    assert heald.ops.mat_mul is not None
    assert "a: T" in heald.ops.matmul.__doc__
    assert "matmul" in dir(heald.ops)
    with pytest.raises(AttributeError, match=r"did you mean heald\.ops\.matmul"):
        heald.ops.matmull  # noqa: B018
    with pytest.raises(errors.NotFound):
        heald.ops.matmull  # noqa: B018
    assert not hasattr(heald.ops, "__wrapped__")


def test_the_fast_path_gives_the_slow_paths_results_and_keeps_numpy_quiet():
    tiny, large = np.float32([1e-38]), np.float32([3e38])
    for _ in range(3):
        assert heald.execute("Mul", heald.TensorHandle(tiny), heald.TensorHandle(np.float32([0.1]))).numpy()[0] == 0
        assert np.isinf(heald.execute("Mul", heald.TensorHandle(large), heald.TensorHandle(large)).numpy()[0])
    assert tiny[0] * np.float32(0.1) != 0  # the caller's own modes are as before


@given(st.lists(st.sampled_from(["AddV2", "Mul", "Sub", "Maximum"]), min_size=1, max_size=8),
       st.sampled_from([(2, 2), (), (3,), (2, 1, 3), (0,)]))
def test_a_chain_of_ops_is_numpys(ops, shape):
    functions = {"AddV2": np.add, "Mul": np.multiply, "Sub": np.subtract, "Maximum": np.maximum}
    expected = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    other = heald.TensorHandle(expected + 1)
    handle = heald.TensorHandle(expected)
    for op in ops:
        handle, expected = heald.execute(op, handle, other), functions[op](expected, other.numpy())
    assert handle.shape == shape
    assert np.array_equal(handle.numpy(), expected)


def test_a_negative_zero_is_another_number_in_every_call_like_the_last():
    x = heald.TensorHandle(ONES)
    for _ in range(2):
        for zero in (0.0, -0.0):
            for call in (lambda zero=zero: x * zero, lambda zero=zero: heald.execute("Mul", x, zero),
                         lambda zero=zero: heald.ops.leaky_relu(-x, alpha=-zero),
                         lambda zero=zero: heald.execute("LeakyRelu", -x, attrs={"alpha": -zero})):
                assert (np.signbit(call().numpy()) == np.signbit(zero)).all()


def test_attributes_that_python_calls_equal_are_tensors_of_different_types():
    for value, name in ((1, "int64"), (1.0, "float64"), (True, "bool")):
        for _ in range(2):
            assert heald.execute("Const", attrs={"value": value, "dtype": name}).dtype.name == name


def test_a_call_of_handles_follows_their_types_and_number_however_often_it_was_matched():
    for array in (ONES, ONES.astype(np.int64), ONES) * 2:
        x, axis = heald.TensorHandle(array), heald.TensorHandle([0])
        assert heald.execute("Sum", x, axis).dtype.name == array.dtype.name
        assert heald.execute("ConcatV2", x, x, heald.TensorHandle(0)).shape == (4, 2)
        assert heald.execute("ConcatV2", x, x, x, heald.TensorHandle(0)).shape == (6, 2)
        with pytest.raises(errors.InvalidArgument, match="must be"):
            heald.execute("AddV2", x, heald.TensorHandle(array, "float64"))


def test_threads_share_one_runtime():
    wrong: list[object] = []

    def work(number: int) -> None:
        handle = heald.TensorHandle(np.full((2, 2), number, np.float32))
        total = heald.execute("Sub", handle, handle)
        for _ in range(300):
            total = heald.ops.add_v2(total, handle)
        if total.numpy()[0, 0] != 300 * number:
            wrong.append(total)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(("op", "inputs", "attrs", "device", "expected"), [
    ("AddV2", (X, X), {}, "CPU:0", [[[2, 4], [6, 8]]]),
    ("Split", (0, X), {"num_split": 2}, None, [[[1, 2]], [[3, 4]]]),
    ("Unpack", (X,), {"num": 2}, "CPU:0", [[1, 2], [3, 4]]),
    ("ConcatV2", ([X, X], 1), {}, None, [[[1, 2, 1, 2], [3, 4, 3, 4]]]),
    ("AddN", ([X, X, X],), {}, "CPU:0", [[[3, 6], [9, 12]]]),
])
def test_the_second_call_of_a_kind_takes_no_signature(op, inputs, attrs, device, expected, monkeypatch):
    lists = []
    for turn in range(2):
        arguments = [[heald.TensorHandle(tensor) for tensor in x] if isinstance(x, list) else
                     heald.TensorHandle(x) if isinstance(x, np.ndarray) else x for x in inputs]
        if turn:
            monkeypatch.setattr("heald_eager.signature.MatchMemo.match", None)
        results = heald.execute(op, *arguments, attrs=attrs, device=device)
        lists.append([handle.numpy().tolist() for handle in (results if isinstance(results, tuple) else (results,))])
    assert lists == [expected, expected]


def test_a_call_that_names_another_device_is_another_call():
    x = heald.TensorHandle(np.float32([1, 2]))
    assert [heald.execute("Neg", x, device=device).device for device in ("CPU:0", "EXAMPLE:0") * 2] == [
        "CPU:0", "EXAMPLE:0"] * 2
    with pytest.raises(errors.HealdError, match="NOWHERE"):
        heald.execute("Neg", x, device="NOWHERE:0")


def test_ops_that_are_named_like_functions_of_python_do_not_take_their_place():
    fetched = [getattr(heald.ops, name) for name in ("any", "all", "min", "max", "sum", "range", "abs", "Any")]
    assert fetched[0] is not fetched[-1]
    assert heald.ops.add_n([ONES, ONES]).numpy().tolist() == [[2, 2], [2, 2]]
    assert "matmul" in dir(heald.ops)
    with pytest.raises(AttributeError, match="no op is called 'matmull'"):
        _ = heald.ops.matmull


@pytest.mark.parametrize(("missing", "name", "op"), [
    ("example_gelx", "example_gelu", "Example>Gelu"), ("ExampleGelx", "example_gelu", "Example>Gelu"),
    ("Asert", "assert_", "Assert"), ("matmull", "matmul", "MatMul")])
def test_the_name_that_is_meant_is_a_name_of_python_that_finds_the_op(missing, name, op):
    with pytest.raises(errors.NotFound) as caught:
        getattr(heald.ops, missing)
    assert f"heald.ops.{name} or" in f"{caught.value.hint[:-1]} or"
    assert getattr(heald.ops, name).__doc__ == getattr(heald.ops, op).__doc__


def test_all_names_of_ops_are_names_of_python():
    names = [name for name in dir(heald.ops) if not name.startswith("_")]
    assert [name for name in names if not name.isidentifier() or keyword.iskeyword(name)] == []


def test_quantised_tensors_are_plain_integers_for_numpy():
    dtype = dtypes.named("qint16")
    handle = heald.TensorHandle(np.int16([-3, 7]).view(dtype.numpy))
    shown = handle.numpy()
    assert (handle.dtype, shown.dtype, shown.tolist()) == (dtype, np.int16, [-3, 7])
    assert not shown.flags.writeable
    assert heald.execute("Identity", handle).numpy().dtype == np.int16


def test_attributes_that_count_one_tensor_for_each_list_make_their_lists_clear():
    result = heald.execute("DynamicStitch", np.int32([1, 0]), np.float32([3, 4]), attrs={"N": 1})
    np.testing.assert_array_equal(result.numpy(), [4, 3])
    with pytest.raises(heald.errors.InvalidArgument, match="give a list for each argument"):
        heald.execute("DynamicStitch", np.int32([1, 0]), np.float32([3, 4]))
