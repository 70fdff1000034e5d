"""The columns of a model: its features by bank, its label, and the data specification that ydf is handed.

A file may state anything, and ydf's C++ trusts it: a wrong index ends the process. So a column is checked here, and the
messages for ydf are made anew from checked fields. They differ from the file's in three ways, none of which changes an
answer:
- Categorical columns are "already integerized": ydf takes their indices as they are. It maps bare integers of another
  column through a dictionary, and an unknown one is no error.
- Boolean columns are numerical, 0 and 1, because a boolean of ydf's datasets cannot be missing. Their mean is the value
  that stands for a missing one. `tree_check` rewrites the conditions.
- A set has one word more, which stands for a missing set, because ydf's datasets take no missing sets. The dictionary
  has only the words that conditions ask about, each under its index. No condition sees the others.

A column has its number for a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError
from heald.api import errors
from yggdrasil_decision_forests.dataset import data_spec_pb2
from yggdrasil_decision_forests.model import abstract_model_pb2

NUMERICAL, DISCRETIZED, BOOLEAN, CATEGORICAL, CATEGORICAL_SET, HASH = (
    "NUMERICAL", "DISCRETIZED_NUMERICAL", "BOOLEAN", "CATEGORICAL", "CATEGORICAL_SET", "HASH")
CLASSIFICATION, REGRESSION, RANKING, CATEGORICAL_UPLIFT, NUMERICAL_UPLIFT = (
    "CLASSIFICATION", "REGRESSION", "RANKING", "CATEGORICAL_UPLIFT", "NUMERICAL_UPLIFT")
LARGEST_VOCABULARY = 1 << 20
LARGEST_CLASS_COUNT = 1 << 16
LARGEST_BIN_COUNT = (1 << 16) - 3  # the bins have 16 bits, and two values are reserved

BANKS = {  # by kind of column: the index of the op's input that has it
    NUMERICAL: 0, DISCRETIZED: 0, BOOLEAN: 1, CATEGORICAL: 2, CATEGORICAL_SET: 3,
}
_LABEL_KINDS = {CLASSIFICATION: CATEGORICAL, REGRESSION: NUMERICAL, RANKING: NUMERICAL, CATEGORICAL_UPLIFT: CATEGORICAL,
                NUMERICAL_UPLIFT: NUMERICAL}
_IMPLEMENTED_TASKS = frozenset(_LABEL_KINDS)


class Column(NamedTuple):
    """A column: its place in the data specification, its kind, and its number of words or bins.

    `is_mostly_true`: The value of a boolean that stands for a missing one where a model replaces those globally.
    """

    number: int
    kind: str
    size: int = 0
    is_mostly_true: bool = False


class Columns(NamedTuple):
    """The checked facts about a model but for its trees.

    `features`: The input columns by index, in the order in which a bank has them.
    `label`: For a classification the number of classes is `label.size - 1`; the class 0 is out of vocabulary.
    `words`: A word for each column of the predictions.
    `is_pair`: True where ydf predicts one probability p, and TF-DF both 1 - p and p.
    `header`, `data_spec`: The messages that ydf is handed.
    """

    features: Mapping[int, Column]
    label: Column
    task: str
    words: tuple[bytes, ...]
    is_pair: bool
    header: Any
    data_spec: Any


def check_columns(header: Any, data_spec: Any) -> Columns:
    """Check both messages of a model. Raises DataLoss for a contradiction, Unimplemented for a kind of data."""
    task = _enum_name(abstract_model_pb2.Task, header.task, "task")
    if task not in _IMPLEMENTED_TASKS:
        raise errors.Unimplemented(f"models of the task {task} cannot be run; known: {', '.join(_LABEL_KINDS)}")
    label = _column(data_spec, header.label_col_idx, "label")
    if label.kind != _LABEL_KINDS[task]:
        raise errors.DataLoss(f"the label of a model of the task {task} is {_LABEL_KINDS[task]}, not {label.kind}")
    if label.kind == CATEGORICAL and not 2 < label.size <= LARGEST_CLASS_COUNT:
        raise errors.DataLoss(f"the label has {label.size - 1} classes; 2 to {LARGEST_CLASS_COUNT} are possible")
    further = _further_columns(header, data_spec, task)
    features: dict[int, Column] = {}
    for index in header.input_features:
        if index in features or index == label.number:
            raise errors.DataLoss(f"column {index} is an input twice, or input and label")
        features[index] = _column(data_spec, index, "input")
    is_probability = header.classification_outputs_probabilities
    words = _words(data_spec.columns[label.number], label, task, is_probability)
    is_pair = task == CLASSIFICATION and label.size == 3 and is_probability
    new_data_spec = _new_data_spec(data_spec, {**further, **features, label.number: label})
    return Columns(features, label, task, words, is_pair, _new_header(header, task), new_data_spec)


def add_words(data_spec: Any, words: Mapping[int, Iterable[int]]) -> None:
    """Add the dictionaries of sets to the specification for ydf: by column the words that conditions ask about."""
    for column, indices in words.items():
        for index in indices:
            data_spec.columns[column].categorical.items[str(index)].index = index


def _enum_name(enum: Any, number: int, what: str) -> str:
    try:
        return str(enum.Name(number))
    except ValueError:
        raise errors.DataLoss(f"the {what} has the unknown number {number}") from None


def _column(data_spec: Any, index: int, what: str) -> Column:
    if not 0 <= index < len(data_spec.columns):
        raise errors.DataLoss(f"the {what} is column {index} of {len(data_spec.columns)}")
    spec = data_spec.columns[index]
    kind = _enum_name(data_spec_pb2.ColumnType, spec.type, "kind of a column")
    if kind in (CATEGORICAL, CATEGORICAL_SET):
        size = spec.categorical.number_of_unique_values
        if not 0 < size <= LARGEST_VOCABULARY:
            raise errors.DataLoss(f"column {index} has {size} words; 1 to {LARGEST_VOCABULARY} are possible")
        return Column(index, kind, size)
    if kind == DISCRETIZED:
        return Column(index, kind, _check_bins(spec.discretized_numerical.boundaries, index))
    if kind not in BANKS:
        raise errors.Unimplemented(f"the {what}, column {index}, is {kind}; known: {', '.join(BANKS)}")
    return Column(index, kind, is_mostly_true=spec.boolean.count_true >= spec.boolean.count_false)


def _check_bins(boundaries: Sequence[float], index: int) -> int:
    if len(boundaries) >= LARGEST_BIN_COUNT:
        raise errors.DataLoss(f"column {index} has {len(boundaries) + 1} bins; {LARGEST_BIN_COUNT} are possible")
    if not all(low <= high for low, high in pairwise(boundaries)):
        raise errors.DataLoss(f"the bins of column {index} are not in increasing order")
    return len(boundaries) + 1


def _words(spec: Any, label: Column, task: str, is_probability: bool) -> tuple[bytes, ...]:
    if task != CLASSIFICATION:
        return (b"",)
    if label.size == 3 and not is_probability:
        return (b"logit",)
    if spec.categorical.is_already_integerized:
        return tuple(str(index).encode() for index in range(1, label.size))
    words = _dictionary(spec)
    return tuple(words.get(index, b"") for index in range(1, label.size))


def _dictionary(spec: Any) -> dict[int, bytes]:
    """Return the words of a column by index. Another message of ydf's has them as bytes, which need be no UTF-8."""
    message = data_spec_pb2.CategoricalSpec.InternalCategoricalSpecWithoutMap
    try:
        return {item.value.index: item.key for item in message.FromString(spec.categorical.SerializeToString()).items}
    except DecodeError as error:
        raise errors.DataLoss(f"the dictionary of the label is damaged: {error}") from None


