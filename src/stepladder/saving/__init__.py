"""WHAT SURVIVES A RESTART: snapshots as JSON and arrays, and what each saved value must be."""
