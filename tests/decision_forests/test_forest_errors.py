"""Inputs that do not fit a model, and models that cannot be loaded, are typed errors."""

from __future__ import annotations

import os

import heald
import numpy as np
import pytest
from harness.recorded_forests import BANK_TYPES, BANKS, forest_graph, load_forest, open_session, recorded
from heald.api import Graph, Node, dtypes
from heald.errors import FailedPrecondition, InvalidArgument, NotFound, PermissionDenied, Unknown


@pytest.fixture
def binary(tmp_path):
    """A recorded model and a session that has loaded it."""
    forest = recorded("gbt_binary")
    with load_forest(forest, tmp_path) as session:
        yield forest, session


@pytest.mark.parametrize("change", [lambda bank: bank[:, :-1], lambda bank: np.concatenate([bank, bank], 1)])
@pytest.mark.parametrize("bank", BANKS[:3])
def test_a_bank_of_another_width_is_refused(binary, bank, change):
    forest, session = binary
    with pytest.raises(InvalidArgument, match=r"has \d columns; the model has \d such features"):
        session.run("dense:0", forest.feeds | {bank: change(forest.feeds[bank])})


@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.parametrize("bank", BANKS[:3])
def test_banks_of_other_numbers_of_examples_are_refused(binary, bank, rows):
    forest, session = binary
    with pytest.raises(InvalidArgument, match=f"{rows} and 16 examples|16 and {rows} examples"):
        session.run("dense:0", forest.feeds | {bank: forest.feeds[bank][:rows]})


@pytest.mark.parametrize("bank", BANKS)
def test_a_bank_of_another_rank_is_refused(binary, bank):
    forest, session = binary
    with pytest.raises(InvalidArgument, match="dimensions, given shape"):
        session.run("dense:0", forest.feeds | {bank: forest.feeds[bank][None]})


