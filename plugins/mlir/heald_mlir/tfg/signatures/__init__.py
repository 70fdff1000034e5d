"""Signatures of functions and results of ops: from bytes, to text and back.

The room stands on `values`.
"""
