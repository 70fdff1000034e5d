"""From program to results: a program is linked to the kernels of a host, and run."""
