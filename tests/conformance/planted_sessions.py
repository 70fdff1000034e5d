"""A plugin of the tests alone: sessions, each with one fault that the suite must find, as targets "planted://NAME"."""

from __future__ import annotations

import time

import heald
import numpy as np
from heald.api import hookimpl

HEALD_API = (1, 3)
SESSIONS = {}  # by name: a class


class Passing:
    """A session of core's own; subclasses change a method."""

    def __init_subclass__(cls, **options):
        SESSIONS[cls.__name__] = cls

    def __init__(self, graph, config):
        self.session = heald.Session(graph, config)

    def __getattr__(self, name):
        return getattr(self.session, name)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.session.close()


class ReturnsTuples(Passing):
    def run(self, fetches, feeds=None, **options):
        results = self.session.run(fetches, feeds, **options)
        return tuple(results) if isinstance(results, list) else results


class SortsFeeds(Passing):
    def make_callable(self, fetches, feeds=(), targets=()):
        return self.session.make_callable(fetches, sorted(feeds), targets)


class NeverReleases(Passing):
    def make_callable(self, fetches, feeds=(), targets=()):
        step = self.session.make_callable(fetches, feeds, targets)
        step.release = lambda: None
        return step


class IgnoresConnections(Passing):
    def make_callable(self, fetches, feeds=(), targets=(), *, connections=None):
        step = self.session.make_callable(fetches, [*feeds, "z"], targets)
        return lambda x: step(x, x)


class LosesSends(Passing):
    def run(self, fetches, feeds=None, **options):
        if fetches == "recv":
            return np.zeros(4, np.float32)
        return self.session.run(fetches, feeds, **options)


class MixesSteps(Passing):
    received = None

    def run(self, fetches, feeds=None, **options):
        result, later = self.session.run(fetches, feeds, **options), self.received
        if fetches == "recv":
            self.received = result
        return result if later is None else later


class NeverResets(Passing):
    def reset(self, containers=()):
        pass


class IgnoresExtend(Passing):
    def extend(self, graph):
        nodes = [node.replace(op="Identity", inputs=["y"]) if node.op == "Neg" else node for node in graph]
        self.session.extend(heald.Graph(nodes))


class ForgetsParts(Passing):
    def partial_run(self, handle, fetches, feeds=None):
        return np.zeros_like(self.session.partial_run(handle, fetches, feeds))


class PlacesNothing(Passing):
    def placement(self):
        return {}


class RaisesKeyError(Passing):
    def run(self, fetches, feeds=None, **options):
        if fetches == "nowhere":
            raise KeyError(fetches)
        return self.session.run(fetches, feeds, **options)


class NeverCloses(Passing):
    def close(self):
        pass


class IsForOneThreadAtATime(Passing):
    busy = False

    def run(self, fetches, feeds=None, **options):
        if self.busy:
            raise RuntimeError("busy")
        self.busy = True
        time.sleep(0.002)
        self.busy = False
        return self.session.run(fetches, feeds, **options)


def make_session(graph, config, target, device):
    return SESSIONS.get(target.rpartition("/")[2], lambda graph, config: object())(graph, config)


@hookimpl
def heald_sessions(registry):
    registry.add("planted", make_session)
