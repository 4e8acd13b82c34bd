"""What agents share that learn from stored transitions: the memory, and when they update."""
