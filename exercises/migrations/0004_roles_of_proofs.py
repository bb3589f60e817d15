"""Everybody may look at the proofs."""

from django.db import migrations

from marlow import roles


class Migration(migrations.Migration):
    dependencies = [("exercises", "0003_proof"), ("exercises", "0002_roles")]

    operations = [migrations.RunPython(roles.in_migration, migrations.RunPython.noop)]
