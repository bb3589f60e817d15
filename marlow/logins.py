"""The demo's logins, by the group each belongs to. Made by `manage.py stage`, only where MARLOW_DEMO is set."""

LOGINS = {"student": "Student", "instructor": "Instructor", "operator": "Operator"}
PASSWORD = "marlow-demo"  # noqa: S105  printed on the screen; the demo listens on loopback alone
