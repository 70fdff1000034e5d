"""Checks of the trees, and the trees that ydf is handed. `columns` says in which form they are.

A file has the nodes of all trees one behind the other. A node with a condition is followed by its two subtrees. ydf's
C++ follows each index, and reads children by recursion. So the shape of the trees, every index of a condition and the
size of every leaf are checked here, for all that a file may state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from google.protobuf.message import DecodeError
from heald.api import errors
from yggdrasil_decision_forests.model.decision_tree import decision_tree_pb2
from yggdrasil_decision_forests.model.gradient_boosted_trees import gradient_boosted_trees_pb2

from .columns import (
    BOOLEAN,
    CATEGORICAL,
    CATEGORICAL_SET,
    CLASSIFICATION,
    DISCRETIZED,
    NUMERICAL,
    RANKING,
    REGRESSION,
    Column,
    Columns,
)

LARGEST_DEPTH = 1_000  # of a tree; ydf reads subtrees by recursion
_MASK_BYTES = 16  # of a word in a tree, as measured with ydf 0.16
_HALF = 0.5  # between the numbers of false and true

_CONDITION_KINDS = {  # by kind of condition: the kinds of columns that it may ask about
    "na_condition": frozenset((NUMERICAL, DISCRETIZED, BOOLEAN, CATEGORICAL, CATEGORICAL_SET)),
    "higher_condition": frozenset((NUMERICAL,)),
    "true_value_condition": frozenset((BOOLEAN,)),
    "contains_condition": frozenset((CATEGORICAL, CATEGORICAL_SET)),
    "contains_bitmap_condition": frozenset((CATEGORICAL, CATEGORICAL_SET)),
    "discretized_higher_condition": frozenset((DISCRETIZED,)),
    "oblique_condition": frozenset((NUMERICAL,)),
}
_LOSSES = {  # by loss of gradient boosted trees: the tasks; and whether each class has trees of its own
    "BINOMIAL_LOG_LIKELIHOOD": ((CLASSIFICATION,), False), "BINARY_FOCAL_LOSS": ((CLASSIFICATION,), False),
    "MULTINOMIAL_LOG_LIKELIHOOD": ((CLASSIFICATION,), True), "SQUARED_ERROR": ((REGRESSION,), False),
    "POISSON": ((REGRESSION,), False), "MEAN_AVERAGE_ERROR": ((REGRESSION,), False),
    "LAMBDA_MART_NDCG5": ((RANKING,), False), "LAMBDA_MART_NDCG": ((RANKING,), False),
    "XE_NDCG_MART": ((RANKING,), False),
}

CheckLeaf = Callable[[Any], None]  # raises DataLoss for a leaf that its model cannot have


class TreeCheck:
    """Checks the nodes of a model, and rewrites them for ydf.

    `words`: By the number of each set column, the words that a condition asks about. The number of the column's words
    stands for a missing set.
    `has_local_booleans`: True where a condition takes a missing boolean for another value than all others do. TF-DF's
    fast engines refuse such a model. ydf does not see that any more.
    """

    def __init__(self, features: Mapping[int, Column], check_leaf: CheckLeaf) -> None:
        self.words = {index: {column.size} for index, column in features.items() if column.kind == CATEGORICAL_SET}
        self._features = features
        self._check_leaf = check_leaf
        self.has_local_booleans = False
        self._masks = set[tuple[int, int]]()  # numbers of a tree and of a column whose words it asks about

    def rewrite(self, nodes: Iterable[bytes], count: int) -> list[bytes]:
        """Return the nodes for ydf. `count` is the number of trees that a header states.

        Raises DataLoss for damaged nodes, Unimplemented for an unknown condition.
        """
        rewritten, waiting, tree_count = list[bytes](), list[int](), 0  # `waiting`: depths of subtrees to come
        for data in nodes:
            if not waiting:
                tree_count += 1
                waiting.append(0)
            node, depth = _parse_node(data), waiting.pop()
            if node.HasField("condition"):
                if depth >= LARGEST_DEPTH:
                    raise errors.Unimplemented(f"a tree is deeper than {LARGEST_DEPTH} nodes")
                self._rewrite_condition(node.condition, tree_count)
                waiting += (depth + 1, depth + 1)
            else:
                self._check_leaf(node)
            rewritten.append(node.SerializeToString())
        if waiting or tree_count != count:
            raise errors.DataLoss(f"the nodes make {tree_count} trees, the last {'cut off' if waiting else 'whole'}; "
                                  f"the header states {count}")
        return rewritten

    def mask_bytes(self) -> int:
        """Return the memory that ydf's fast engines need for words: a mask for each word of a tree's columns."""
        return _MASK_BYTES * sum(self._features[number].size for _, number in self._masks)

    def _rewrite_condition(self, node_condition: Any, tree: int) -> None:
        condition, kind = node_condition.condition, node_condition.condition.WhichOneof("type")
        column = _feature(self._features, node_condition.attribute)
        if kind not in _CONDITION_KINDS:
            raise errors.Unimplemented(f"a condition of the kind {kind} is not known")
        if column.kind not in _CONDITION_KINDS[kind]:
            raise errors.DataLoss(f"a {kind} asks about column {column.number}, which is {column.kind}")
        if kind in _DETAIL_CHECKS:
            _DETAIL_CHECKS[kind](getattr(condition, kind), column, self._features)
        if column.kind in (CATEGORICAL, CATEGORICAL_SET):
            self._masks.add((tree, column.number))
        if kind == "true_value_condition":
            self.has_local_booleans |= node_condition.na_value != column.is_mostly_true
            condition.higher_condition.threshold = _HALF
        elif column.kind == CATEGORICAL_SET:
            self._rewrite_set_condition(node_condition, condition, kind, column)

    def _rewrite_set_condition(self, node_condition: Any, condition: Any, kind: str, column: Column) -> None:
        """Make a condition on a set one that names its words, the missing set's among them if that is true for it."""
        words = _named_words(condition, kind)
        if kind == "na_condition" or node_condition.na_value:
            words = [*words, column.size]
        condition.contains_condition.elements[:] = words
        condition.contains_condition.SetInParent()
        self.words[column.number].update(words)


