"""Classes with their students, what is given to them, and extensions: each its own instructors' to change.

Superusers make classes and say who teaches them. Accounts are never listed: people are named by their user name.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib import admin, messages
from django.db.models import Exists, Model, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from grading import sight
from grading.admin.fields import AssignmentForm, ClassForm, ExtensionForm
from grading.admin.words import in_zone, title_of
from grading.extension import extend
from grading.lateness import reckoned_anew
from grading.models import Assignment, Class, Enrolment, Extension, Release
from marlow.clock import real_now
from shop.admin.record import Fields, Readable, TabularInline, moment
from shop.words import count

AT, SINCE = moment("at"), moment("since")


class Taught(Readable):
    """Rows of classes: read where they are `visible`, changed where the class is taught by who asks."""

    def visible(self, viewer: Any) -> QuerySet[Any]:
        raise NotImplementedError

    def class_of(self, row: Any) -> Class:
        of: Class = row.of
        return of

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows, order = self.visible(request.user), self.get_ordering(request)
        return rows.order_by(*order) if order else rows

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        may = super().has_view_permission(request, obj)
        return may and (obj is None or self.visible(request.user).filter(pk=obj.pk).exists())

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        may = super().has_change_permission(request, obj)
        return may and (obj is None or sight.teaches(request.user, self.class_of(obj)))


class EnrolmentInline(TabularInline):
    """Students of the class. They are taken out here, and their work stays; they are enrolled by their user names."""

    model = Enrolment
    extra = 0
    fields = ("who", SINCE)
    readonly_fields = ("who", SINCE)
    verbose_name_plural = "Students"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Enrolment]:
        rows: QuerySet[Enrolment] = super().get_queryset(request)
        return rows.filter(of__in=sight.taught(request.user)).select_related("of", "student")

    @admin.display(description="student")
    def who(self, enrolment: Enrolment) -> str:
        return str(enrolment.student)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(Class)
class ClassAdmin(Taught):
    form = ClassForm
    list_display = ["name", "zone"]
    search_fields = ["name"]
    autocomplete_fields = ["instructors"]
    inlines = [EnrolmentInline]

    def visible(self, viewer: Any) -> QuerySet[Class]:
        """Not to its students: who else is in it is not theirs to read."""
        return sight.taught(viewer)

    def class_of(self, row: Any) -> Class:
        of: Class = row
        return of

    def get_readonly_fields(self, request: HttpRequest, obj: Class | None = None) -> list[str]:
        """Who teaches a class is a superuser's to say."""
        return [] if request.user.is_superuser else ["instructors"]

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Fields:
        enrols = request.user.has_perm("grading.add_enrolment") and self.has_change_permission(request, obj)
        return ["name", "zone", "instructors", *(["enrol"] if enrols else [])]

    def save_model(self, request: HttpRequest, obj: Class, form: Any, change: bool) -> None:
        given = obj.assignments.all() if change else ()
        with _reckoned_anew(request, given, "the zone of the class was changed"):
            super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Who is enrolled already stays so, whoever else enrols them at the same time: `enrolled_once`."""
        super().save_related(request, form, formsets, change)
        for student in form.cleaned_data.get("enrol", ()):
            Enrolment.objects.get_or_create(of=form.instance, student=student, defaults={"since": real_now()})


@admin.register(Assignment)
class AssignmentAdmin(Taught):
    """Moments are shown and typed in the zone of the class."""

    form = AssignmentForm
    list_display = ["title", "of", "opens", "due", "released"]
    list_select_related = ["of"]
    list_filter = [("of", admin.RelatedOnlyFieldListFilter)]
    search_fields = ["exercise", "of__name"]
    rules = ["opens_at", "due_at", "late_days", "late_percent", "attempts", "cooldown", "counts", "checks_before_due"]

    def visible(self, viewer: Any) -> QuerySet[Assignment]:
        shown = Release.objects.filter(assignment=OuterRef("pk"), undone_at=None)
        return sight.assignments(viewer).annotate(shown=Exists(shown))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Fields:
        """Who only reads it reads moments with their zone, and no link to a class that they may not open."""
        if obj is None:
            return ["of", "exercise", *self.rules]
        opens = self.admin_site.get_model_admin(Class).has_view_permission(request, obj.of)
        moments = ["opens_at", "due_at"] if self.has_change_permission(request, obj) else ["opens", "due"]
        return ["of" if opens else "class_name", "title", *moments, *self.rules[2:]]

    def get_readonly_fields(self, request: HttpRequest, obj: Assignment | None = None) -> list[str]:
        """What was handed in belongs to this exercise and to this class."""
        return ["of", "class_name", "exercise", "title", "opens", "due"] if obj else []

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "of":
            kwargs["queryset"] = sight.taught(request.user)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Assignment, form: Any, change: bool) -> None:
        with _reckoned_anew(request, [obj] if change else (), "the rules of the assignment were changed"):
            super().save_model(request, obj, form, change)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Read and drawn in the zone of the class; a new one's is that of the class that is posted with it."""
        number = args[0] if args else kwargs.get("object_id")
        with timezone.override(_zone(request, number)):
            response: Any = super().changeform_view(request, *args, **kwargs)
            return response.render() if hasattr(response, "render") else response

    @admin.display(description="exercise", ordering="exercise")
    def title(self, assignment: Assignment) -> str:
        return title_of(assignment.exercise)

    @admin.display(description="class")
    def class_name(self, assignment: Assignment) -> str:
        return str(assignment.of)

    @admin.display(description="opens", ordering="opens_at")
    def opens(self, assignment: Assignment) -> str:
        return in_zone(assignment.opens_at, assignment.of.zone)

    @admin.display(description="due", ordering="due_at")
    def due(self, assignment: Assignment) -> str:
        return in_zone(assignment.due_at, assignment.of.zone)

    @admin.display(description="grades are shown", boolean=True)
    def released(self, assignment: Any) -> bool:
        return bool(assignment.shown)


