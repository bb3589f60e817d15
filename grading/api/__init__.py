"""The interface for programs: what the pages do, over HTTP with a token, and with the same sight."""
