"""Graph passes of the compiler, a module each: functions, control flow and inferred shapes. All run on request.

`host/graph_passes` has their table. Passes that name ops outside `contract/structural` belong to plugins.
"""
