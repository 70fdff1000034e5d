"""Graph passes of the compiler, a module each: functions, control flow and inferred shapes. All run on request.

`graphs/plugin` has their table. Passes that name ops outside `contract/structural` belong to plugins.

`functionalize`, `lower_control_flow`: Control flow of TensorFlow 1 becomes functions; the way back.
`inline`, `lift_legacy_calls`: Calls become the nodes of their functions; nodes whose op is a function become calls.
`graph_to_function`, `function_to_graph`: Nodes between feeds and fetches become a function; the way back.
`shape_inference`: Inferred shapes as attributes.
"""
