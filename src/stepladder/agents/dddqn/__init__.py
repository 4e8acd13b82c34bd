"""Dueling double deep Q-network: its settings and its priorities."""
