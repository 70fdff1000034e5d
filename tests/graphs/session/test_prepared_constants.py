"""Compiled files have the arrays that kernels prepared from constants. Arrays that do not fit are made anew."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from heald.errors import FailedPrecondition, InvalidArgument, PluginError
from heald.graphs.session.ahead_of_time import compile_model
from heald.runtime.contract.kernel import Bind
from heald.runtime.linker.stored_constants import CollectedConstants, LoadedConstants
from heald.runtime.program.compiled_model import CompiledModel, PreparedConstant, StrippedConstant
from heald.runtime.program.host_program import ProgramDef
from heald.runtime.service.compiled_model import LoadedCompiledModel
from heald.runtime.support.mapped_file import file_behind
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata

ROOT = Path(__file__).parents[3]
DIGITS = ROOT / "examples/digits/frozen.pb"
PACKS = {"all packs": None, "cpu alone": {"plugins": {"block": ["onednn"]}}}


@pytest.fixture(params=PACKS.values(), ids=PACKS)
def config(request):
    return request.param


@pytest.fixture
def preparations(monkeypatch):
    """Lists what happens in `Bind.prepared` with a fingerprint: keys whose `make` ran, and the objects returned."""
    new_keys, returned, original = [], [], Bind.prepared

    def prepare(self, key, make, *, fingerprint="", meta=None):
        def make_and_record():
            new_keys.append(key)
            return make()

        prepared_array = original(self, key, make_and_record if fingerprint else make, fingerprint=fingerprint,
                                  meta=meta)
        if fingerprint:
            returned.append(prepared_array)
        return prepared_array

    monkeypatch.setattr(Bind, "prepared", prepare)
    return new_keys, returned


def images(*counts):
    meta = next(iter(heald.load(DIGITS).inputs.values()))
    return {next(iter(heald.load(DIGITS).inputs)): [(count, *meta.shape[1:]) for count in counts]}


def fed(count):
    [[shape]] = images(count).values()
    return np.random.default_rng(count).random(shape, np.float32)


def same(a, b):
    return all(np.array_equal(a[name], b[name]) for name in a) if isinstance(a, dict) else np.array_equal(a, b)


def write_and_read(compiled):
    return heald.bef.loads(heald.bef.dumps(compiled))


def test_kernels_of_a_loaded_model_prepare_nothing(config, preparations):
    expected = heald.load(DIGITS, config=config)(fed(4))
    compiled = compile_model(DIGITS, inputs=images(4), config=config)
    new_keys, returned = preparations
    new_keys.clear()
    returned.clear()
    model = LoadedCompiledModel(write_and_read(compiled), config)
    assert same(model(fed(4)), expected)
    assert not new_keys
    assert len(returned) >= 4
    for array in returned:
        assert array.ctypes.data % 64 == 0
        assert not array.flags.writeable


@pytest.mark.parametrize("change", [
    pytest.param(lambda one: one._replace(fingerprint="another, library 9"), id="fingerprint"),
    pytest.param(lambda one: one._replace(value=np.append(one.value, one.value.dtype.type(1))), id="longer"),
    pytest.param(lambda one: one._replace(value=one.value.reshape(-1)[:-1]), id="shorter"),
    pytest.param(lambda one: one._replace(value=one.value.reshape(-1).view(np.int8)), id="type"),
    pytest.param(lambda one: one._replace(value=np.array([b"x"], object)), id="strings"),
    pytest.param(lambda one: one._replace(function="another"), id="function"),
    pytest.param(lambda one: one._replace(device="CPU:1"), id="device"),
])
def test_arrays_that_do_not_fit_are_made_anew(config, preparations, change):
    expected = heald.load(DIGITS, config=config)(fed(4))
    compiled = compile_model(DIGITS, inputs=images(4), config=config)
    changed = write_and_read(compiled._replace(prepared=tuple(map(change, compiled.prepared))))
    new_keys, _ = preparations
    new_keys.clear()
    assert same(LoadedCompiledModel(changed, config)(fed(4)), expected)
    assert len(new_keys) == len(compiled.prepared)


def test_a_stripped_file_has_the_prepared_arrays_alone(config, preparations):
    expected = heald.load(DIGITS, config=config)(fed(4))
    compiled, stripped = (compile_model(DIGITS, inputs=images(4), config=config, strip=strip)
                          for strip in (False, True))
    new_keys, _ = preparations
    new_keys.clear()
    again = write_and_read(stripped)
    left_out = [constant for constant in again.program.constants if isinstance(constant, StrippedConstant)]
    assert len(left_out) >= 4
    assert heald.bef.dumps(again) == heald.bef.dumps(stripped)
    assert len(heald.bef.dumps(stripped)) < len(heald.bef.dumps(compiled))
    assert same(LoadedCompiledModel(again, config)(fed(4)), expected)
    assert not new_keys
    with pytest.raises(FailedPrecondition, match=r"left out.*heald compile"):
        left_out[0].array()


@pytest.mark.parametrize("change", [
    pytest.param(lambda rows: tuple(one._replace(fingerprint="another, library 9") for one in rows), id="fingerprint"),
    pytest.param(lambda rows: tuple(one._replace(value=one.value.reshape(-1)[1:]) for one in rows), id="size"),
    pytest.param(lambda _: (), id="none"),
])
def test_a_stripped_file_that_does_not_fit_names_pack_expectation_and_remedy(config, change):
    stripped = compile_model(DIGITS, inputs=images(4), config=config, strip=True)
    model = LoadedCompiledModel(write_and_read(stripped._replace(prepared=change(stripped.prepared))), config)
    with pytest.raises(FailedPrecondition) as caught:
        model(fed(4))
    text, one = str(caught.value), stripped.prepared[0]
    assert one.fingerprint in text
    assert "stripped" in text
    assert "heald compile" in text
    assert "CPU:0" in text
    if change(stripped.prepared):
        assert change(stripped.prepared)[0].fingerprint in text


def test_functions_for_two_shapes_share_one_array(preparations):
    compiled = compile_model(DIGITS, inputs=images(2, 5))
    rows = {}
    for one in write_and_read(compiled).prepared:
        rows.setdefault(one[1:5], {})[one.function] = one.value
    shared = [by_function for by_function in rows.values() if len(by_function) == 2]
    assert shared
    for by_function in shared:
        first, second = by_function.values()
        assert first is second
    alone = sum(one.value.nbytes for one in compile_model(DIGITS, inputs=images(2)).prepared)
    assert sum(array.nbytes for array in {id(one.value): one.value for one in compiled.prepared}.values()) < 2 * alone
    model, (new_keys, _) = LoadedCompiledModel(write_and_read(compiled)), preparations
    new_keys.clear()
    loaded = heald.load(DIGITS)
    for count in (2, 5):
        assert same(model(fed(count)), loaded(fed(count)))
    functions = {one.function for one in compiled.prepared}
    assert len(functions) == 2


LARGE = np.random.default_rng(1).random((3, 3, 128, 128), np.float32)  # 576 KiB


@pytest.fixture
def convolution(tmp_path):
    """A large convolution as a file, and its input."""
    path = tmp_path / "conv.pb"
    attrs = {"strides": (1, 1, 1, 1), "padding": b"SAME"}
    heald.graphdef.dump(graph(placeholder("x", (1, 7, 7, 128)), const("w", LARGE), const("v", LARGE[::-1].copy()),
                              node("hidden", "Conv2D", "x", "w", **attrs), node("y", "Conv2D", "hidden", "v", **attrs)),
                        path)
    return path, np.random.default_rng(2).random((1, 7, 7, 128), np.float32)


def test_prepared_arrays_are_views_of_the_map_that_outlive_model_and_file_name(config, convolution, preparations):
    path, x = convolution
    file = path.with_suffix(".bef")
    expected = heald.load(path, config=config)(x)
    heald.bef.dump(compile_model(path, config=config), file)
    new_keys, returned = preparations
    new_keys.clear()
    returned.clear()
    model = heald.bef.load(file)
    compiled = LoadedCompiledModel(model, config)
    first = compiled(x)
    file.unlink()
    del model
    gc.collect()
    assert np.array_equal(first, expected)
    assert np.array_equal(compiled(x), expected)
    assert len(returned) == 2
    assert not new_keys
    for array in returned:
        assert file_behind(array) is not None
        assert array.ctypes.data % os.sysconf("SC_PAGESIZE") == 0


def test_constants_with_prepared_forms_are_never_read(config, convolution):
    path, x = convolution
    file = path.with_suffix(".bef")
    expected = heald.load(path, config=config)(x)
    heald.bef.dump(compile_model(path, config=config), file)
    raw = file.read_bytes()
    for weights in (LARGE, LARGE[::-1].copy()):
        assert raw.count(weights.tobytes()) >= 1
        at = raw.index(weights.tobytes())
        raw = raw[:at] + bytes(weights.nbytes) + raw[at + weights.nbytes :]
    file.write_bytes(raw)
    assert np.array_equal(LoadedCompiledModel(heald.bef.load(file), config)(x), expected)


def test_a_file_that_changes_before_its_link_is_an_error(config, convolution):
    path, x = convolution
    file = path.with_suffix(".bef")
    heald.bef.dump(compile_model(path, config=config, strip=True), file)
    model = LoadedCompiledModel(heald.bef.load(file), config)
    with file.open("r+b") as opened:
        opened.truncate(100)
    with pytest.raises(FailedPrecondition, match="changed in place"):
        model(x)


IN_ANOTHER_PROCESS = """
import sys
import numpy as np
import heald
from heald.runtime.linker import stored_constants
from heald.runtime.service.compiled_model import LoadedCompiledModel

