"""Op handlers: logging, null, devices, chains with fallback, config, and handlers of third parties."""

from __future__ import annotations

import re
from pathlib import Path

import heald
import numpy as np
import pytest
from harness.eager_runtime import core
from heald import errors
from heald.runtime.config.config import load_config
from heald.runtime.service.runtime import Runtime
from heald_eager.core_runtime import CoreRuntime
from heald_eager.layout_handles import coo_handle

EXAMPLE = Path(__file__).parents[2] / "examples" / "batching_handler.py"
ONES = np.ones((2, 2), np.float32)


def test_the_logging_handler_writes_inputs_outputs_and_times(capsys):
    result = core().execute("MatMul", ONES, ONES, attrs={"transpose_a": True}, handler="logging")
    assert result.numpy()[0, 0] == 2
    log = capsys.readouterr().err
    assert "[0] dispatch 'MatMul' 2 argument(s), 1 result(s), OpAttrs contains " in log
    assert "  'transpose_a' type=BOOL value=1\n" in log
    assert "'T' type" not in log  # the inputs tell it
    assert log.count("float32[2,2], CPU:0") == 3
    assert re.search(r"Outputs for \[0\]: 'MatMul' after [\d.]+ us:", log)


def test_the_logging_handler_tells_of_pending_and_failed_calls(capsys):
    cpu = core(0)
    cpu.execute("Neg", cpu.handle(ONES).to("SIM:0"), device="CPU:0", handler="logging")
    with pytest.raises(errors.InvalidArgument):
        cpu.execute("AddV2", ONES, np.ones(3, np.float32), handler="logging")
    log = capsys.readouterr().err
    assert "<TensorHandle pending, float32[2,2], CPU:0>" in log
    assert "[1] 'AddV2' failed: Incompatible shapes" in log


def test_the_null_handler_supports_no_op():
    with pytest.raises(errors.Unimplemented, match=r"AddV2 was not supported by NullOpHandler\."):
        core().execute("AddV2", ONES, ONES, handler="null")


def test_a_chain_passes_on_the_ops_that_a_handler_does_not_support():
    cpu = core(ops=("AddV2",))
    chain = ("SIM:0", "CPU:0")
    assert cpu.execute("AddV2", ONES, ONES, handler=chain).device == "SIM:0"
    assert cpu.execute("Mul", ONES, ONES, handler=chain).device == "CPU:0"
    assert cpu.execute("Mul", ONES, ONES, handler=["logging", *chain]).device == "CPU:0"
    with pytest.raises(errors.Unimplemented, match="not supported by the op handler 'SIM:0'"):
        cpu.execute("Mul", ONES, ONES, handler="SIM:0")


def test_devices_serve_ops_without_kernels_and_ops_of_declared_layouts():
    cpu = core(ops=("AddV2",), handler="SIM:0")
    assert cpu.execute("Const", attrs={"value": ONES, "dtype": "float32"}).numpy().tolist() == ONES.tolist()
    assert cpu.execute("NoOp") == ()
    sparse = coo_handle(cpu, [[0, 1]], [2.0], (2, 2))
    assert cpu.execute("Neg", sparse, handler=("SIM:0", "CPU:0")).layout == "coo"


def test_config_chooses_the_handler_of_calls_that_choose_none(capsys, monkeypatch):
    monkeypatch.setenv("HEALD_EAGER__HANDLER", "logging, CPU:0")
    runtime = Runtime(load_config())
    cpu = CoreRuntime(runtime.host, runtime.config.eager.handler)
    for _ in range(3):
        x = cpu.execute("AddV2", cpu.handle(ONES), cpu.handle(ONES))
    assert capsys.readouterr().err.count("dispatch 'AddV2'") == 3
    cpu.execute("AddV2", x, x, handler=())
    assert not capsys.readouterr().err


