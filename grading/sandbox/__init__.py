"""Where a student's Python and SQL run: never in a judge's process, never with its rights."""