model = heald.bef.load(sys.argv[1])
class Forbidding(stored_constants.LoadedConstants):
    def get(self, slot, inputs, fingerprint, meta, make):
        def forbidden():
            raise AssertionError(f"prepared {slot}")
        return super().get(slot, inputs, fingerprint, meta, forbidden)
import heald.runtime.service.compiled_model as session
session.LoadedConstants = Forbidding
np.save(sys.argv[3], LoadedCompiledModel(model)(np.load(sys.argv[2])))
"""


def test_another_process_prepares_nothing(convolution, tmp_path):
    path, x = convolution
    heald.bef.dump(compile_model(path, strip=True), tmp_path / "m.bef")
    np.save(tmp_path / "x.npy", x)
    files = [str(tmp_path / name) for name in ("m.bef", "x.npy", "y.npy")]
    ran = subprocess.run([sys.executable, "-c", IN_ANOTHER_PROCESS, *files], capture_output=True, text=True,
                         check=False, timeout=60)
    assert not ran.returncode, ran.stderr
    np.testing.assert_allclose(np.load(files[2]), heald.load(path)(x), rtol=1e-5)


def bind(**options):
    return Bind("n", "Op", {}, (), (), object(), None, {}, **options)


META = TensorMetadata(dtypes.float32, (3,))


def test_a_fingerprint_needs_metadata():
    with pytest.raises(InvalidArgument, match="meta="):
        bind().prepared("k", lambda: 1, fingerprint="pack")


def test_objects_outside_a_host_are_made_once():
    b = bind()
    assert [b.prepared("k", lambda i=i: [i], fingerprint="pack", meta=META) for i in (0, 1)] == [[0], [0]]


@pytest.mark.parametrize("wrong_object", [np.ones(4, np.float32), np.ones(3), "text", lambda: np.ones(2, np.float32)])
def test_an_object_that_contradicts_its_metadata_is_the_packs_fault(wrong_object):
    collected = CollectedConstants()
    collected.get(("f", "n", "CPU:0", "k"), (), "pack 1", META, lambda: wrong_object)
    with pytest.raises(PluginError, match=r"'k' of 'pack 1'.*float32\[3\]"):
        collected.prepared_arrays()


def test_deferred_objects_are_stored_as_their_arrays():
    collected, array = CollectedConstants(), np.arange(3, dtype=np.float32)
    collected.get(("f", "n", "CPU:0", "k"), (), "pack 1", META, lambda: lambda: array)
    [one] = collected.prepared_arrays()
    assert one == ("f", "n", "CPU:0", "k", "pack 1", array)
    loaded_array = LoadedConstants([one]).get(("f", "n", "CPU:0", "k"), (), "pack 1", META, pytest.fail)
    assert np.array_equal(loaded_array, array)


@pytest.mark.parametrize(("other", "is_shared"), [
    (np.arange(6, dtype=np.float32).reshape(2, 3), True), (np.arange(6, dtype=np.float32).reshape(3, 2), False),
    (np.arange(1, 7, dtype=np.float32).reshape(2, 3), False)], ids=["equal", "another shape", "other elements"])
def test_functions_share_equal_objects_alone(other, is_shared):
    array, collected = np.arange(6, dtype=np.float32).reshape(2, 3), CollectedConstants()
    for function, packed in (("f", array), ("g", other)):
        meta = TensorMetadata(dtypes.float32, packed.shape)
        collected.get((function, "n", "CPU:0", "k"), (), "pack 1", meta, lambda packed=packed: packed)
    first, second = collected.prepared_arrays()
    assert first.value is array
    assert (second.value is array) is is_shared
    assert np.array_equal(second.value, other)


def test_an_array_of_a_file_that_has_changed_since_is_an_error(tmp_path):
    array = np.arange(1 << 19, dtype=np.float32)
    slot, meta = ("main", "n", "CPU:0", "k"), TensorMetadata(dtypes.float32, array.shape)
    path = tmp_path / "p.bef"
    heald.bef.dump(CompiledModel(ProgramDef({}), prepared=(PreparedConstant(*slot, "pack 1", array),)), path)
    stored = LoadedConstants(heald.bef.load(path).prepared)
    assert np.array_equal(stored.get(slot, (), "pack 1", meta, pytest.fail), array)
    with path.open("r+b") as file:
        file.truncate(100)
    with pytest.raises(FailedPrecondition, match="changed in place"):
        stored.get(slot, (), "pack 1", meta, pytest.fail)
