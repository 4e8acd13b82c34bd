"""THE PARENT'S SIDE: starts workers, gives orders, waits, restarts those that have died."""
