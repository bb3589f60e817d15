"""The admin of the grader."""
