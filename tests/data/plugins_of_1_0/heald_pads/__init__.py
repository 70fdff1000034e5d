"""A graph pass of version 1.0."""
