#!/usr/bin/env python
"""Django's command line, with Marlow's settings."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "marlow.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as wrong:
        sys.exit(f"manage.py: {wrong}")
    except KeyboardInterrupt:
        sys.exit(130)  # as a shell says it of Ctrl-C; the servers a command started end with it


if __name__ == "__main__":
    main()
