"""Tasks whose success is changing; and the ancestor's versions, for comparison."""
