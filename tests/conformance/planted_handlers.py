"""A plugin of the tests alone: op handlers and rendezvous, each with one fault that the suite must find."""

from __future__ import annotations

import ctypes
import threading
import time
from collections import deque

import heald
import numpy as np
from heald.api import available, errors, hookimpl
from heald.runtime.host.rendezvous import LocalRendezvous
from heald.runtime.values.async_value import DEAD

HEALD_API = (1, 3)
HANDLERS = {}  # by name: a class


class Handler:
    """Every op is the fallback's; subclasses change the functions of calls."""

    def __init_subclass__(cls, **options):
        HANDLERS[cls.__name__.lower()] = cls

    def __init__(self, context, fallback):
        self.context, self.fallback, self.results = context, fallback, {}
        self.thread = threading.get_ident()

    def make_op(self, op):
        function = self.fallback.make_op(op)
        return None if function is None else lambda call: self.run(op, function, call)


class PassesOn(Handler):
    def run(self, op, function, call):
        return call.inputs if op == "Neg" else function(call)


class RaisesItsOwn(Handler):
    def run(self, op, function, call):
        try:
            return function(call)
        except errors.InvalidArgument:
            raise errors.Internal("it fails") from None


class WritesInputs(Handler):
    def run(self, op, function, call):
        results = function(call)
        if op == "Neg":
            ctypes.memset(np.asarray(call.inputs[0]).ctypes.data, 7, 4)
        return results


class MixesCalls(Handler):
    def run(self, op, function, call):
        key = op, *(handle.shape for handle in call.inputs)
        return self.results.setdefault(key, function(call)) if op == "MatMul" else function(call)


class IsForOneThread(Handler):
    def run(self, op, function, call):
        if threading.current_thread().name.startswith("heald conformance, thread"):
            raise RuntimeError("another thread's handler")
        return function(call)


class ReadsInputs(Handler):
    def run(self, op, function, call):
        for handle in call.inputs:
            handle.numpy()
        return function(call)


class HidesErrors(Handler):
    def run(self, op, function, call):
        return [heald.TensorHandle(np.zeros((4, 4), np.float32))] if op == "MatMul" else function(call)


class LosesTensors(LocalRendezvous):
    def send(self, key, value, is_dead=False):
        pass


class IsLastInFirstOut(LocalRendezvous):
    def send(self, key, value, is_dead=False):
        with self._lock:
            self._sent.setdefault(key, deque()).appendleft(available(value))


class LooksAtNamesAlone(LocalRendezvous):
    def send(self, key, value, is_dead=False):
        super().send(key.tensor, value, is_dead)

    def recv(self, key):
        return super().recv(key.tensor)


class SendsTheDeadAsNone(LocalRendezvous):
    def send(self, key, value, is_dead=False):
        super().send(key, value)


class KeepsWaiting(LocalRendezvous):
    def abort(self, error):
        self._error = error


class Blocks(LocalRendezvous):
    def recv(self, key):
        time.sleep(2)
        return super().recv(key)


class TakesNoThreads(LocalRendezvous):
    def send(self, key, value, is_dead=False):
        if value is not None and len(self._sent) % 7 == 6:
            raise RuntimeError("busy")
        super().send(key, value, is_dead)


def no_rendezvous():
    return DEAD


@hookimpl
def heald_op_handlers(registry):
    for name, factory in HANDLERS.items():
        registry.add(name, factory)
