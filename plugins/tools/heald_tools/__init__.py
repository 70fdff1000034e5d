"""The commands run, bench and diff: a model run once, timed, or compared on two devices."""
