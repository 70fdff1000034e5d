"""Control flow with regions: its form in a graph, and the passes that change it.

A graph holds functional nodes; `region_forms` says how a region lives in it, and `region_tree` makes regions a tree for
the passes. The room stands on `signatures` and `values`.
"""
