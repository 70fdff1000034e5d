"""The pass `loops` applies whichever device is asked for: where it has no kernel for the op, the CPU runs the op."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.recorded_layers import SEQUENCES, recorded_layers
from harness.device_pairs import run_traced
from heald.errors import InvalidArgument

LAYERS = recorded_layers("recurrent_variants.json")
DEVICE = "EXAMPLE:0"  # it has no kernels for recurrent layers


@pytest.mark.parametrize("name", LAYERS)
def test_the_cpu_runs_a_sequence_for_which_the_device_has_no_kernel(name):
    layer = LAYERS[name]
    with heald.Session(layer.graph, {"placement": {"fallback": "allow"}}, device=DEVICE) as session:
        results, trace = run_traced(session, layer.outputs, layer.feeds)
    sequences = {(event.call.code, event.device) for event in trace.events if event.call.code in {
        f"cpu.{op}" for op in SEQUENCES.values()} | {f"onednn.{op}" for op in SEQUENCES.values()} | {"heald.while"}}
    assert {(code.partition(".")[2], device) for code, device in sequences} == {
        (op, "CPU:0") for op in layer.sequence_ops()}
    for result, recorded in zip(results, layer.results, strict=True):
        np.testing.assert_allclose(np.ravel(result), recorded, rtol=0, atol=2e-6)


def test_a_loop_stays_an_error_where_each_request_must_be_met():
    layer = next(iter(LAYERS.values()))
    with heald.Session(layer.graph, {"placement": {"fallback": "error"}}, device=DEVICE) as session, \
            pytest.raises(InvalidArgument, match=f"the session asks for {DEVICE}"):
        session.run(layer.outputs, layer.feeds)
