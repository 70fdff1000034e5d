"""The commands run, bench, trace, diff, scan, doctor and new, which `plugin` registers."""
