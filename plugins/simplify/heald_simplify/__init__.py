"""Graph passes that make inference cheaper on every device. Each returns a graph that computes the same results.

Only rounding may differ. Nodes that are fed, fetched or run keep their outputs.
So do nodes within a rewritten chain that have consumers outside the chain.
"""
