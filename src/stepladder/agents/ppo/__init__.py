"""Proximal policy optimisation: its settings, its network, its rollout."""