@pytest.mark.parametrize(("bank", "change"), [
    (3, lambda values: values[:-1]), (4, lambda splits: splits[:-1]), (4, lambda splits: splits + 1),
    (4, lambda splits: splits * -1), (4, lambda splits: splits[:0]), (4, lambda splits: splits[::-1]),
    (5, lambda splits: splits[:-1]), (5, lambda splits: splits * 2), (5, lambda splits: splits // 2),
    (5, lambda splits: np.where(splits == splits[3], splits + 1, splits)), (5, lambda splits: splits[:0]),
    (4, lambda splits: np.where(splits == splits[-1], 2**62, splits))])
def test_splits_that_do_not_divide_the_sets_are_refused(tmp_path, bank, change):
    forest = recorded("gbt_two_sets")
    with load_forest(forest, tmp_path) as session, pytest.raises(InvalidArgument):
        session.run("dense:0", forest.feeds | {BANKS[bank]: change(forest.banks[bank])})


@pytest.mark.parametrize("width", [1, 3])
def test_predictions_of_another_width_are_refused(tmp_path, width):
    forest = recorded("gbt_binary")
    wrong = forest._replace(dense=np.empty((16, width)))
    with load_forest(wrong, tmp_path) as session, pytest.raises(InvalidArgument, match="have 2 columns"):
        session.run("dense:0", forest.feeds)


def test_a_model_that_is_not_loaded_says_so(tmp_path):
    forest = recorded("gbt_binary")
    refused = pytest.raises(FailedPrecondition, match="the decision forest is not loaded")
    with open_session(forest_graph(forest), tmp_path) as session, refused:
        session.run("dense:0", forest.feeds)


def test_leaves_need_a_model_that_is_loaded_for_them(binary):
    forest, session = binary
    with pytest.raises(FailedPrecondition, match="loaded without its leaves") as caught:
        session.run("leaves", forest.feeds)
    assert caught.value.hint == 'load it with output_types=["LEAVES"]'


def load(tmp_path, path, **attrs):
    forest = recorded("gbt_binary")
    with open_session(forest_graph(forest, **attrs), forest.write(tmp_path)) as session:
        session.run([], {"path": path}, targets=["load"])


def test_the_error_of_a_missing_model_names_the_file(tmp_path):
    with pytest.raises(NotFound, match=r"nowhere/naryheader.pb'"):
        load(tmp_path, str(tmp_path / "nowhere"))
    with pytest.raises(NotFound, match=r"/zzheader.pb'"):
        load(tmp_path, str(tmp_path), file_prefix="zz")
    with pytest.raises(NotFound, match="header.pb/naryheader.pb'"):
        load(tmp_path, str(tmp_path / "naryheader.pb"))


@pytest.mark.parametrize("path", [[], ["a", "b"]])
def test_a_path_is_one_text(tmp_path, path):
    with pytest.raises(InvalidArgument, match="path is one text"):
        load(tmp_path, np.array(path, object))


def test_an_unknown_kind_of_output_is_refused(tmp_path):
    with pytest.raises(InvalidArgument, match="output type 'LEAFS' is not known; known: LEAVES"):
        load(tmp_path, str(tmp_path), output_types=["LEAFS"])


def test_a_model_of_the_general_engine_is_refused_where_it_may_not_be_slow(tmp_path):
    with pytest.raises(Unknown, match="allow_slow_inference is false"):
        load_forest(recorded("gbt_local"), tmp_path, allow_slow_inference=False)
    load_forest(recorded("rf_binary"), tmp_path, allow_slow_inference=False).close()


@pytest.mark.parametrize("prefix", ["", "../", "sub/../../"])
def test_a_model_beyond_the_permitted_folders_is_not_read(tmp_path, prefix):
    forest = recorded("gbt_regression")
    permitted, outside = tmp_path / "permitted", tmp_path / "outside"
    for folder in (permitted, outside, permitted / "sub"):
        folder.mkdir()
    forest.write(outside)
    forest.write(tmp_path)
    graph = forest_graph(forest, file_prefix=prefix)
    with open_session(graph, permitted) as session, pytest.raises(PermissionDenied, match="may not read"):
        session.run([], {"path": str(permitted if prefix else outside)}, targets=["load"])
    with heald.Session(forest_graph(forest)) as session, pytest.raises(PermissionDenied, match="config permits none"):
        session.run([], {"path": str(outside)}, targets=["load"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
@pytest.mark.parametrize("kind", ["pipe", "folder"])
@pytest.mark.parametrize("name", ["header.pb", "data_spec.pb", "gradient_boosted_trees_header.pb",
                                  "nodes-00000-of-00001"])
def test_a_file_that_is_no_regular_file_is_refused(tmp_path, name, kind):
    forest = recorded("gbt_regression")
    with open_session(forest_graph(forest), forest.write(tmp_path)) as session:
        (tmp_path / name).unlink()
        (os.mkfifo if kind == "pipe" else os.mkdir)(tmp_path / name)
        with pytest.raises(InvalidArgument, match="is no regular file"):
            session.run([], {"path": str(tmp_path)}, targets=["load"])


@pytest.mark.parametrize("name", ["dense", "leaves", "load"])
def test_a_handle_of_something_else_is_refused(tmp_path, name):
    forest = recorded("gbt_binary")
    table = Node("model", "HashTableV2", attrs={"key_dtype": dtypes.string, "value_dtype": dtypes.int64})
    refused = pytest.raises(InvalidArgument, match="handle of a decision forest is expected here, given a HashTable")
    with open_session(forest_graph(forest).replace(nodes=[table]), tmp_path) as session, refused:
        session.run([], forest.feeds | {"path": str(tmp_path)}, targets=[name])


def identified_graph(forest):
    """Two models by their identifiers; `first` and `second` are their predictions."""
    banks = [Node(name, "Placeholder", attrs={"dtype": dtype}) for name, dtype in zip(BANKS, BANK_TYPES, strict=True)]
    nodes = [Node("path", "Placeholder", attrs={"dtype": dtypes.string}),
             Node("load", "SimpleMLLoadModelFromPath", ["path"], attrs={"model_identifier": "first"})]
    nodes += [Node(name, "SimpleMLInferenceOp", [*BANKS], attrs={"model_identifier": name, "dense_output_dim": 1})
              for name in ("first", "second")]
    return Graph([*banks, *nodes])


def test_models_are_found_by_their_identifiers(tmp_path):
    forest = recorded("gbt_regression")
    with open_session(identified_graph(forest), forest.write(tmp_path)) as session:
        with pytest.raises(FailedPrecondition, match="is not loaded"):
            session.run("first:0", forest.feeds)
        session.run([], {"path": str(tmp_path)}, targets=["load"])
        np.testing.assert_array_equal(session.run("first:0", forest.feeds), forest.dense)
        with pytest.raises(FailedPrecondition, match="is not loaded"):
            session.run("second:0", forest.feeds)
