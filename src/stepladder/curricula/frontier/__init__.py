"""Our own method: find the tasks that can be learned now."""
