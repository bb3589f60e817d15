"""Everybody may look at the laboratory's runs."""

from django.db import migrations

from marlow import roles


class Migration(migrations.Migration):
    dependencies = [("exercises", "0006_labrun"), ("exercises", "0004_roles_of_proofs")]

    operations = [migrations.RunPython(roles.in_migration, migrations.RunPython.noop)]
