"""Datasets: values that describe sequences of elements, and the iterators that compute these elements.

A dataset is an immutable value of a variant tensor. It refers to its sources and to the functions that it calls. An
iterator has the state: a position, open iterators of the sources, elements that wait for their batch.

`Iterator.pull` is a generator, for functions of a graph may return values that come later. It yields the values that it
waits for and returns the next element, or None at the end. No other code waits: a step that ends drops its generators.

An element is a tuple of arrays, which nobody writes: a consumer that returns one to a user copies it.

Invariants
- A pull that failed or was dropped leaves its iterator usable: the next pull goes on behind the lost element.
- Each loop over elements calls `Step.check`, so that a cancellation ends an unbounded sequence.
- Elements that an iterator keeps are asked for in the host's memory budget.
- Levels of iterators are bounded by MOST_LEVELS, so that no graph exhausts the stack.

Rule: a loop that pulls elements checks its step. A list that grows with the elements has a `MemoryAccount`.
"""