def _named_words(condition: Any, kind: str) -> list[int]:
    """Return the words that a condition names, in increasing order."""
    if kind == "contains_condition":
        return sorted(set(condition.contains_condition.elements))
    bitmap = condition.contains_bitmap_condition.elements_bitmap if kind == "contains_bitmap_condition" else b""
    return [8 * index + bit for index, byte in enumerate(bitmap) if byte for bit in range(8) if byte >> bit & 1]


def _parse_node(data: bytes) -> Any:
    try:
        return decision_tree_pb2.Node.FromString(data)
    except DecodeError as error:
        raise errors.DataLoss(f"a node is damaged: {error}") from None


def _feature(features: Mapping[int, Column], index: int) -> Column:
    column = features.get(index)
    if column is None:
        raise errors.DataLoss(f"a condition asks about column {index}, which is no input of the model")
    return column


def _check_elements(condition: Any, column: Column, _: Mapping[int, Column]) -> None:
    if any(not 0 <= element < column.size for element in condition.elements):
        raise errors.DataLoss(f"a condition names a word of column {column.number} beyond its {column.size}")


def _check_bitmap(condition: Any, column: Column, _: Mapping[int, Column]) -> None:
    expected_size = (column.size + 7) // 8
    if len(condition.elements_bitmap) != expected_size:
        raise errors.DataLoss(f"a condition has {len(condition.elements_bitmap)} bytes of bits for the {column.size} "
                              f"words of column {column.number}; {expected_size} are needed")


def _check_bin(condition: Any, column: Column, _: Mapping[int, Column]) -> None:
    if not 1 <= condition.threshold < column.size:
        raise errors.DataLoss(f"a condition has the bin {condition.threshold} of the {column.size} of column "
                              f"{column.number}")


