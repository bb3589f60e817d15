"""The lock table, proved: every cell of it is played on real servers with two box processes and a real fault."""
