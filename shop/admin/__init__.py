"""The shop in the admin: its records, its catalogue, and the shelf against the catalogue."""

from shop.admin import catalogue, records, shelf

__all__ = ["catalogue", "records", "shelf"]
