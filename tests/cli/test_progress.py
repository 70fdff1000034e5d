"""Progress shows on a terminal only, only when work is long, and leaves nothing behind."""

import io
import sys
import threading
from functools import partial
from types import SimpleNamespace

import pytest
import tqdm
from heald.cli.printing import progress


class Terminal(io.StringIO):
    """A stderr that tells when something was written to it."""

    def __init__(self):
        super().__init__()
        self.written = threading.Event()

    def isatty(self):
        return True

    def write(self, text):
        count = super().write(text)
        self.written.set()
        return count


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 0.001)
    return _stderr(Terminal(), monkeypatch)


def _stderr(stream, monkeypatch):
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
    return stream


def test_long_work_shows_a_line_that_is_erased(terminal):
    with progress.ticking("running m.pb"):
        assert terminal.written.wait(10)
    text = terminal.getvalue()
    assert text.startswith(f"{progress.CLEAR}running m.pb ... 0 s")
    assert text.endswith(progress.CLEAR)


def test_the_line_is_erased_when_work_fails(terminal):
    @progress.ticking("failing")
    def work():
        assert terminal.written.wait(10)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert terminal.getvalue().endswith(progress.CLEAR)


def test_short_work_shows_nothing(monkeypatch):
    stderr = _stderr(Terminal(), monkeypatch)
    with progress.ticking("quick"):
        pass
    assert stderr.getvalue() == ""


def test_work_without_a_terminal_has_no_thread_and_no_bar(monkeypatch):
    stderr = _stderr(io.StringIO(), monkeypatch)
    before = threading.active_count()
    with progress.ticking("work"):
        assert threading.active_count() == before
    assert progress.counted(3, "work") == range(3)
    progress.erase()
    assert stderr.getvalue() == ""


@pytest.mark.usefixtures("terminal")
def test_counting_counts():
    assert list(progress.counted(3, "work")) == [0, 1, 2]


def test_work_for_a_time_shows_how_much_of_it_is_gone_and_left(terminal, monkeypatch):
    now = iter(range(100))
    monkeypatch.setattr(progress, "monotonic", lambda: next(now))
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(tqdm, "tqdm", partial(tqdm.tqdm, mininterval=0))
    assert list(progress.lasting(8.0, 2, "timing")) == [0, 1, 2, 3, 4, 5, 6]
    assert "timing:  50%" in terminal.getvalue()
    assert "00:00<00:00" in terminal.getvalue()


def test_work_for_no_time_is_done_as_often_as_it_must():
    assert list(progress.lasting(0.0, 3, "timing")) == [0, 1, 2]


def test_a_bar_in_a_notebook_is_the_one_of_tqdm_auto(monkeypatch):
    import tqdm.auto

    made = []

    def make_bar(values, **options):
        made.append(options["desc"])
        return values

    _stderr(io.StringIO(), monkeypatch)
    monkeypatch.setattr(tqdm.auto, "tqdm", make_bar)
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert list(progress.counted(3, "work")) == [0, 1, 2]
    assert made == ["work"]
    del shell.kernel  # a terminal's IPython
    assert progress.counted(3, "work") == range(3)
