"""The grader: what was handed in, what a machine and a person made of it, and who may see that."""

from django.apps import AppConfig


class GradingConfig(AppConfig):
    name = "grading"
    verbose_name = "Grading"
