"""Names of devices: full, partial and short, read and written."""

from __future__ import annotations

import pytest
from heald.errors import InvalidArgument
from heald.runtime.contract.device import DeviceName
from hypothesis import given
from hypothesis import strategies as st

NUMBERS = st.none() | st.integers(0, 10**9 - 1)
NAMES = st.builds(
    lambda job, replica, task, kind, index: DeviceName(job, replica, task, kind, index if kind else None),
    st.none() | st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True), NUMBERS, NUMBERS,
    st.none() | st.from_regex(r"[A-Z_][A-Z0-9_]{0,6}", fullmatch=True), NUMBERS,
)


@given(NAMES)
def test_a_name_that_is_written_reads_back_the_same(name: DeviceName) -> None:
    assert DeviceName.parse(str(name)) == name


@given(NAMES.filter(lambda n: n.type is not None))
def test_the_short_form_keeps_type_and_index(name: DeviceName) -> None:
    assert DeviceName.parse(name.short) == DeviceName(type=name.type, index=name.index)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", DeviceName()),
        ("CPU:0", DeviceName(type="CPU", index=0)),
        ("cpu:0", DeviceName(type="CPU", index=0)),
        ("/cpu:0", DeviceName(type="CPU", index=0)),
        ("GPU", DeviceName(type="GPU")),
        ("GPU:*", DeviceName(type="GPU")),
        ("/gpu:*", DeviceName(type="GPU")),
        ("/device:GPU:1", DeviceName(type="GPU", index=1)),
        ("/device:GPU", DeviceName(type="GPU")),
        ("/job:worker/task:3", DeviceName("worker", None, 3)),
        ("/job:localhost/replica:0/task:0/device:CPU:0", DeviceName("localhost", 0, 0, "CPU", 0)),
        ("/job:localhost/replica:*/task:*/cpu:2", DeviceName("localhost", None, None, "CPU", 2)),
    ],
)
def test_the_forms_that_tensorflow_writes_are_read(text: str, name: DeviceName) -> None:
    assert DeviceName.parse(text) == name


@pytest.mark.parametrize("text", ["CPU:", "CPU:x", "CPU:-1", ":0", "/", "/job:", "/job:1a", "/task:x", "CPU:0:1", "a b",
                                  "/job:a//task:0", "CPU:99999999999", "CPU:0/", "CPU:0 ", "7"])
def test_a_text_that_names_no_device_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"is not a device name.*write it as CPU:0"):
        DeviceName.parse(text)


@pytest.mark.parametrize(("text", "local"), [
    ("CPU:0", True), ("/job:localhost/task:0", True), ("/job:worker/device:CPU:0", False), ("/task:1", False),
    ("/replica:1", False),
])
def test_local_names_are_those_of_this_process(text: str, local: bool) -> None:
    assert DeviceName.parse(text).is_local is local
