"""Files that ydf could not survive are typed errors, each with its fault.

`change` edits the parts of a sound model: its header, data specification, header of the forest, and nodes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from harness.recorded_forests import recorded
from heald.errors import DataLoss, ResourceExhausted, Unimplemented
from heald_decision_forests.feature_banks import Banks
from heald_decision_forests.forest import Forest
from heald_decision_forests.model_files import ModelFiles, read_model
from heald_decision_forests.tree_check import LARGEST_DEPTH
from yggdrasil_decision_forests.model.decision_tree import decision_tree_pb2


class Parts(NamedTuple):
    """The parts of a model that a case changes; `nodes` are messages."""

    header: Any
    spec: Any
    trees: Any
    nodes: list[Any]

    def forest(self, ask=lambda nbytes, what: None):
        nodes = [node.SerializeToString() for node in self.nodes]
        return Forest(ModelFiles(self.header, self.spec, self.trees, nodes), ask)

    def condition(self, kind):
        """The first condition of a kind, its node's column and all."""
        return next(node.condition for node in self.nodes if node.condition.condition.WhichOneof("type") == kind)

    def detail(self, kind):
        """The particulars of that condition."""
        return getattr(self.condition(kind).condition, kind)

    def leaf(self):
        return next(node for node in self.nodes if not node.HasField("condition"))


@pytest.fixture
def parts_of(tmp_path):
    def read(name):
        forest = recorded(name)
        files = read_model(str(forest.write(tmp_path)), forest.prefix, lambda path, _: Path(path), lambda *_: None)
        return Parts(*files[:3], [decision_tree_pb2.Node.FromString(node) for node in files.nodes])

    return read


def set_field(path, value):
    """An edit of the field at a dotted path: a part, then fields and indices."""
    def change(parts):
        *owners, last = path.split(".")
        message = parts
        for step in owners:
            message = message[int(step)] if step.isdigit() else getattr(message, step)
        if last.isdigit():
            message[int(last)] = value
        else:
            setattr(message, last, value)

    return change


def boundaries(parts):
    return parts.spec.columns[0].discretized_numerical.boundaries


HEADERS = [
    ("gbt_binary", set_field("header.label_col_idx", 99), "the label is column 99 of 6"),
    ("gbt_binary", set_field("header.label_col_idx", -1), "the label is column -1 of 6"),
    ("gbt_binary", set_field("header.label_col_idx", 0), "label of a model of the task CLASSIFICATION is CATEGORICAL"),
    ("gbt_binary", set_field("header.input_features.0", 99), "the input is column 99 of 6"),
    ("gbt_binary", set_field("header.input_features.0", 5), "column 5 is an input twice, or input and label"),
    ("gbt_binary", set_field("header.input_features.0", 1), "column 1 is an input twice"),
    ("gbt_binary", set_field("spec.columns.5.categorical.number_of_unique_values", 2), "the label has 1 classes"),
    ("gbt_binary", set_field("spec.columns.5.categorical.number_of_unique_values", 1 << 17), "has 131071 classes"),
    ("gbt_binary", set_field("spec.columns.5.categorical.number_of_unique_values", 4), "not of the task"),
    ("gbt_binary", set_field("spec.columns.3.categorical.number_of_unique_values", 0), "column 3 has 0 words"),
    ("gbt_binary", set_field("spec.columns.3.categorical.number_of_unique_values", 1 << 40), "column 3 has 10995"),
    ("gbt_binary", set_field("spec.columns.0.type", 4), "column 0 has 0 words"),
    ("gbt_binary", set_field("trees.num_trees", 2), "the nodes make 3 trees, the last whole; the header states 2"),
    ("gbt_binary", set_field("trees.num_trees_per_iter", 0), "0 an iteration"),
    ("gbt_words", set_field("trees.num_trees_per_iter", 2), "the predictions have 3 columns"),
    ("gbt_words", set_field("trees.num_trees", 8), "states 8 trees"),
    ("gbt_binary", lambda parts: parts.trees.initial_predictions.append(1), "2 initial predictions"),
    ("gbt_binary", set_field("trees.loss", 2), "the loss SQUARED_ERROR is not of the task CLASSIFICATION"),
    ("gbt_ranking", set_field("header.ranking_group_col_idx", 50), "the group is column 50"),
    ("uplift_categorical", set_field("header.uplift_treatment_col_idx", -1), "the treatment is column -1"),
    ("rf_binary", set_field("trees.num_trees", 0), "states 0 trees"),
    ("gbt_discretized", lambda parts: boundaries(parts).append(-9.0), "bins of column 0 are not in increasing order"),
    ("gbt_discretized", lambda parts: boundaries(parts).append(float("nan")), "not in increasing order"),
    ("gbt_discretized", lambda parts: boundaries(parts).extend(range(99, 70_000)), "column 0 has 69917 bins"),
]
NODES = [
    ("gbt_binary", lambda parts: parts.nodes.pop(), "the nodes make 3 trees, the last cut off"),
    ("gbt_binary", lambda parts: parts.nodes.append(parts.leaf()), "the nodes make 4 trees"),
    ("gbt_binary", lambda parts: parts.nodes.clear(), "the nodes make 0 trees"),
    ("gbt_binary", set_field("nodes.0.condition.attribute", 99), "asks about column 99, which is no input"),
    ("gbt_binary", set_field("nodes.0.condition.attribute", 5), "asks about column 5, which is no input"),
    ("gbt_binary", lambda parts: setattr(parts.condition("true_value_condition"), "attribute", 0), "0, which is NUMER"),
    ("gbt_binary", lambda parts: setattr(parts.condition("higher_condition"), "attribute", 3), "3, which is CATEG"),
    ("gbt_binary", lambda parts: parts.leaf().ClearField("regressor"), "a leaf is a None"),
    ("gbt_oblique", lambda parts: parts.detail("oblique_condition").weights.pop(), "other numbers of attributes"),
    ("gbt_oblique", lambda parts: parts.detail("oblique_condition").ClearField("attributes"), "that are missing"),
    ("gbt_oblique", lambda parts: parts.detail("oblique_condition").attributes.insert(0, 2), "that are CATEG"),
    ("gbt_discretized", lambda parts: setattr(parts.detail("discretized_higher_condition"), "threshold", 0), "bin 0"),
    ("gbt_discretized", lambda parts: setattr(parts.detail("discretized_higher_condition"), "threshold", 16), "bin 16"),
    ("rf_votes3", lambda parts: setattr(parts.leaf().classifier, "top_value", 4), "a leaf has the class 4 of 3"),
    ("rf_votes3", lambda parts: setattr(parts.leaf().classifier, "top_value", 0), "a leaf has the class 0 of 3"),
    ("rf_mean3", lambda parts: parts.leaf().classifier.distribution.counts.append(1), "5 counts for a label of 4"),
]
UNKNOWN = [
    ("gbt_binary", set_field("header.task", 6), "task ANOMALY_DETECTION"),
    ("gbt_binary", set_field("trees.loss", 10), "loss COX_PROPORTIONAL_HAZARD"),
    ("gbt_binary", lambda parts: parts.nodes[0].condition.ClearField("condition"), "condition of the kind None"),
    ("gbt_binary", set_field("spec.columns.0.type", 11), "is NUMERICAL_VECTOR_SEQUENCE"),
    ("uplift_numerical", lambda parts: parts.leaf().uplift.treatment_effect.append(1), "effects of 2 treatments"),
]


