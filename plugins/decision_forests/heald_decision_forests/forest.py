"""Forest: a model that ydf computes.

The checked messages are handed to ydf as bytes in its format of serialized models, so no file is read twice. The format
is a blob sequence of four records: a magic word, the headers, the data specification, and the blob sequence of nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import errors, wire
from ydf.cc import ydf

from .blob_sequence import write_records
from .columns import add_words, check_columns
from .feature_banks import Array, Banks, FeatureColumns
from .leaf_sums import LeafSums
from .model_files import GRADIENT_BOOSTED_TREES, RANDOM_FOREST, Ask, ModelFiles
from .tree_check import TreeCheck, check_gradient_boosted_trees, check_random_forest

_HEADER_CHECKS = {GRADIENT_BOOSTED_TREES: check_gradient_boosted_trees, RANDOM_FOREST: check_random_forest}
_MAGIC = b"YDF"
_HEADER_FIELD, _FOREST_FIELDS = 1, {GRADIENT_BOOSTED_TREES: 1001, RANDOM_FOREST: 1002}  # of ydf's SerializedModel
_ONE_THREAD = 1  # a call computes in the thread of its kernel


class Forest:
    """A model. It is immutable, and several threads may ask it at once.

    `words`: A word for each column of the predictions.
    `is_fast`: True where a fast engine computes the predictions.
    """

    def __init__(self, files: ModelFiles, ask: Ask, *, gives_leaves: bool = False) -> None:
        """`gives_leaves`: True for a model that is asked for leaves, too. The general engine computes such a model.

        Raises DataLoss or Unimplemented for a model that ydf cannot be handed. Raises ResourceExhausted for one that
        needs more memory than `ask` grants.
        """
        columns = check_columns(files.header, files.data_spec)
        header = files.forest_header
        check = TreeCheck(columns.features, _HEADER_CHECKS[files.header.name](header, columns))
        nodes = check.rewrite(files.nodes, header.num_trees)
        ask(check.mask_bytes(), "the words of a decision forest")
        add_words(columns.data_spec, check.words)
        self.words = columns.words
        self.tree_count = int(header.num_trees)
        self._columns = columns
        self._model = _make_model(files.header.name, columns.header, header, columns.data_spec, nodes)
        self.gives_leaves = gives_leaves
        is_general = gives_leaves or check.has_local_booleans
        self.is_fast = not is_general and bool(self._model.ListCompatibleEngines())
        self._features = FeatureColumns(columns.features, check.words, is_fast=self.is_fast)
        has_logits = files.header.name == GRADIENT_BOOSTED_TREES and header.output_logits
        self._leaf_sums = LeafSums(nodes, header.initial_predictions) if has_logits and not self.is_fast else None

    def example_count(self, banks: Banks) -> int:
        """Return the number of examples. Raises InvalidArgument for banks that do not fit the model."""
        return self._features.example_count(banks)

    def predict(self, banks: Banks, count: int) -> Array:
        """Return the predictions, [count, len(words)]."""
        if not count:
            return np.empty((0, len(self.words)), np.float32)
        if self._leaf_sums is not None:
            return self._leaf_sums.sum(self.leaves(banks, count))
        predictions = _call(self._model.Predict, self._dataset(banks), not self.is_fast, _ONE_THREAD)
        if self._columns.is_pair:
            return np.stack((1 - predictions, predictions), 1)
        return np.ascontiguousarray(predictions.reshape(count, len(self.words)))

    def leaves(self, banks: Banks, count: int) -> Array:
        """Return for each example the index of its leaf in each tree, [count, tree_count]."""
        if not count:
            return np.empty((0, self.tree_count), np.int32)
        leaves = _call(self._model.PredictLeaves, self._dataset(banks))
        return np.ascontiguousarray(leaves, np.int32).reshape(count, self.tree_count)

    def _dataset(self, banks: Banks) -> Any:
        dataset = ydf.VerticalDataset()
        dataset.CreateColumnsFromDataSpec(self._columns.data_spec)
        self._features.fill(dataset, banks)
        dataset.SetAndCheckNumRowsAndFillMissing(False)
        return dataset


def _make_model(kind: str, header: Any, forest_header: Any, data_spec: Any, nodes: list[bytes]) -> Any:
    forest_header = forest_header.FromString(forest_header.SerializeToString())
    forest_header.node_format, forest_header.num_node_shards = "BLOB_SEQUENCE", 1
    headers = (wire.put_bytes(_HEADER_FIELD, header.SerializeToString())
               + wire.put_bytes(_FOREST_FIELDS[kind], wire.put_bytes(1, forest_header.SerializeToString())))
    data = write_records((_MAGIC, headers, data_spec.SerializeToString(), write_records(nodes)))
    return _call(ydf.DeserializeModel, data)


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of ydf's. Raises DataLoss for a model that ydf refuses."""
    try:
        return function(*arguments)
    except (ValueError, RuntimeError) as error:
        raise errors.DataLoss(f"ydf does not take the model: {error}") from None
