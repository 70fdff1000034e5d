"""Simulated accelerators: to test runtimes and plugins without hardware."""
