"""Rendezvous: tensors meet their receivers by key, in the order of the sends, whichever side comes first."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
from heald.errors import Aborted, Cancelled, InvalidArgument
from heald.runtime.contract.rendezvous import RendezvousKey
from heald.runtime.host.rendezvous import LocalRendezvous
from hypothesis import given
from hypothesis import strategies as st

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
KEY = RendezvousKey(CPU, 1, CPU, "t")
OTHER = KEY._replace(tensor="u")


def test_a_key_has_tensorflows_text():
    assert str(KEY) == f"{CPU};0000000000000001;{CPU};t;0:0"
    assert RendezvousKey.parse(f"{CPU};00000000000000ff;{CPU};edge_3_x;2:7") == (CPU, 255, CPU, "edge_3_x", 2, 7)


NAMES = st.text(st.characters(exclude_characters=";"), max_size=8)


NUMBERS = st.integers(0, 2**63)
KEYS = st.builds(RendezvousKey, NAMES, st.integers(0, 2**64 - 1), NAMES, NAMES, NUMBERS, NUMBERS)


@given(KEYS)
def test_parsing_inverts_the_text(key):
    assert RendezvousKey.parse(str(key)) == key


@pytest.mark.parametrize("text", ["", "a;1;b;t", "a;x;b;t;0:0", "a;1;b;t;0", "a;1;b;t;0:0;", "a;-1;b;t;0:0",
                                  "a;10000000000000000;b;t;0:0"])
def test_any_other_text_is_refused(text):
    with pytest.raises(InvalidArgument, match="is not the key of a rendezvous"):
        RendezvousKey.parse(text)


@given(st.lists(st.tuples(st.sampled_from([KEY, OTHER]), st.booleans()), max_size=20))
def test_the_nth_receiver_of_a_key_receives_its_nth_tensor(events):
    meeting = LocalRendezvous()
    sent_counts, received = {KEY: 0, OTHER: 0}, {KEY: [], OTHER: []}
    for key, is_send in events:
        if is_send:
            meeting.send(key, sent_counts[key])
            sent_counts[key] += 1
        else:
            received[key].append(meeting.recv(key))
    for key, values in received.items():
        count = sent_counts[key]
        assert [value.get() for value in values if value.is_available()] == [*range(min(len(values), count))]
        assert [value.is_available() for value in values] == [number < count for number in range(len(values))]


@pytest.mark.parametrize("is_late", [False, True])
def test_a_dead_tensor_arrives_dead(is_late):
    meeting = LocalRendezvous()
    early = None if is_late else meeting.recv(KEY)
    meeting.send(KEY, None, True)
    assert (early or meeting.recv(KEY)).is_dead()


def test_an_abort_reaches_waiting_receivers_and_all_later_calls():
    meeting = LocalRendezvous()
    tensor = np.ones(3)
    meeting.send(OTHER, tensor)
    waiting = [meeting.recv(KEY), meeting.recv(KEY)]
    meeting.abort(Aborted("first"))
    meeting.abort(Cancelled("second"))
    assert [str(value.error) for value in (*waiting, meeting.recv(KEY), meeting.recv(OTHER))] == ["first"] * 4
    with pytest.raises(Aborted, match="first"):
        meeting.send(KEY, 1)
    kept = [weakref.ref(tensor), *map(weakref.ref, waiting)]
    del tensor, waiting
    assert [reference() for reference in kept] == [None] * 3


def test_a_receiver_may_send_and_abort_when_its_tensor_comes():
    meeting = LocalRendezvous()
    value = meeting.recv(KEY)
    value.and_then(lambda: meeting.send(OTHER, value.get() + 1))
    value.and_then(lambda: meeting.abort(Aborted("done")))
    meeting.send(KEY, 1)
    assert isinstance(meeting.recv(OTHER).error, Aborted)
