"""Deferred errors: a call that a run may skip is refused when it runs, not before.

A model guards ops by conditions on shapes, so a branch that is not taken may contradict its shapes. TensorFlow checks
the body of a branch or loop when it runs. A call behind a Switch is skipped when its inputs are dead.
"""

# A deferred call has results of its types alone, without shapes. It binds in the run, where inference repeats with the
# shapes of the arrays, and raises the same error with its node.
#
# Errors of plugins and of heald itself are never deferred: they say nothing about the shapes of a model.

from __future__ import annotations

from ...errors import HealdError, Internal, PluginError
from ..contract.structural import SWITCH_CODE, SWITCH_N_CODE
from .host_program import Call, ProgramFunction

SWITCH_CODES = frozenset({SWITCH_CODE, SWITCH_N_CODE})


class DeferredErrors:
    """The errors of one function's calls that wait for the run.

    `is_conditional`: a run may skip the whole function.
    """

    def __init__(self, function: ProgramFunction, *, is_conditional: bool) -> None:
        self._function = function
        self._is_conditional = is_conditional
        self._results_of_switches = _registers_behind_switches(function)
        self._errors: dict[tuple[int, ...], HealdError] = {}  # by the registers that a call fills
        self._missing: dict[int, HealdError] = {}  # registers that no run fills, since it ends with this error

    def may_skip(self, call: Call) -> bool:
        """True for a call that a run of the program may leave out."""
        return self._is_conditional or not self._results_of_switches.isdisjoint(call.needs)

    def defers(self, call: Call, error: HealdError) -> bool:
        """Keep the error for the run of the call, if it may wait. Returns False for an error to be raised now."""
        if isinstance(error, Internal | PluginError) or not self.may_skip(call):
            return False
        self._errors[call.gives] = error
        return True

    def note_missing_results(self) -> None:
        """Find the registers that no run fills, when all errors of the inference are known."""
        for call in self._function.kernels if self._errors else ():
            error = self.error_of(call)
            if error is not None and not call.is_host_kernel:
                self._missing.update(dict.fromkeys(call.gives, error))

    def error_of(self, call: Call) -> HealdError | None:
        """Return the error that ends a run of the call, or a run before it comes to the call."""
        own_error = self._errors.get(call.gives)
        return own_error or next((self._missing[r] for r in call.args if r in self._missing), None)

    def __contains__(self, call: Call) -> bool:
        return call.gives in self._errors

    @property
    def end_function(self) -> bool:
        """True when each call of the function raises an error, so that its results never exist.

        Dead values skip calls. So a function with a Switch is not known to fail.
        """
        return not self._results_of_switches and not self._missing.keys().isdisjoint(self._function.results)


def _registers_behind_switches(function: ProgramFunction) -> set[int]:
    """Return the registers that may be dead in a run, for a Switch before them."""
    registers: set[int] = set()
    for call in function.kernels:
        if call.code in SWITCH_CODES or not registers.isdisjoint(call.needs):
            registers.update(call.gives)
    return registers
