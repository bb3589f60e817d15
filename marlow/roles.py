"""Who may do what in the admin: one table. The migration makes the groups from it, `docs/permissions.md` prints it,
and a test walks every role over every page of the admin with requests made by hand.
"""

from typing import Any

from django.apps.registry import Apps
from django.contrib import admin
from django.contrib.auth.management import create_permissions
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

ROOMS = ("shop", "sweeper", "exercises", "grading")

# What may be looked at: every record of every room. Users, groups and sessions are nobody's but a superuser's.
LOOK = [
    *("shop.view_publisher", "shop.view_book", "shop.view_order", "shop.view_settlement", "shop.view_refund"),
    *("shop.view_stockmovement", "shop.view_stockcount", "shop.view_straycharge", "shop.view_fence"),
    *("sweeper.view_sweeprun", "sweeper.view_event", "sweeper.view_jobrun"),
    *("exercises.view_performance", "exercises.view_proof", "exercises.view_labrun"),
]
# Of these a person sees the rows of their own classes, and a student their own work: `grading/sight.py` says which.
WORK = [
    *("grading.view_assignment", "grading.view_attempt", "grading.view_thread"),
]
HAND_IN = [*WORK, "grading.add_attempt", "grading.add_threadpost"]
TEACH = [
    *WORK,
    *("grading.view_class", "grading.change_class", "grading.view_submission", "grading.view_judging"),
    *("grading.view_enrolment", "grading.add_enrolment", "grading.delete_enrolment"),
    *("grading.add_assignment", "grading.change_assignment"),
    *("grading.view_extension", "grading.add_extension", "grading.change_extension"),
    *("grading.view_regrade", "grading.add_regrade", "grading.view_release", "grading.add_release"),
    *("grading.view_review", "grading.change_review", "grading.view_gradechange"),
    "grading.add_threadpost",
]

ROLES: dict[str, list[str]] = {
    "Student": [*LOOK, *HAND_IN],
    "Instructor": [*LOOK, *TEACH],
    "Operator": [*LOOK, "grading.view_judging", "shop.add_stockcount", "shop.change_book", "shop.change_publisher"],
}


def apply(apps: Apps) -> None:
    """Make the groups and give each exactly its permissions of the table; safe to call again.

    A permission whose model is younger than the database is left out: the migration that brings the model calls
    this once more. Permissions given to these groups by hand are taken away again.
    """
    group_model, permission_model = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    known = {
        f"{permission.content_type.app_label}.{permission.codename}": permission
        for permission in permission_model.objects.select_related("content_type")
    }
    for role, names in ROLES.items():
        group, _ = group_model.objects.get_or_create(name=role)
        group.permissions.set([known[name] for name in names if name in known])


def in_migration(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """For RunPython. Permissions are usually made after all migrations; a group is given only those that exist."""
    there = {config.label for config in apps.get_app_configs()}
    for room in (room for room in ROOMS if room in there):  # a room may be younger than the migration
        config = apps.get_app_config(room)
        vars(config).setdefault("models_module", True)  # what the historical app lacks and `create_permissions` wants
        create_permissions(config, verbosity=0, apps=apps, using=schema_editor.connection.alias)
    apply(apps)


def as_markdown() -> str:
    """`docs/permissions.md`: a row a thing, a column a role."""
    head = ["| | " + " | ".join(ROLES) + " |", "| --- |" + " --- |" * len(ROLES)]
    rows = [f"| {thing} | " + " | ".join(_verbs(role, thing) for role in ROLES) + " |" for thing in _things()]
    pages = [f"| {page.title} | `/admin/{page.route}` | {_codes(page.needs)} |" for page in _pages()]
    return "\n".join([*_PREFACE, *head, *rows, *_OWN_PAGES, *pages, *_RECORDS, ""])


_PREFACE = [
    "# Who may do what",
    "",
    "Generated from `marlow/roles.py` by `manage.py permissions`; a test fails when the two differ, and another",
    "walks every role over every page of the admin.",
    "",
    "An account is given a role by putting it into the group of that name and ticking *staff status*. No role sees",
    "users, groups or sessions: accounts are a superuser's business.",
    "",
    "The first superuser is made on the command line, beside a running demo or with `DATABASE_URL` set:",
    "`.venv/bin/python manage.py createsuperuser`. In the admin they add an account under *Users* (and then, on its",
    "page, tick *staff status* and choose its group), and a class under *Classes*: its name, zone, instructors and",
    "students. From then on its instructors enrol students there themselves, and give it exercises under",
    "*Assignments*.",
    "",
]
_OWN_PAGES = [
    "",
    "## Pages of our own",
    "",
    "Being staff is not enough for these either. Each asks for permissions of the table above.",
    "",
    "| page | address | asks for |",
    "| --- | --- | --- |",
]
_RECORDS = [
    "",
    "Whatever a role or a superuser may do elsewhere, nobody adds, changes or deletes a record through the admin:",
    "orders, settlements, refunds, movements, stray charges, fences, runs, events, elections, performances, proofs",
    "and runs of the laboratory are written by the shop's own code alone. A count of the shelf is added by an",
    "operator and then stays as it was. A book's stock is shown and never typed in.",
]


def _things() -> list[str]:
    return list(dict.fromkeys(_split(name)[1] for names in ROLES.values() for name in names))


def _split(name: str) -> tuple[str, str]:
    """`shop.view_book` as (`view`, `shop.book`)."""
    app, _, codename = name.partition(".")
    verb, _, model = codename.partition("_")
    return verb, f"{app}.{model}"


def _verbs(role: str, thing: str) -> str:
    return ", ".join(verb for verb, of in map(_split, ROLES[role]) if of == thing) or "–"


def _codes(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _pages() -> list[Any]:
    """Asked of the site and not imported: migrations of the rooms below import this module."""
    site: Any = admin.site
    return list(site.own_pages())
