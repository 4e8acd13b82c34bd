"""A bandit over mean absolute advantages of labels."""
