"""From a graph to text.

`graph_printer` is the entry. The room stands on all others but `reading`.
"""
