"""INSIDE A NETWORK: encoders, layers and heads; what normalises their inputs; their optimiser."""
