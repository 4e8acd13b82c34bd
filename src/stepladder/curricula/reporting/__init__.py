"""WHAT A CURRICULUM SAYS OF ITSELF: counts, metrics, events, and why a task is drawn."""