@contextmanager
def _reckoned_anew(request: HttpRequest, given: Iterable[Assignment], why: str) -> Iterator[None]:
    """Whoever changes a rule is told how many received attempts it reached."""
    with reckoned_anew(given, why=why, by=request.user, now=real_now()) as changes:
        yield
    if changes:
        messages.info(request, f"{count(len(changes), 'attempt')} received already: the lateness is reckoned anew.")


def _zone(request: HttpRequest, number: str | None) -> Any:
    """Of the assignment's class; of the class that is posted; of the first that they teach; else the site's."""
    if number is not None:
        rows = sight.assignments(request.user).filter(pk=number) if str(number).isdecimal() else ()
        return next((one.of.zone for one in rows), timezone.get_default_timezone_name())
    posted = request.POST.get("of", "")
    taught = sight.taught(request.user)
    chosen = taught.filter(pk=posted) if posted.isdecimal() and len(posted) < 18 else taught
    return chosen.values_list("zone", flat=True).first() or timezone.get_default_timezone_name()


@admin.register(Extension)
class ExtensionAdmin(Taught):
    """More days or attempts for one student; who gave them and when is not typed in. None is deleted, not even by a
    superuser: one of no days and no attempts says the same, and is in the history.
    """

    form = ExtensionForm
    list_display = ["student", "assignment", "days", "attempts", "why", "given_by", AT]
    list_select_related = ["student", "assignment__of", "given_by"]
    list_filter = [("assignment__of", admin.RelatedOnlyFieldListFilter)]
    search_fields = ["student__username", "why"]

    def visible(self, viewer: Any) -> QuerySet[Extension]:
        return Extension.objects.filter(assignment__of__in=sight.taught(viewer))

    def class_of(self, row: Any) -> Class:
        of: Class = row.assignment.of
        return of

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Fields:
        whose = ["whose", "days", "attempts", "why", "giver", AT] if obj else ["student", "days", "attempts", "why"]
        return ["assignment", *whose]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        return ["assignment", "student", "whose", "giver", AT] if obj else []

    @admin.display(description="student")
    def whose(self, extension: Extension) -> str:
        return str(extension.student)

    @admin.display(description="given by")
    def giver(self, extension: Extension) -> str:
        return str(extension.given_by)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "assignment":
            kwargs["queryset"] = sight.assigned(request.user)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Extension, form: Any, change: bool) -> None:
        more: dict[str, Any] = {"days": obj.days, "attempts": obj.attempts, "why": obj.why}
        given = extend(obj.assignment, obj.student, **more, by=request.user, now=real_now())
        obj.pk, obj.given_by, obj.at = given.pk, given.given_by, given.at
