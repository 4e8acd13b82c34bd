"""EVERY EPISODE COUNTED ONCE: what the vector wrappers of all libraries have in common."""
