"""The project as Django apps: its commands and checks, and the admin site in our own dress."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class MarlowConfig(AppConfig):
    name = "marlow"
    verbose_name = "Marlow"


class MarlowAdminConfig(AdminConfig):
    default_site = "marlow.site.MarlowAdminSite"
