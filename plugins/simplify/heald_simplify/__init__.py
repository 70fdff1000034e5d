"""Graph passes that make inference cheaper on every device. Each returns a graph that computes the same results.

Only rounding may differ. Nodes that are fed, fetched or run keep their outputs.
So do nodes within a rewritten chain that have consumers outside the chain.

A pass is a module of `passes/` and reads the graph through `graph_view`. `linear_layers`, `affine`, `symbolic_sizes`
and `node_edits` serve several passes. `folding_rows` has the rows of `constant-folding`.
"""
