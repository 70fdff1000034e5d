"""An op to copy: its declaration, its checks, and its kernel for the CPU."""
