"""Printing: how commands tell their results and how far they are.

`table`: Rows as a table, Markdown or JSON. `signature`: Inputs and outputs as rows.
`progress`: Progress bars and spinners. `notices`: Warnings and errors on stderr. `terminal`: Lines on stdout.
`standard_streams`: Closed and full standard streams.
"""
