"""The cases of the hooks other than devices, a module for each hook.

A case takes a HookSubject, as a case of `levels` takes a device. `HOOKS` of `hook_subject` has the table of options.
Every case runs under a deadline, so that a call that never returns is a broken rule and ends no run.
"""
