"""Students hand in, instructors teach, operators look at the queue."""

from django.db import migrations

from marlow import roles


class Migration(migrations.Migration):
    dependencies = [("grading", "0001_initial"), ("exercises", "0007_roles_of_labruns")]

    operations = [migrations.RunPython(roles.in_migration, migrations.RunPython.noop)]
