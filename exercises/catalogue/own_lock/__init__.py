"""Your own lock, over a port like Redis."""
