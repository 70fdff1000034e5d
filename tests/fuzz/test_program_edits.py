"""Edits of programs: repaired files decode and state what the ops derive; texts keep their other parts."""

from __future__ import annotations

from random import Random

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from heald import bef
from heald.errors import HealdError
from heald.graphs.session.ahead_of_time import compile_model
from heald.runtime.program.bef.sections import read_sections
from heald.runtime.program.infer import infer_registers
from heald.runtime.values.tensor import ValueInfo

from fuzz import bef_edits, compiled_models, mlir_edits, seeds
from fuzz.mlir_spans import ATTRIBUTE, OPERAND, OPERATION, REGION, SYMBOL, TYPE, spans
from fuzz.model_types import repair_types
from fuzz.reach import Reach
from fuzz.samples import SINGLE

PROGRAM = """\
func.func @half(%x: i64) -> i64 {
  %0 = "tfrt.div.i64"(%x, %x) : (i64, i64) -> i64
  tfrt.return %x : i64
}
func.func @double(%x: i32) -> i32 {
  %0 = "tfrt.add.i32"(%x, %x) : (i32, i32) -> i32
  tfrt.return %0 : i32
}
func.func @main() -> i32 {
  %yes = "tfrt.constant.i1"() {value = true} : () -> i1
  %no = "tfrt.constant.i1"() {value = false} : () -> i1
  %two = "tfrt.constant.i32"() {value = 2 : i32} : () -> i32
  %one = "tfrt.constant.i32"() {value = 1 : i32} : () -> i32
  %many = "tfrt.multiply.i32"(%one, %two) : (i32, i32) -> i32
  %r = "tfrt.if"(%yes, %one) ({
  ^bb0(%p: i32):
    %d = "tfrt.call"(%p) {callee = @double} : (i32) -> i32
    tfrt.return %d : i32
  }, {
  ^bb0(%p: i32):
    tfrt.return %p : i32
  }) : (i1, i32) -> i32
  tfrt.return %r : i32
}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "graph.pb"
    nodes = [placeholder("x", (1, 8, 8, 16)), node("a", "Softmax", "x"), const("w", np.ones((3, 3, 16, 16))),
             node("y", "Conv2D", "a", "w", strides=(1, 1, 1, 1), padding="SAME")]
    heald.graphdef.dump(graph(*nodes), path)
    return compile_model(path)


def decoded_model(data):
    model = bef.loads(data)
    functions = dict(model.program.functions)
    return model._replace(program=model.program._replace(functions=functions))


def test_most_repaired_mutants_of_a_model_decode_and_state_what_is_derived(model):
    rng, data, ops = Random(1), bef.dumps(model), heald.default_host().registries.ops
    derived = 0
    for _ in range(200):
        try:
            changed = decoded_model(bef_edits.edit_repaired(rng, data, data, ()))
        except HealdError:  # an entry that names another function
            continue
        for function in changed.program.functions.values():
            try:
                infos = infer_registers(function, [ValueInfo(meta) for meta in function.arg_metas],
                                        changed.program.constants, ops)
            except HealdError:
                continue
            assert [info.meta for info in infos[: len(function.arg_names)]] == [*function.arg_metas]
            derived += all(infos[r].meta == function.register_types[r] for r in function.results)
    assert derived > 100


def test_repair_follows_a_changed_argument_to_the_results(model):
    rng = Random(2)
    results = set()
    for _ in range(30):
        changed = compiled_models.change_argument_type(rng, model, model)
        function = repair_types(changed).program.functions["main"]
        results.add(str(function.result_metas[0]))
        assert repair_types(changed).entries[0].outputs[0].meta == function.result_metas[0]
    assert len(results) > 5


def test_repair_leaves_a_sound_model_as_it_is(model):
    assert bef.dumps(repair_types(model)) == bef.dumps(model)


def test_an_edited_section_has_a_header_with_its_length(model):
    rng, data = Random(3), bef.dumps(model)
    before = {number: end - begin for number, (begin, end) in read_sections(memoryview(data)).items()}
    lengths = set()
    for _ in range(50):
        changed = bef_edits.edit_section(rng, data, data, ())
        sections = read_sections(memoryview(changed))
        assert sections.keys() == before.keys()
        lengths.update(number for number, (begin, end) in sections.items() if end - begin != before[number])
    assert len(lengths) > 3


def test_every_edit_of_a_model_changes_some_seed(model):
    seed_models = [decoded_model(pool.samples[at][SINGLE]) for pool in seeds.program_pools() for at in range(6)]
    for edit in compiled_models.EDITS:
        rng = Random(4)
        assert model.prepared
        changes = [edit(rng, seed, model) is not seed for seed in (model, *seed_models) for _ in range(5)]
        assert any(changes), edit


def test_spans_are_the_parts_that_the_parser_takes():
    kinds_and_texts = {(span.kind, PROGRAM[span.begin : span.end]) for span in spans(PROGRAM)}
    assert {(TYPE, "i1"), (ATTRIBUTE, "true"), (ATTRIBUTE, "1 : i32"), (OPERAND, "%yes"), (SYMBOL, "@double"),
            (OPERATION, '%0 = "tfrt.add.i32"(%x, %x) : (i32, i32) -> i32')} <= kinds_and_texts
    assert sum(kind == REGION for kind, _ in kinds_and_texts) == 5


def test_a_text_with_a_fault_has_the_spans_before_it():
    at = PROGRAM.index("%one =")
    broken = PROGRAM[:at] + "? " + PROGRAM[at:]
    assert {span for span in spans(broken) if span.kind != REGION} == {
        span for span in spans(PROGRAM) if span.end < at and span.kind != REGION}


@pytest.mark.parametrize("change", mlir_edits.CHANGES)
def test_every_change_of_a_text_leaves_some_texts_that_parse(change):
    regions = seeds.tfg_text_pools()[-1].samples
    texts = [PROGRAM, *(regions[at][SINGLE].decode() for at in range(0, len(regions), 6))]
    rng = Random(5)

    def parses_changed(text):
        changed = change(rng, text, spans(text), PROGRAM if text == PROGRAM else rng.choice(texts[1:]))
        return changed not in (None, text) and parses(changed,
                                                      heald.mlir.loads if text == PROGRAM else heald.tfg.loads)

    assert any(map(parses_changed, [*texts, PROGRAM] * 20))


def parses(text, load):
    try:
        load(text)
    except HealdError:
        return False
    return True


def test_reach_counts_the_kernels_of_runs_with_a_deadline(model):
    from fuzz.program_runs import run_model

    reach = Reach()
    run_model(model, b"")
    assert reach.calls >= 1
    before = reach.calls
    with pytest.raises(HealdError):
        run_model(model._replace(requirements=(model.requirements[0]._replace(plugin="none"),)), b"")
    assert reach.calls == before
