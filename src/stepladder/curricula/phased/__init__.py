"""A list of phases, and fixed mixtures of labels."""
