"""The web process, as an ASGI server finds it."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "marlow.settings")
application = get_asgi_application()
