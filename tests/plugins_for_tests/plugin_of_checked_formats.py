"""The format of `plugin_of_formats` under another first word, with a typed error for each fault of a file."""

from heald.api import errors, hookimpl
from plugin_of_formats import ScaleSource

HEALD_API = (1, 0)


class CheckedSource(ScaleSource):
    def initial_state(self):
        (initializer,) = super().initial_state()
        return [initializer._replace(values=lambda: self._checked(initializer.values))]

    def _checked(self, read):
        try:
            return read()
        except (ValueError, IndexError) as error:  # UnicodeDecodeError is a ValueError
            raise errors.DataLoss(f"{self.path.name} has no number: {error}") from None


class CheckedLoader:
    def recognise(self, path, head):
        return head.startswith(b"checked ")

    def open(self, path, options):
        if options.signature not in (None, "scaled", "doubled"):
            raise errors.NotFound(f"{path.name} has no signature '{options.signature}'")
        return CheckedSource(path, options.signature)


@hookimpl
def heald_loaders(registry):
    registry.add("checked", CheckedLoader())
