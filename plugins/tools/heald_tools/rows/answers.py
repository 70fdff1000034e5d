"""The answers to a batch: its table or its pictures, and the accuracy where the rows' folders name their classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .accuracy import Accuracy
from .folder_labels import FolderLabels
from .journal import Reached
from .output_options import OutputOptions
from .picture_sink import PictureSink
from .results import Labels, Table, beside, columns_of_outputs, has_scores
from .row_batch import RowBatch, column_or_none
from .sinks import Sink
from .sources import Source


class Answers:
    """Answers become rows of a table. `keep`: columns of the sources that the table has, too."""

    def __init__(self, sources: Sequence[Source], keep: Sequence[str], options: OutputOptions) -> None:
        """Raises as `FolderLabels`, where the options ask for labels from folders."""
        self._keep, self._threshold, self._labels = keep, options.threshold, options.labels
        self._top = options.top
        self._folders: FolderLabels | None = None
        if options.from_folders:
            source = next((source for source in sources if source.format.decoder), sources[0])
            self._folders = FolderLabels(source, options.labels.names if options.labels is not None else None)
            self._accuracy = Accuracy(self._folders.names, options.top)

    def write(self, sink: Sink | PictureSink, rows: RowBatch, outputs: Mapping[str, Any], reached: Reached) -> None:
        """Write the answers of a batch. Raises InvalidArgument for outputs that are no such answers."""
        folders = None
        if self._folders is not None:
            folders = [self._folders.folder_of(str(file)) for file in rows.index["file"]]
            self._accuracy.add(folders, outputs)
        if isinstance(sink, PictureSink):
            sink.write_pictures(rows, outputs, reached)
        else:
            sink.write(self._table_of(rows, folders, outputs), reached)

    def _table_of(self, rows: RowBatch, folders: Sequence[str | None] | None, outputs: Mapping[str, Any]) -> Table:
        columns: Table = {**rows.index, **({"label": folders} if folders is not None else {}),
                          **{name: column_or_none(rows, name) for name in self._keep}}
        return beside(columns, columns_of_outputs(outputs, self._labels_of(outputs), self._threshold))

    def _labels_of(self, outputs: Mapping[str, Any]) -> Labels | None:
        """The labels of the user, else the folders' names where they fit an output."""
        if self._labels is not None or self._folders is None:
            return self._labels
        names = self._folders.names
        has_any = any(has_scores(array, len(names)) for array in outputs.values())
        return Labels(names, self._top) if has_any else None

    def notes(self, *, resumed: bool) -> list[str]:
        """Lines about all rows, for the end."""
        if self._folders is None:
            return []
        return [*self._accuracy.lines(), *(["rows before --resume are not counted"] if resumed else [])]
