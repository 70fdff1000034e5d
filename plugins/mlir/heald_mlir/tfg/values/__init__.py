"""Types and attributes: their text, and the bytes of a GraphDef that they stand for.

The room knows single nodes at most. It stands below all others.
"""
