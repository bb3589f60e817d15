"""The finer key: a row for each slot, and what it does not solve."""
