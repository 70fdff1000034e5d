"""The levels: each module is a list of sentences that hold for every device."""