def _check_oblique(condition: Any, _: Column, features: Mapping[int, Column]) -> None:
    kinds = {_feature(features, index).kind for index in condition.attributes}
    if kinds - _CONDITION_KINDS["oblique_condition"] or not condition.attributes:
        raise errors.DataLoss(f"an oblique condition is over columns that are {', '.join(sorted(kinds)) or 'missing'}")
    sizes = {len(condition.weights), len(condition.na_replacements) or len(condition.attributes)}
    if sizes != {len(condition.attributes)}:
        raise errors.DataLoss("an oblique condition has other numbers of attributes, weights and replacements")


_DETAIL_CHECKS = {"contains_condition": _check_elements, "contains_bitmap_condition": _check_bitmap,
                  "discretized_higher_condition": _check_bin, "oblique_condition": _check_oblique}


def check_gradient_boosted_trees(header: Any, columns: Columns) -> CheckLeaf:
    """Check the header of gradient boosted trees, and return the check of their leaves."""
    loss = gradient_boosted_trees_pb2.Loss
    name = loss.Name(header.loss) if header.loss in loss.values() else str(header.loss)
    if name not in _LOSSES:
        raise errors.Unimplemented(f"gradient boosted trees of the loss {name} cannot be run; known: "
                                   f"{', '.join(_LOSSES)}")
    tasks, is_by_class = _LOSSES[name]
    if columns.task not in tasks or (columns.task == CLASSIFICATION and not is_by_class and columns.label.size != 3):
        raise errors.DataLoss(f"the loss {name} is not of the task {columns.task} with a label of {columns.label.size} "
                              "words")
    width = columns.label.size - 1 if is_by_class else 1
    if header.num_trees_per_iter != width or len(header.initial_predictions) != width or header.num_trees % width:
        raise errors.DataLoss(
            f"the header states {header.num_trees} trees, {header.num_trees_per_iter} an iteration, and "
            f"{len(header.initial_predictions)} initial predictions; the predictions have {width} columns")
    return _check_regressor


def check_random_forest(header: Any, columns: Columns) -> CheckLeaf:
    """Check the header of a random forest, and return the check of its leaves."""
    if header.num_trees < 1:
        raise errors.DataLoss(f"the header states {header.num_trees} trees; a random forest has one at least")
    if columns.task == RANKING:
        raise errors.Unimplemented("random forests of the task RANKING cannot be run")
    if columns.task == REGRESSION:
        return _check_regressor
    if columns.task != CLASSIFICATION:
        return _check_uplift
    return _vote_check(columns.label.size) if header.winner_take_all_inference else _mean_check(columns.label.size)


def _check_output(node: Any, kind: str) -> None:
    if node.WhichOneof("output") != kind:
        raise errors.DataLoss(f"a leaf is a {node.WhichOneof('output')}; the model's are of the kind {kind}")


def _check_regressor(node: Any) -> None:
    _check_output(node, "regressor")


def _check_uplift(node: Any) -> None:
    _check_output(node, "uplift")
    if len(node.uplift.treatment_effect) != 1:
        raise errors.Unimplemented(f"a leaf has the effects of {len(node.uplift.treatment_effect)} treatments; models "
                                   "of one treatment can be run")


def _vote_check(label_size: int) -> CheckLeaf:
    def check(node: Any) -> None:
        _check_output(node, "classifier")
        if not 1 <= node.classifier.top_value < label_size:
            raise errors.DataLoss(f"a leaf has the class {node.classifier.top_value} of {label_size - 1}")
        if node.classifier.HasField("distribution"):
            _check_distribution(node, label_size)

    return check


def _mean_check(label_size: int) -> CheckLeaf:
    def check(node: Any) -> None:
        _check_output(node, "classifier")
        _check_distribution(node, label_size)

    return check


def _check_distribution(node: Any, label_size: int) -> None:
    counts = node.classifier.distribution.counts
    if len(counts) != label_size:
        raise errors.DataLoss(f"a leaf has {len(counts)} counts for a label of {label_size} words")
