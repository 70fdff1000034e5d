"""ModelSlot: the object behind the handle of a model, which is empty until a model is loaded into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heald.api import errors

if TYPE_CHECKING:
    from .forest import Forest


class ModelSlot:
    """The place of a model. The first model that is loaded stays, as in TF-DF."""

    def __init__(self) -> None:
        self._forest: Forest | None = None

    @property
    def is_empty(self) -> bool:
        return self._forest is None

    def put(self, forest: Forest) -> None:
        self._forest = forest

    def forest(self) -> Forest:
        """Return the model. Raises FailedPrecondition if there is none yet."""
        if self._forest is None:
            raise errors.FailedPrecondition("the decision forest is not loaded",
                                            hint="run the model's initializer first")
        return self._forest


def slot_of(handle: Any) -> ModelSlot:
    """Return the slot that a handle refers to. Raises InvalidArgument for a handle of something else."""
    slot = handle[()]
    if not isinstance(slot, ModelSlot):
        raise errors.InvalidArgument(f"the handle of a decision forest is expected here, given a {type(slot).__name__}")
    return slot