@pytest.mark.parametrize(("name", "change", "message"), [*HEADERS, *NODES])
def test_a_contradiction_is_told(parts_of, name, change, message):
    parts = parts_of(name)
    change(parts)
    with pytest.raises(DataLoss, match=message):
        parts.forest()


@pytest.mark.parametrize(("name", "change", "message"), UNKNOWN)
def test_an_unknown_kind_of_model_is_told(parts_of, name, change, message):
    parts = parts_of(name)
    change(parts)
    with pytest.raises(Unimplemented, match=message):
        parts.forest()


@pytest.mark.parametrize("kind", ["contains_condition", "contains_bitmap_condition"])
@pytest.mark.parametrize("name", ["gbt_binary", "gbt_sets"])
def test_words_beyond_a_vocabulary_are_told(parts_of, name, kind):
    parts = parts_of(name)
    condition = next(node.condition for node in parts.nodes
                     if (node.condition.condition.WhichOneof("type") or "").startswith("contains")).condition
    if kind == "contains_condition":
        condition.contains_condition.elements[:] = [1, 99]
        message = "names a word of column . beyond its"
    else:
        condition.contains_bitmap_condition.elements_bitmap = b""
        message = "has 0 bytes of bits for the . words"
    with pytest.raises(DataLoss, match=message):
        parts.forest()


def chain(parts, depth):
    """Make the model one tree of this depth."""
    template = parts.condition("higher_condition")
    inner = decision_tree_pb2.Node(condition=template)
    leaf = decision_tree_pb2.Node(regressor=decision_tree_pb2.NodeRegressorOutput(top_value=1))
    parts.nodes[:] = [node for _ in range(depth) for node in (inner, leaf)] + [leaf]
    parts.trees.num_trees = 1


def test_trees_have_a_largest_depth(parts_of):
    parts = parts_of("gbt_binary")
    chain(parts, LARGEST_DEPTH)
    banks = Banks(*recorded("gbt_binary").banks)
    assert parts.forest().predict(banks, 16).shape == (16, 2)
    chain(parts, LARGEST_DEPTH + 1)
    with pytest.raises(Unimplemented, match="deeper than 1000 nodes"):
        parts.forest()


def test_a_model_without_trees_predicts_what_it_begins_with(parts_of):
    parts = parts_of("gbt_regression")
    parts.nodes.clear()
    parts.trees.num_trees = 0
    banks = Banks(*recorded("gbt_regression").banks)
    assert set(parts.forest().predict(banks, 16).ravel()) == {parts.trees.initial_predictions[0]}


def test_the_memory_of_large_vocabularies_is_asked_for(parts_of):
    parts = parts_of("gbt_words")
    parts.spec.columns[3].categorical.number_of_unique_values = 1 << 20
    for node in parts.nodes:
        if node.condition.condition.WhichOneof("type") == "contains_bitmap_condition" and node.condition.attribute == 3:
            node.condition.condition.contains_condition.elements[:] = [1]

    def refuse(nbytes, what):
        raise ResourceExhausted(f"{what}: {nbytes}")

    with pytest.raises(ResourceExhausted, match=r"the words of a decision forest: \d{8}"):
        parts.forest(refuse)
