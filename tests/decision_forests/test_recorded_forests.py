"""The ops give the results that TF-DF gave, bit for bit.

Each recorded model has 16 examples: numbers with NaN and infinities, booleans with NaN and fractions, categories from
-3 to 9, sets with -1, unknown words and none at all.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from harness.recorded_forests import BANKS, forest_graph, load_forest, names, open_session, recorded


@pytest.mark.parametrize("name", names())
def test_predictions_and_words_are_those_of_tensorflow(name, tmp_path):
    forest = recorded(name)
    with load_forest(forest, tmp_path) as session:
        dense, words = session.run(["dense:0", "dense:1"], forest.feeds)
    np.testing.assert_array_equal(dense, forest.dense)
    assert words.tolist() == forest.words


@pytest.mark.parametrize("name", names())
def test_leaves_are_those_of_tensorflow(name, tmp_path):
    forest = recorded(name)
    with load_forest(forest, tmp_path, ["LEAVES"]) as session:
        np.testing.assert_array_equal(session.run("leaves", forest.feeds), forest.leaves)


@pytest.mark.parametrize("name", ["gbt_words", "gbt_two_sets"])
def test_an_example_alone_has_the_predictions_that_it_has_among_others(name, tmp_path):
    forest = recorded(name)
    values, set_splits, example_splits = forest.banks[3:]
    with load_forest(forest, tmp_path) as session:
        for row, (first, last) in enumerate(pairwise(example_splits)):
            splits = set_splits[first:last + 1]
            banks = [bank[row:row + 1] if bank.size else bank for bank in forest.banks[:3]]
            banks += [values[splits[0]:splits[-1]], splits - splits[0], np.int64([0, last - first])]
            dense = session.run("dense:0", dict(zip(forest.feeds, banks, strict=True)))
            np.testing.assert_array_equal(dense, forest.dense[row:row + 1])


@pytest.mark.parametrize("name", ["gbt_logits", "gbt_logits3", "gbt_binary", "gbt_words", "rf_votes3"])
def test_the_general_engine_gives_the_predictions_of_the_fast_ones(name, tmp_path):
    forest = recorded(name)
    feeds = {**forest.feeds, BANKS[1]: np.nan_to_num(forest.banks[1]) > 0.5}  # they read other booleans differently
    with load_forest(forest, tmp_path) as fast, load_forest(forest, tmp_path, ["LEAVES"]) as general:
        np.testing.assert_allclose(general.run("dense:0", feeds), fast.run("dense:0", feeds), rtol=1e-5, atol=1e-7)


def test_no_examples_have_no_predictions(tmp_path):
    forest = recorded("gbt_binary")
    with load_forest(forest, tmp_path, ["LEAVES"]) as session:
        feeds = {name: bank[:0] if bank.ndim == 2 else bank for name, bank in forest.feeds.items()}
        dense, leaves = session.run(["dense:0", "leaves"], feeds)
        assert (dense.shape, leaves.shape) == ((0, 2), (0, 3))


def test_several_threads_ask_one_model(tmp_path):
    forest = recorded("gbt_words")
    with load_forest(forest, tmp_path) as session, ThreadPoolExecutor(4) as pool:
        for dense in pool.map(lambda _: session.run("dense:0", forest.feeds), range(20)):
            np.testing.assert_array_equal(dense, forest.dense)


def test_a_second_model_for_the_same_handle_changes_nothing(tmp_path):
    forest = recorded("gbt_binary")
    with load_forest(forest, tmp_path) as session:
        session.run([], {"path": str(tmp_path / "nowhere")}, targets=["load"])
        np.testing.assert_array_equal(session.run("dense:0", forest.feeds), forest.dense)


@pytest.mark.parametrize("form", [str, lambda folder: f"{folder}/", lambda folder: [str(folder)]])
def test_a_folder_is_one_text_with_or_without_a_slash(form, tmp_path):
    forest = recorded("gbt_regression")
    with open_session(forest_graph(forest), forest.write(tmp_path)) as session:
        session.run([], {"path": form(tmp_path)}, targets=["load"])
        np.testing.assert_array_equal(session.run("dense:0", forest.feeds), forest.dense)
