"""Graph passes that make inference cheaper, whatever device it runs on: each gives a graph that computes the same.

What a pass changes differs from before by rounding alone. Nodes that are fed, fetched or run keep what they give, and
so does what others take from within a chain that a pass works on.
"""
