"""The groups Student, Instructor and Operator, from the table in `marlow/roles.py`."""

from django.db import migrations

from marlow import roles


class Migration(migrations.Migration):
    dependencies = [
        ("exercises", "0001_initial"),
        ("sweeper", "0001_initial"),
        ("shop", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    # Backwards the groups stay: people are in them.
    operations = [migrations.RunPython(roles.in_migration, migrations.RunPython.noop)]