def _further_columns(header: Any, data_spec: Any, task: str) -> dict[int, Column]:
    """Return the columns besides features and label that a model of the task names."""
    if task == RANKING:
        index = header.ranking_group_col_idx
        if not 0 <= index < len(data_spec.columns):
            raise errors.DataLoss(f"the group is column {index} of {len(data_spec.columns)}")
        return {index: Column(index, HASH)}
    if task in (CATEGORICAL_UPLIFT, NUMERICAL_UPLIFT):
        treatment = _column(data_spec, header.uplift_treatment_col_idx, "treatment")
        if treatment.kind != CATEGORICAL:
            raise errors.DataLoss(f"the treatment, column {treatment.number}, is {treatment.kind}")
        return {treatment.number: treatment}
    return {}


def _new_header(header: Any, task: str) -> Any:
    new = abstract_model_pb2.AbstractModel(
        name=header.name, task=header.task, label_col_idx=header.label_col_idx, input_features=header.input_features,
        classification_outputs_probabilities=header.classification_outputs_probabilities, is_pure_model=True)
    if task == RANKING:
        new.ranking_group_col_idx = header.ranking_group_col_idx
    if task in (CATEGORICAL_UPLIFT, NUMERICAL_UPLIFT):
        new.uplift_treatment_col_idx = header.uplift_treatment_col_idx
    return new


def _new_data_spec(data_spec: Any, columns: Mapping[int, Column]) -> Any:
    """Return the specification for ydf. A column that the model does not use keeps its index alone."""
    new = data_spec_pb2.DataSpecification()
    for index, spec in enumerate(data_spec.columns):
        column = columns.get(index, Column(index, HASH))
        _WRITERS[column.kind](new.columns.add(name=str(index)), spec, column)
    return new


def _write_hash(target: Any, _: Any, __: Column) -> None:
    target.type = data_spec_pb2.HASH


def _write_numerical(target: Any, spec: Any, _: Column) -> None:
    target.type = data_spec_pb2.NUMERICAL
    target.numerical.mean = spec.numerical.mean


def _write_discretized(target: Any, spec: Any, _: Column) -> None:
    target.type = data_spec_pb2.DISCRETIZED_NUMERICAL
    target.numerical.mean = spec.numerical.mean
    bins = target.discretized_numerical
    bins.boundaries.extend(spec.discretized_numerical.boundaries)
    bins.maximum_num_bins = LARGEST_BIN_COUNT


def _write_boolean(target: Any, _: Any, column: Column) -> None:
    target.type = data_spec_pb2.NUMERICAL
    target.numerical.mean = float(column.is_mostly_true)


def _write_categorical(target: Any, spec: Any, column: Column) -> None:
    target.type = data_spec_pb2.CATEGORICAL
    words = target.categorical
    words.number_of_unique_values, words.is_already_integerized = column.size, True
    common = spec.categorical.most_frequent_value
    words.most_frequent_value = common if 0 <= common < column.size else 0


def _write_set(target: Any, spec: Any, column: Column) -> None:
    target.type = data_spec_pb2.CATEGORICAL_SET
    target.categorical.number_of_unique_values = column.size + 1


_WRITERS = {HASH: _write_hash, NUMERICAL: _write_numerical, DISCRETIZED: _write_discretized, BOOLEAN: _write_boolean,
            CATEGORICAL: _write_categorical, CATEGORICAL_SET: _write_set}
