"""The fuzzer itself: mutants can be made again, runs go on where they stopped, failures are seen and shrunk."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from heald.errors import DataLoss, Internal, PluginError, ResourceExhausted
from heald_saved_model.sstable import entries

from fuzz import bundles, judge, minimise, protobuf, samples, seeds, state, table
from fuzz.outcomes import DEADLINE, INTERNAL, KERNEL, MEMORY, TIMEOUT, UNTYPED, Outcome, outcome
from fuzz.samples import SINGLE
from fuzz.state import BLOCK, State
from fuzz.targets import TARGETS, mutant


@pytest.mark.parametrize("target", TARGETS)
def test_a_mutant_depends_on_target_seed_and_number_alone(target):
    first = [mutant(target, 3, number) for number in range(20)]
    assert [mutant(target, 3, number) for number in reversed(range(20))] == first[::-1]
    assert [mutant(target, 4, number) for number in range(20)] != first


@pytest.mark.parametrize("target", TARGETS)
def test_a_sample_is_the_same_after_its_form_as_one_file(target):
    sample = mutant(target, 0, 7)
    assert samples.unpack_sample(samples.pack_sample(sample), is_folder=TARGETS[target].is_folder) == sample


RANDOM = {"edit", "tfg"}  # random steps, random graphs: few of them run


@pytest.mark.parametrize("target", TARGETS)
def test_every_pool_has_seeds_that_give_a_result(target, tmp_path):
    shares = []
    for number, pool in enumerate(TARGETS[target].pools()):
        some = range(0, len(pool.samples), len(pool.samples) // (60 if target in RANDOM else 10) + 1)
        outcomes = [seed_outcome(target, pool.samples[i], tmp_path / f"{number}-{i}") for i in some]
        shares.append(outcomes.count("result") / len(some))
    assert max(shares) > 0.1 if target in RANDOM else min(shares) > 0.25


def seed_outcome(target, sample, folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder.mkdir(exist_ok=True)
        return outcome(lambda: TARGETS[target].door(sample, folder)).kind


def test_edited_messages_are_messages():
    rng, words = Random(5), seeds.op_names()
    (graphs, _), edited = seeds.graph_pools(), 0
    for _ in range(300):
        data, other = (rng.choice(graphs.samples)[SINGLE] for _ in range(2))
        changed = protobuf.edit(rng, data, other, words)
        assert protobuf.parse_fields(changed) is not None
        edited += changed != data
    assert edited > 200


def test_repaired_checkpoints_have_their_checksums():
    rng, sound = Random(2), 0
    for pool in seeds.checkpoint_pools():
        for sample in pool.samples:
            changed = bundles.repair_checksums(bundles.data_edit(rng, sample, sample, ()))
            pairs = list(entries(changed[bundles.index_of(changed)]))
            assert [key for key, _ in pairs] == [key for key, _ in entries(sample[bundles.index_of(sample)])]
            alone = {name: data for name, data in changed.items() if name != "saved_model.pb"}
            sound += outcome(lambda files=alone: TARGETS["checkpoint_data"].door(files, Path())).kind == "result"
    assert sound > 5


def raises(error, cause=None):
    def action():
        raise error from cause
    return action


CASES = [
    (lambda: None, "result"), (raises(DataLoss("x")), "DataLoss"), (raises(KeyError("x")), UNTYPED),
    (raises(Internal("x"), TypeError("y")), INTERNAL), (raises(MemoryError("x")), MEMORY),
    (raises(ResourceExhausted("x"), MemoryError("y")), MEMORY), (raises(ResourceExhausted("x")), "ResourceExhausted"),
    (raises(PluginError("x", plugin="simplify")), KERNEL), (raises(PluginError("x", op="Add")), KERNEL),
    (raises(PluginError("x", plugin="stranger")), "PluginError"),
    (raises(SystemExit(1)), UNTYPED), (raises(RecursionError("x")), UNTYPED),
]


@pytest.mark.parametrize(("action", "kind"), CASES)
def test_outcomes_are_named_after_their_result_or_error(action, kind):
    assert outcome(action).kind == kind


def test_a_failure_is_known_by_the_place_of_its_cause():
    def broken():
        raise KeyError("a number: 17")

    def door():
        try:
            broken()
        except KeyError as error:
            raise Internal("wrapped") from error

    judged = outcome(door)
    assert judged.where.startswith("KeyError in test_harness.py:broken < test_harness.py:door")
    assert "a number: 17" in judged.text


@pytest.fixture
def planted_judge(monkeypatch, tmp_path):
    """A judge whose target `npz` does as the test says."""
    monkeypatch.setattr("threading.excepthook", None)
    monkeypatch.setattr("sys.unraisablehook", None)
    judged = judge.Judge(tmp_path)

    def judge_door(door) -> Outcome:
        monkeypatch.setitem(TARGETS, "npz", TARGETS["npz"]._replace(door=door))
        return judged("npz", {SINGLE: b""})
    return judge_door


def test_memory_beyond_the_bound_is_a_failure(planted_judge, monkeypatch):
    monkeypatch.setattr(judge, "MOST_MEMORY", 16 << 20)
    assert planted_judge(lambda *_: bytearray(b"x") * (64 << 20)).kind == MEMORY
    assert planted_judge(lambda *_: bytearray(b"x") * (1 << 20)).kind == "result"


def test_a_late_end_is_a_failure(planted_judge, monkeypatch):
    monkeypatch.setattr(judge, "DEADLINE", 0.0)
    assert planted_judge(lambda *_: None).kind == TIMEOUT
    assert DEADLINE == 5.0


def test_an_exception_of_a_thread_is_a_failure(planted_judge):
    import threading

    def door(*_):
        thread = threading.Thread(target=raises(KeyError("in a thread")))
        thread.start()
        thread.join()

    assert planted_judge(door).kind == UNTYPED
    assert planted_judge(lambda *_: None).kind == "result"


def test_files_of_one_sample_are_gone_for_the_next(planted_judge, tmp_path):
    planted_judge(lambda _, folder: samples.write_files({"a/b": b"1", "c": b"2"}, folder))
    assert not [*tmp_path.iterdir()]


def test_a_run_goes_on_where_it_stopped(tmp_path):
    path = state.path_of(tmp_path, "npz", 9)
    current = State("npz", 9)
    current.add(1, [(BLOCK, Outcome("result")), (BLOCK + 1, Outcome(UNTYPED, "KeyError in x", "text"))], 0.5)
    state.save(current, path)
    again = state.load(path)
    assert again == current
    assert again.unfinished_blocks(3 * BLOCK) == [(0, 0, BLOCK), (2, 2 * BLOCK, 3 * BLOCK)]
    again.add(0, [(0, Outcome(UNTYPED, "KeyError in x", "other"))], 0.5)
    assert (again.counts, again.failures[0].count, again.failures[0].numbers) == (
        {"result": 1, UNTYPED: 2}, 2, [0, BLOCK + 1])


def test_bytes_are_shrunk_while_they_fail():
    assert minimise.shorten(bytes(range(256)), lambda data: b"\x10" in data and b"\xf0" in data) == b"\x10\xf0"


def test_messages_are_shrunk_by_fields():
    inner = protobuf.encode_fields([protobuf.Field(1, 0, 5), protobuf.Field(2, 2, b"keep"),
                                    protobuf.Field(3, 2, b"drop")])
    data = protobuf.encode_fields([protobuf.Field(1, 2, inner), protobuf.Field(4, 0, 7)])

    def fails(candidate):
        fields = protobuf.parse_fields(candidate) or []
        return any(b"keep" in bytes(f.value) for f in fields if f.kind == 2 and protobuf.parse_fields(f.value))

    assert protobuf.parse_fields(minimise.shorten(data, fails)) == [
        protobuf.Field(1, 2, protobuf.encode_fields([protobuf.Field(2, 2, b"keep")]))]


def test_the_table_has_a_row_for_each_target():
    states = [State("npz", seed, {"result": 1000, "DataLoss": 5}) for seed in (0, 1)]
    page = table.renew_table(f"before\n{table.BEGIN}\nold\n{table.END}\nafter", states)
    row = next(line for line in page.splitlines() if line.startswith("| npz"))
    assert [cell.strip() for cell in row.split("|")[1:7]] == ["npz", "2,010", "", "2,000", "10", "0"]
    assert page.startswith(f"before\n{table.BEGIN}\n| target")
    assert page.endswith(f"|\n{table.END}\nafter")


def test_the_table_has_the_share_of_mutants_that_came_to_a_kernel():
    current = State("bef", 1)
    current.add(0, [(n, Outcome("result", reached=n < 3)) for n in range(4)], 0.5)
    row = table.markdown([State("bef", 0, {"result": 96}), current]).splitlines()[-1]
    assert [cell.strip() for cell in row.split("|")[2:4]] == ["100", "75%"]


def test_rows_of_targets_without_a_state_stay_in_the_table():
    bef = State("bef", 0, {"result": 3, "NotFound": 1}, reached=1, counted=4)
    page = table.renew_table(f"{table.BEGIN}\n{table.END}", [bef, State("npz", 0, {"result": 2000})])
    again = table.renew_table(page, [State("npz", 1, {"DataLoss": 7})])
    rows = table.read(again)
    assert rows["bef"].counts + Counter() == Counter({"result": 3, "NotFound": 1})
    assert rows["bef"].share == "25%"
    assert rows["npz"].counts + Counter() == Counter({"DataLoss": 7})


def test_the_docs_have_a_place_for_the_table():
    page = (Path(__file__).parents[2] / "docs" / "fuzzing.md").read_text("utf-8")
    assert table.renew_table(page, [State("npz", 0, {"result": 1})]) != page
    assert not [target for target in TARGETS if f"| {target} |" not in page]