def test_a_handler_of_a_third_party_batches_products_with_the_public_contract():
    runtime = Runtime(load_config({"plugins": {"load": [str(EXAMPLE)]}}))
    cpu = CoreRuntime(runtime.host)
    weights = cpu.handle(np.arange(6, dtype=np.float32).reshape(3, 2))
    inputs = [np.full((n, 3), n, np.float32) for n in (1, 2, 3)]
    results = [cpu.execute("MatMul", x, weights, handler="batching") for x in inputs]
    assert not any(result.is_available for result in results)
    assert [result.shape for result in results] == [(1, 2), (2, 2), (3, 2)]
    doubled = cpu.execute("Mul", results[1], 2)
    assert np.array_equal(doubled.numpy(), 2 * inputs[1] @ weights.numpy())
    assert all(result.is_available for result in results)
    for x, result in zip(inputs, results, strict=True):
        assert np.array_equal(result.numpy(), x @ weights.numpy())
    assert cpu.execute("Neg", ONES, handler="batching").numpy()[0, 0] == -1
    with pytest.raises(errors.InvalidArgument) as raised:
        cpu.execute("MatMul", ONES, weights, handler="batching")
    assert raised.value.location.file == __file__


def test_all_calls_of_a_batch_that_fails_get_its_error():
    settings = {"plugins": {"load": [str(EXAMPLE)]}, "limits": {"memory": "3MB"}}
    cpu = CoreRuntime(Runtime(load_config(settings)).host)
    weights = cpu.handle(np.ones((2, 2), np.float32))
    rows = np.ones((100_000, 2), np.float32)
    results = [cpu.execute("MatMul", rows, weights, handler="batching") for _ in range(4)]
    for result in results:
        with pytest.raises(errors.ResourceExhausted, match="ConcatV2"):
            result.numpy()


def test_cancelling_ends_the_promises_of_handlers():
    cpu = CoreRuntime(Runtime(load_config({"plugins": {"load": [str(EXAMPLE)]}})).host)
    handle = cpu.execute("MatMul", ONES, ONES, handler="batching")
    cpu.host.cancel_execution()
    with pytest.raises(errors.Cancelled):
        handle.numpy()


class Broken:
    def __init__(self, answer):
        self.answer = answer

    def make_op(self, op):
        if op == "Neg":
            raise ValueError("no negation")
        return lambda call: self.answer


@pytest.mark.parametrize(("op", "answer", "text"), [
    ("Neg", None, "ValueError: no negation"), ("Abs", None, "returned NoneType for Abs, expected 1"),
    ("Abs", (), "returned nothing for Abs"), ("Abs", (1,), "returned int for Abs")])
def test_a_broken_handler_is_a_plugin_error(op, answer, text):
    with pytest.raises(errors.PluginError, match=text):
        core().execute(op, ONES, handler=Broken(answer))


def test_a_skipped_call_reaches_no_handler():
    cpu = core()
    bad = cpu.execute("GatherV2", ONES, [7], 0)
    assert cpu.execute("Abs", bad, handler=Broken(None)).error is bad.error


def test_an_op_handler_is_registered_once_under_a_word(tmp_path):
    for name in ("Loud", "logging", "CPU:0"):
        plugin = tmp_path / f"plugin_{len(name)}.py"
        plugin.write_text("from heald.api import hookimpl\nHEALD_API = (1, 1)\n@hookimpl\n"
                          f"def heald_op_handlers(registry):\n    registry.add({name!r}, print)\n")
        with pytest.raises(errors.PluginError, match="op handler"):
            Runtime(load_config()).plugins.register(plugin)


def test_attributes_are_frozen_hashable_and_compared_by_type():
    attrs = heald.OpAttrs({"T": np.float32, "axes": [1, 2], "value": np.ones(2), "on": True}, name="x")
    assert attrs == heald.OpAttrs(on=True, name="x", T=heald.api.dtypes.float32, axes=(1, 2), value=np.ones(2))
    assert len({attrs, heald.OpAttrs(attrs)}) == 1
    assert heald.OpAttrs(n=1) != heald.OpAttrs(n=True)
    assert heald.OpAttrs(n=1) != heald.OpAttrs(n=1.0)
    assert heald.OpAttrs(n=0.0) != heald.OpAttrs(n=-0.0)
    assert repr(heald.OpAttrs(n=1, a=[1.5])) == "OpAttrs(a=[1.5], n=1)"
    with pytest.raises(errors.InvalidArgument, match="'d' cannot be frozen"):
        heald.OpAttrs(d={})
    with pytest.raises(errors.InvalidArgument, match="name is a text"):
        heald.OpAttrs({1: 2})
    with pytest.raises(TypeError):
        attrs["n"] = 1
