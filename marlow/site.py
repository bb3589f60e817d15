"""The admin site: the stock one, under our name."""

from django.contrib import admin


class MarlowAdminSite(admin.AdminSite):
    site_header = "Marlow Books"
    site_title = "Marlow Books"
    index_title = "The shop, its boxes and its shelf"
    enable_nav_sidebar = True
