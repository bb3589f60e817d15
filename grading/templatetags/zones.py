"""A moment in a zone that is named: `{{ change.at|in_zone:assignment.of.zone }}`."""

from datetime import datetime

from django import template

from grading.admin import words

register = template.Library()
register.filter("in_zone", words.in_zone)


@register.filter
def in_zone_to_the_second(moment: datetime, zone: str) -> str:
    return words.in_zone(moment, zone, seconds=True)
