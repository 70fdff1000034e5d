"""Graph passes, a module each, named as the pass. `plugin.py` has their table.

A pass reads the graph through `heald_simplify.graph_view`. `affine`, `linear_layers`, `symbolic_sizes` and `node_edits`
beside this package serve several passes.
"""
