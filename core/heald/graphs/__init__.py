"""Graphs: TensorFlow graphs become host programs, and sessions run them.

The storey stands on `heald.runtime`, which never imports it: `plugin` registers the loader of GraphDefs, the models of
graphs and the graph passes through the hooks of every plugin. The rooms, bottom up: `protobuf/`, `graph/`, `compiler/`,
`session/`.
"""
