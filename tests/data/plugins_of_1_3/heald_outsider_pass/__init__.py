"""A graph pass to copy: a function from Graph to Graph."""
