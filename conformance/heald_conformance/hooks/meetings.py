"""Rendezvous: tensors arrive once each, by key and in the order of their sends, and an abort ends all waiting.

The subject is "package.module:function", which returns a new rendezvous each time.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from heald.api import AsyncValue, Rendezvous, RendezvousKey, errors
from heald.runtime.contract import load_callable

from ..case import sentence
from ..hook_subject import PROMPT, HookSubject, expect_raises, faults_of_threads, run_within
from ..subject import whatever_comes
from ..verdict import expect, expect_same_bits

KEY = RendezvousKey("/job:a/task:0/device:CPU:0", 1, "/job:b/task:0/device:CPU:0", "x:0")
METHODS = ("send", "recv", "abort")


def make(on: HookSubject) -> Rendezvous:
    with whatever_comes("the rendezvous is made", expected="a rendezvous", rule="rendezvous.factory"):
        rendezvous: Rendezvous = load_callable(on.name)()
    missing = [name for name in METHODS if not callable(getattr(rendezvous, name, None))]
    expect(not missing, "the rendezvous is made", expected=f"an object with {', '.join(METHODS)}",
           got=f"without {missing}", rule="rendezvous.factory")
    return rendezvous


def tensor(number: int) -> Any:
    return np.full(3, number, np.float32)


def receive(rendezvous: Rendezvous, key: RendezvousKey) -> AsyncValue:
    value = run_within(PROMPT, lambda: rendezvous.recv(key), "recv", "rendezvous.waits")
    expect(isinstance(value, AsyncValue), "recv", expected="an AsyncValue", got=type(value).__name__,
           rule="rendezvous.recv")
    return value


def expect_tensor(value: AsyncValue, number: int, what: str) -> None:
    came = threading.Event()
    value.and_then(came.set)
    expect(came.wait(PROMPT) and value.error is None, what, expected=f"tensor {number}",
           got=value.error if value.is_available() else "nothing", rule="rendezvous.recv")
    expect_same_bits(np.asarray(value.get()), tensor(number), what, "rendezvous.recv")


@sentence(over=lambda _: ["the send first", "the recv first"])
def a_tensor_arrives(on: HookSubject, order: str) -> None:
    rendezvous = make(on)
    value = receive(rendezvous, KEY) if order == "the recv first" else None
    expect(value is None or not value.is_available(), "recv before the send", expected="a pending value",
           got="an available one", rule="rendezvous.recv")
    run_within(PROMPT, lambda: rendezvous.send(KEY, tensor(7)), "send", "rendezvous.waits")
    expect_tensor(value or receive(rendezvous, KEY), 7, "a sent tensor")


@sentence(over=lambda _: ["the sends first", "the recvs first"])
def tensors_of_a_key_arrive_in_order(on: HookSubject, order: str) -> None:
    rendezvous = make(on)
    values = [receive(rendezvous, KEY) for _ in range(5)] if order == "the recvs first" else []
    for number in range(5):
        rendezvous.send(KEY, tensor(number))
    values = values or [receive(rendezvous, KEY) for _ in range(5)]
    for number, value in enumerate(values):
        expect_tensor(value, number, f"recv {number} of one key")
    later = receive(rendezvous, KEY)
    expect(not later.is_available(), "a sixth recv after five sends", expected="a pending value",
           got="an available one", rule="rendezvous.recv")


@sentence()
def keys_are_told_apart(on: HookSubject) -> None:
    rendezvous = make(on)
    keys = [KEY, KEY._replace(tensor="y:0"), KEY._replace(frame=1), KEY._replace(iteration=1),
            KEY._replace(incarnation=2), KEY._replace(destination=KEY.source), KEY._replace(source=KEY.destination)]
    for number, key in enumerate(keys):
        rendezvous.send(key, tensor(number))
    for number, key in reversed(list(enumerate(keys))):
        expect_tensor(receive(rendezvous, key), number, f"the tensor of {key}")


@sentence(over=lambda _: ["the send first", "the recv first"])
def a_dead_tensor_arrives_dead(on: HookSubject, order: str) -> None:
    rendezvous = make(on)
    value = receive(rendezvous, KEY) if order == "the recv first" else None
    rendezvous.send(KEY, None, True)
    value = value or receive(rendezvous, KEY)
    came = threading.Event()
    value.and_then(came.set)
    is_dead = came.wait(PROMPT) and value.is_dead()
    expect(is_dead, "a dead tensor was sent", expected="DEAD", got=repr(value)[:60], rule="rendezvous.dead")


@sentence()
def an_abort_ends_all_waiting(on: HookSubject) -> None:
    rendezvous = make(on)
    first, second = errors.Aborted("planted by heald_conformance"), errors.Internal("a later one")
    before = receive(rendezvous, KEY)
    rendezvous.abort(first)
    rendezvous.abort(second)
    expect_raises((errors.Aborted,), lambda: rendezvous.send(KEY, tensor(1)), "send after abort", "rendezvous.abort")
    for what, value in (("a recv before the abort", before), ("a recv after it", receive(rendezvous, KEY))):
        came = threading.Event()
        value.and_then(came.set)
        expect(came.wait(PROMPT) and isinstance(value.error, errors.Aborted), what, expected="Aborted, the first error",
               got=value.error if value.is_available() else "a pending value", rule="rendezvous.abort")


@sentence()
def threads_send_and_receive_at_once(on: HookSubject) -> None:
    rendezvous = make(on)
    count = on.size(300, 60)
    values: dict[int, AsyncValue] = {}

    def work(turn: int, _: list[Any]) -> None:
        for number in range(turn % 2, count, 2):
            key = KEY._replace(iteration=number)
            if turn < 2:
                rendezvous.send(key, tensor(number))
            else:
                values[number] = rendezvous.recv(key)

    faults = faults_of_threads(work, PROMPT)
    expect(not faults and len(values) == count, "four threads send and receive", expected=f"{count} values",
           got=faults[:1] or len(values), rule="rendezvous.threads")
    for number, value in values.items():
        expect_tensor(value, number, f"tensor {number} of {count}, over threads")
