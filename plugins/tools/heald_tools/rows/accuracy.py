"""The accuracy of answers, where the rows' files lie in folders that are called after their classes.

The answer of a row is the class with the largest score. A model without an output of scores answers by its output of
one integer, the class's index, or of one text, the class's name. One number with a fraction answers of two classes: the
second from 0.5 on, or from 0 on where numbers beyond 0 to 1 say that they are logits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from heald.errors import InvalidArgument, printable

from .results import best_classes, has_classes, has_scores, name_of_class

LARGEST_TABLE = 10  # classes; of more classes the most frequent mistakes are told
MOST_MISTAKES = 10
_NO_CLASS = "(no class)"


class Accuracy:
    """Answers and truths of all rows, by output. `names`: the classes in the order of the model's scores."""

    def __init__(self, names: Sequence[str], top: int) -> None:
        self._names, self._top, self._classes = names, top, frozenset(names)
        self._pairs: dict[str, Counter[tuple[str, str]]] = {}  # by output: how often (truth, answer)
        self._in_top: Counter[str] = Counter()
        self._numbers: dict[str, list[tuple[str, float]]] = {}  # by output: truths and numbers, for two classes
        self._unlabelled = 0

    def add(self, truths: Sequence[str | None], outputs: Mapping[str, Any]) -> None:
        """Count a batch. Raises InvalidArgument where no output has answers."""
        classed_rows = [row for row, truth in enumerate(truths) if truth in self._classes]
        self._unlabelled += len(truths) - len(classed_rows)
        answering = _answering_outputs(outputs, len(self._names))
        if not answering:
            shapes = ", ".join(f"{name} {list(getattr(array, 'shape', ()))}" for name, array in outputs.items())
            raise InvalidArgument(f"no output has answers among {len(self._names)} classes: {shapes}",
                                  hint="--labels FILE names all classes of the model, one a line")
        for name in answering:
            self._add_output(name, [str(truths[row]) for row in classed_rows], outputs[name][classed_rows])

    def _add_output(self, name: str, truths: Sequence[str], array: Any) -> None:
        pairs = self._pairs.setdefault(name, Counter())
        if has_scores(array, len(self._names)):
            ranked = best_classes(array, max(1, self._top))
            pairs.update(zip(truths, (self._names[row[0]] for row in ranked), strict=True))
            self._in_top[name] += sum(truth in {self._names[index] for index in row}
                                      for truth, row in zip(truths, ranked, strict=True))
        elif has_classes(array):
            answers = [name_of_class(int(index), self._names) or _NO_CLASS for index in array.reshape(-1)]
            pairs.update(zip(truths, answers, strict=True))
        elif array.dtype.kind == "f":
            self._numbers.setdefault(name, []).extend(zip(truths, array.reshape(-1).tolist(), strict=True))
        else:
            pairs.update(zip(truths, (_text(value) for value in array.reshape(-1)), strict=True))

    def lines(self) -> list[str]:
        """The accuracy of each output, and a small table of confusion."""
        lines = []
        for name, pairs in self._pairs.items():
            counts = pairs or self._pairs_of_numbers(name)
            lines += self._lines_of_output(name, counts)
        if self._unlabelled:
            lines.append(f"{self._unlabelled:,} rows are not counted: their folders are no class")
        return lines

    def _pairs_of_numbers(self, name: str) -> Counter[tuple[str, str]]:
        numbers = self._numbers.get(name, [])
        border = 0.5 if all(0 <= number <= 1 for _, number in numbers) else 0.0
        return Counter((truth, self._names[int(number >= border)]) for truth, number in numbers)

    def _lines_of_output(self, name: str, pairs: Counter[tuple[str, str]]) -> list[str]:
        total = pairs.total()
        if not total:
            return [f"accuracy of '{printable(name)}': no row has a class"]
        right = sum(count for (truth, answer), count in pairs.items() if truth == answer)
        text = f"accuracy of '{printable(name)}': {right / total:.1%} of {total:,} rows"
        if name in self._in_top and 1 < self._top < len(self._names):
            text += f"; among the best {self._top}: {self._in_top[name] / total:.1%}"
        table = _confusion_table if len(self._names) <= LARGEST_TABLE else _mistakes
        return [text, *table(pairs, self._names)]


def _answering_outputs(outputs: Mapping[str, Any], count: int) -> list[str]:
    """The outputs of scores, else of one index, else of one text or number for each row."""
    arrays = {name: array for name, array in outputs.items() if hasattr(array, "dtype")}
    one_value = [name for name, array in arrays.items() if array.size == array.shape[0]]
    return ([name for name, array in arrays.items() if has_scores(array, count)]
            or [name for name, array in arrays.items() if has_classes(array)]
            or [name for name in one_value if arrays[name].dtype.kind in "OSU"]
            or [name for name in one_value if arrays[name].dtype.kind == "f" and count == 2])


def _text(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _confusion_table(pairs: Counter[tuple[str, str]], names: Sequence[str]) -> list[str]:
    """A row for each folder, a column for each answer."""
    answers = [*names, *sorted({answer for _, answer in pairs} - set(names))]
    truths = [name for name in names if any(truth == name for truth, _ in pairs)]
    cells = [["folder", *answers], *([truth, *(str(pairs[truth, answer]) for answer in answers)] for truth in truths)]
    shown = [[printable(cell) for cell in row] for row in cells]
    widths = [max(len(row[column]) for row in shown) for column in range(len(answers) + 1)]
    return ["  " + "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in
                                                        zip(row[1:], widths[1:], strict=True))]) for row in shown]


def _mistakes(pairs: Counter[tuple[str, str]], _: Sequence[str]) -> list[str]:
    wrong = [(pair, count) for pair, count in pairs.most_common() if pair[0] != pair[1]]
    lines = [f"  {count:,} of '{printable(truth)}' answered as '{printable(answer)}'"
             for (truth, answer), count in wrong[:MOST_MISTAKES]]
    other_count = sum(count for _, count in wrong[MOST_MISTAKES:])
    return [*lines, f"  {other_count:,} other mistakes"] if other_count else lines
