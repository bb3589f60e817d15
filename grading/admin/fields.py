"""Forms of classes, of what is given to them and of extensions: what is wrong stands at its field, in a sentence."""

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth import get_user_model
from django.utils.timezone import get_current_timezone_name

from exercises.handed.exercise import catalogue
from grading.extension import NotAnExtension, allowed
from grading.models import Assignment, Class, Extension

if TYPE_CHECKING:
    ModelForm = forms.ModelForm[Any]
    PersonField = forms.ModelChoiceField[Any]
else:
    ModelForm, PersonField = forms.ModelForm, forms.ModelChoiceField

MOST_DAYS = 366  # of lateness
TOLD = 10  # names that are told of at once
LAST_YEAR = 2199  # of a deadline: days are added to it


class ByName(PersonField):
    """A person by their user name, typed in: a list of accounts would be everybody's."""

    def __init__(self, **kwargs: Any) -> None:
        people = get_user_model()._default_manager.filter(is_active=True)
        super().__init__(people, to_field_name="username", widget=forms.TextInput(attrs={"size": 24}), **kwargs)
        self.error_messages["invalid_choice"] = "There is no active account of this user name."

    def to_python(self, value: Any) -> Any:
        return super().to_python(value.replace("\x00", "").strip() if isinstance(value, str) else value)


class ClassForm(ModelForm):
    """`enrol`: accounts, by the user names that were typed in."""

    enrol = forms.CharField(
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 40, "spellcheck": "false"}),
        help_text="User names of students, one a line or with commas between them. Who is in it already stays.",
    )

    class Meta:
        model = Class
        fields = "__all__"
        help_texts = {
            "zone": "Days of lateness are counted in it, and deadlines are shown and typed in it; those that are set "
            "stay the moments that they are.",
            "instructors": "They see and grade everything that is handed in to this class.",
        }

    def clean_enrol(self) -> list[Any]:
        names = list(dict.fromkeys(re.split(r"[\s,;]+", self.cleaned_data["enrol"].strip(" ,;\r\n\t"))))
        people = get_user_model()._default_manager.filter(is_active=True, username__in=names)
        missing = [name for name in names if name and name not in {one.get_username() for one in people}]
        if missing:
            told = ", ".join(missing[:TOLD]) + (" …" if len(missing) > TOLD else "")
            raise forms.ValidationError(f"There is no active account of these user names: {told}.")
        return list(people)


def _catalogue() -> list[tuple[str, str]]:
    return [("", "---------"), *((one.slug, one.title) for one in catalogue().values())]


class AssignmentForm(ModelForm):
    """Arbiter of an exercise given twice at once: the row lock of its class, and `an_exercise_is_given_once`."""

    exercise = forms.ChoiceField(choices=_catalogue, help_text="One of the catalogue.")

    class Meta:
        model = Assignment
        fields = "__all__"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        zone = "in the zone of the class" if self.instance.pk is None else f"in {get_current_timezone_name()}"
        for name, what in (("opens_at", "From then on it is handed in"), ("due_at", "The deadline")):
            if name in self.fields:
                self.fields[name].help_text = f"{what}: date and time {zone}."

    def clean(self) -> dict[str, Any]:
        said: dict[str, Any] = super().clean() or {}
        if of := said.get("of"):
            Class.objects.select_for_update(of=("self",), no_key=True).get(pk=of.pk)
        return said

    def clean_late_days(self) -> int:
        days: int = self.cleaned_data["late_days"]
        if days > MOST_DAYS:
            raise forms.ValidationError(f"Give {MOST_DAYS} days at the most.")
        return days

    def clean_opens_at(self) -> datetime:
        return self._near("opens_at")

    def clean_due_at(self) -> datetime:
        due = self._near("due_at")
        if (opens := self.cleaned_data.get("opens_at")) and due <= opens:
            raise forms.ValidationError("The deadline is not after the opening: choose a later one.")
        return due

    def _near(self, name: str) -> datetime:
        moment: datetime = self.cleaned_data[name]
        if not 2000 <= moment.year <= LAST_YEAR:
            raise forms.ValidationError(f"Choose a year from 2000 to {LAST_YEAR}.")
        return moment


class ExtensionForm(ModelForm):
    student = ByName(label="Student", help_text="Their user name.")

    class Meta:
        model = Extension
        fields = ["assignment", "student", "days", "attempts", "why"]

    def clean(self) -> dict[str, Any]:
        """As `extend` will: what it refuses is said at its field, above the form where that can't be changed."""
        said: dict[str, Any] = super().clean() or {}
        known = self.instance if self.instance.pk else None
        assignment = known.assignment if known else said.get("assignment")
        student = known.student if known else said.get("student")
        if assignment and student and {"days", "attempts", "why"} <= said.keys():
            try:
                allowed(assignment, student, said["days"], said["attempts"], said["why"])
            except NotAnExtension as wrong:
                for name, sentence in wrong.problems.items():
                    self.add_error(name if name in self.fields else None, sentence)
        return said
