"""TensorHandle: a tensor that an op returned, available now or later."""

from __future__ import annotations

from copy import copy
from typing import Any

from heald.api import CooTensor, DType
from heald.errors import FailedPrecondition, HealdError, InvalidArgument, describe_exception, display_text
from heald.runtime.values import COO, DENSE, SCALAR, broadcast

from .handle_state import Failed, HandleOwner, Kind, Pending, Ready, State, settled_state
from .operators import Operators

LARGEST_PRINTED_ELEMENTS = 1000  # elements of a value in `repr`; a larger one is abridged


class TensorHandle(Operators):
    """An immutable tensor on a device: available, pending, or an error.

    `TensorHandle(value)` copies an array, a number, a list, or an object with DLPack or `__array_interface__` into host
    memory; `dtype` is a DType, a name or NumPy's dtype. Ops return handles at once. Reading a handle waits for its
    value, and raises the error of the op that failed, with the source line of that op's call.

    Metadata is available before the value, except after ops whose result shapes depend on data.

    Raises InvalidArgument for an object that is no tensor.
    """

    __slots__ = ("__weakref__", "_kind", "_value")

    _kind: Kind | Pending | Failed
    _value: Any

    def __init__(self, value: Any, dtype: Any = None) -> None:
        from .default_runtime import default_runtime

        handle = default_runtime().handle(value, dtype)
        self._kind, self._value = handle._kind, handle._value

    @property
    def dtype(self) -> DType:
        """The element type. Never waits; raises the error of an error."""
        state = self._current()
        if isinstance(state, Failed):
            raise raisable(state.error)
        return state.kind.meta.dtype if isinstance(state, Ready) else state.meta.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape. Waits where the metadata is pending; raises the error of an error."""
        dims: tuple[int, ...] = self._metadata().dims
        return dims

    @property
    def device(self) -> str:
        """The short name of the device. Raises the error of an error."""
        state = self._current()
        if isinstance(state, Failed):
            raise raisable(state.error)
        return state.kind.device if isinstance(state, Ready) else state.device

    @property
    def layout(self) -> str:
        """The layout: "dense", "scalar" where all elements are one, or "coo" for a sparse tensor. Waits for the value;
        raises the error of an error."""
        return self._ready_state().kind.layout

    @property
    def is_available(self) -> bool:
        """True when the value, or the error in its place, needs no waiting. Work of a device counts as available when
        it is enqueued."""
        return not isinstance(self._current(), Pending)

    @property
    def error(self) -> HealdError | None:
        """The error of a handle that is known to have failed, else None. Never waits."""
        state = self._current()
        if isinstance(state, Failed):
            return state.error
        if isinstance(state, Ready) and state.kind.native is not None:
            return state.value.work.error  # type: ignore[no-any-return]
        return None

    def numpy(self) -> Any:
        """The value as a read-only NumPy array, which shares the memory of a value in host memory. Waits for the value.

        Strings are object arrays of bytes. Quantised numbers are plain integers. All elements of a scalar tensor share
        the memory of one. Raises the error of an error, and InvalidArgument for a sparse tensor.
        """
        kind = self._kind
        array = self._value if kind.__class__ is Kind and kind.native is None and kind.layout == DENSE else None
        if array is None:  # also where another thread has just donated the handle
            array = host_array(self)
        view = array.view(array.dtype[0]) if array.dtype.names else array.view()  # quantised numbers have a field
        view.flags.writeable = False
        return view

    def to(self, device: str) -> TensorHandle:
        """Return a handle of a copy on another device. The copy is asynchronous. A handle that is there already is
        returned itself.

        Raises NotFound and Unavailable for the device, InvalidArgument for a value without a fixed element size.
        """
        state = self._current()
        if isinstance(state, Failed):
            return self
        moved = _owner_of(state).copy_to(state, device)
        return self if moved is state else handle_of(moved)

    def to_dense(self) -> TensorHandle:
        """Return a handle of the dense form: the handle itself where the tensor is dense. The conversion of a pending
        value is asynchronous.

        Raises ResourceExhausted where the elements exceed the memory budget.
        """
        return self._to_layout(DENSE)

    def to_coo(self) -> TensorHandle:
        """Return a handle of the sparse form: the elements that are not 0, and their coordinates. The handle itself
        where the tensor is sparse. The conversion of a pending value is asynchronous.

        Raises InvalidArgument for types without a 0, and for a value on a device outside host memory.
        """
        return self._to_layout(COO)

    def _to_layout(self, layout: str) -> TensorHandle:
        state = self._current()
        if isinstance(state, Failed):
            return self
        converted = _owner_of(state).to_layout(state, layout)
        return self if converted is state else handle_of(converted)

    @property
    def indices(self) -> Any:
        """The coordinates of a sparse tensor: a read-only int64 array of shape (elements, rank), rows in order. Waits;
        raises the error of an error, and InvalidArgument for another layout."""
        return _read_only(self._coordinates().indices)

    @property
    def values(self) -> Any:
        """The values of a sparse tensor, in the order of `indices`: a read-only array. Waits and raises as
        `indices`."""
        return _read_only(self._coordinates().values)

    def _coordinates(self) -> CooTensor:
        state = self._ready_state()
        if state.kind.layout != COO:
            raise InvalidArgument(f"a {state.kind.layout} tensor of {state.kind.meta} has no coordinates",
                                  hint="only sparse tensors have: x.to_coo()")
        return state.value  # type: ignore[no-any-return]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np

        array = self.numpy()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, **options: Any) -> Any:
        """A DLPack capsule of the value in host memory. A consumer that cannot take read-only memory gets a copy."""
        array = self.numpy()
        try:
            return array.__dlpack__(**options)
        except BufferError:
            return array.copy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.numpy().__dlpack_device__()  # type: ignore[no-any-return]

    def item(self) -> Any:
        """The value of a tensor with one element, as a Python object. Raises InvalidArgument for another number of
        elements."""
        return self._element("a single").item()

    def __bool__(self) -> bool:
        return bool(self._element("a bool"))

    def __int__(self) -> int:
        return int(self._element("an int"))

    def __float__(self) -> float:
        return float(self._element("a float"))

    def __index__(self) -> int:
        if self.shape != () or self.dtype.kind not in "iu":
            raise InvalidArgument(f"a tensor of {self._metadata()} is no index: an index is an integer scalar")
        return int(self.numpy())

    def _element(self, purpose: str) -> Any:
        """The array of the only element, of shape []. Raises InvalidArgument for another number of elements."""
        array = self.numpy()
        if array.size != 1:
            raise InvalidArgument(f"a tensor of {self._metadata()} is not {purpose} value: it has {array.size} "
                                  "elements", hint="reduce it to one element first")
        return array.reshape(())

    def __len__(self) -> int:
        if not self.shape:
            raise InvalidArgument("a scalar has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        state = self._current()
        if isinstance(state, Failed):
            return f"<TensorHandle error {type(state.error).__name__}: {state.error}>"
        if isinstance(state, Pending):
            return f"<TensorHandle pending, {state.meta}, {state.device}>"
        text = f"{state.kind.meta}, {state.kind.device}"
        if state.kind.native is not None:
            error = self.error
            progress = "value" if state.value.work.is_done else "enqueued"
            return f"<TensorHandle {progress if error is None else f'error {type(error).__name__}: {error}'}, {text}>"
        return f"<TensorHandle value, {text}, {_text_of(state)}>"

    def _repr_html_(self) -> str:
        """The text of `repr`, with a picture where the value has come and is one."""
        from html import escape

        from heald.runtime.support import notebook_table, tensor_picture

        text = f"<pre>{escape(repr(self))}</pre>"
        state = self._current()
        if not isinstance(state, Ready) or state.kind.layout != DENSE or not self.is_available:
            return text
        try:
            png = tensor_picture.tensor_png(host_array(self))
        except HealdError:  # the text states it
            return text
        return text if png is None else notebook_table.notebook_picture(png) + text

    def _current(self) -> State:
        """The state of this moment. A pending handle takes the state of its value once that is complete."""
        state = self._kind
        if isinstance(state, Kind):
            return Ready(state, self._value)
        if isinstance(state, Pending):
            settled = settled_state(state)
            if settled is None:
                return state
            self._become(settled)
            return settled
        return state

    def _become(self, state: State) -> None:
        if isinstance(state, Ready):
            self._value = state.value  # first: a thread that sees the Kind reads the value
            self._kind = state.kind
        else:
            self._kind = state

    def _metadata(self) -> Any:
        state = self._current()
        return state.meta if isinstance(state, Pending) and state.meta.is_static else self._ready_state().kind.meta

    def _ready_state(self) -> Ready:
        """The state once the value has come. Raises the error of an error."""
        state = self._current()
        if isinstance(state, Pending):
            state.owner.wait(state)
            state = self._current()
        if isinstance(state, Failed):
            raise raisable(state.error)
        assert isinstance(state, Ready)
        return state

    def __copy__(self) -> TensorHandle:
        return self

    def __deepcopy__(self, memo: object) -> TensorHandle:
        return self

    def __reduce__(self) -> Any:
        raise FailedPrecondition("a TensorHandle cannot be pickled", hint="pickle handle.numpy()")


def _owner_of(state: Ready | Pending) -> HandleOwner:
    return state.kind.owner if isinstance(state, Ready) else state.owner


def handle_of(state: State) -> TensorHandle:
    """Return a handle in this state."""
    handle = object.__new__(TensorHandle)
    if isinstance(state, Ready):
        handle._value, handle._kind = state.value, state.kind
    else:
        handle._value, handle._kind = None, state
    return handle


def raisable(error: HealdError) -> HealdError:
    """A copy of an error that several handles share: raising an error changes its traceback."""
    raised = copy(error)
    raised.__cause__ = error.__cause__
    return raised


def _array_text(array: Any) -> str:
    import numpy as np

    try:
        text = np.array2string(array, threshold=LARGEST_PRINTED_ELEMENTS, separator=", ")
    except Exception as error:  # noqa: BLE001 - an element's own code failed
        text = f"elements that cannot be printed: {describe_exception(error)}"
    return display_text(text, lines=True)


def host_array(handle: TensorHandle) -> Any:
    """The array of a handle in host memory: the value itself, or the value of a copy. Waits; raises the error."""
    state = handle._ready_state()
    if state.kind.native is not None:
        return state.kind.owner.array_of(state)
    if state.kind.layout == COO:
        raise InvalidArgument(f"a sparse tensor of {state.kind.meta} is no array",
                              hint="x.to_dense().numpy() has all elements, x.indices and x.values those it holds")
    return state.value if state.kind.layout == DENSE else broadcast(state.value)


def _read_only(array: Any) -> Any:
    view = array.view()
    view.flags.writeable = False
    return view


def _text_of(state: Ready) -> str:
    """A value in host memory as text."""
    if state.kind.layout == SCALAR:
        return f"scalar {_array_text(state.value.value)}"
    if state.kind.layout == COO:
        return f"coo with {len(state.value.values)} elements {_array_text(state.value.values)}"
    return _array_text(state.value)
