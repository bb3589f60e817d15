"""The groups Student, Instructor and Operator, from the table in `marlow/roles.py`."""

from django.contrib.auth.management import create_permissions
from django.db import migrations

from marlow import roles


def make_roles(apps, schema_editor):
    """Permissions are usually made after all migrations; a group can be given only those that exist."""
    for room in roles.ROOMS:
        config = apps.get_app_config(room)
        vars(config).setdefault("models_module", True)  # what the historical app lacks and `create_permissions` wants
        create_permissions(config, verbosity=0, apps=apps, using=schema_editor.connection.alias)
    roles.apply(apps)


class Migration(migrations.Migration):
    dependencies = [
        ("exercises", "0001_initial"),
        ("sweeper", "0001_initial"),
        ("shop", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    # Backwards the groups stay: people are in them.
    operations = [migrations.RunPython(make_roles, migrations.RunPython.noop)]
