"""Django's Postgres backend over the connection that yields: `ENGINE: exercises.lab.engine`."""
