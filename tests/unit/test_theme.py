"""The theme's colours: words can be read on what they stand on, in the light and in the dark."""

import re
from pathlib import Path

import pytest

SHEET = (Path(__file__).resolve().parents[2] / "marlow" / "static" / "marlow" / "theme.css").read_text()
COLOURS = dict(re.findall(r"--([\w-]+): (light-dark\([^;]*\)|#[0-9a-f]{6});", SHEET))
WORDS = [
    *((ink, ground) for ink in ("ink", "ink-2", "green", "bad", "warn") for ground in ("paper", "leaf", "leaf-2")),
    *(("bad", "bad-bg"), ("warn", "warn-bg"), ("ink", "bad-bg"), ("ink", "warn-bg"), ("ink", "good-bg")),
    *(("ink-2", "bad-bg"), ("ink-2", "warn-bg"), ("green", "bad-bg"), ("green", "warn-bg")),
    *(("button-fg", "green"), ("button-fg", "green-2"), ("button-fg", "close-button-bg")),
    *(("button-fg", "delete-button-bg"), ("header-link-color", "board"), ("header-color", "board")),
    *(("lane-1", "leaf-2"), ("lane-2", "leaf-2"), ("lane-3", "leaf-2"), ("lane-4", "leaf-2"), ("leaf", "bad")),
]
EDGES = [("rule-2", "leaf"), ("rule-2", "paper"), ("bad", "leaf"), ("green", "paper")]


def shade(name: str, scheme: int) -> str:
    found = re.findall(r"#[0-9a-f]{6}", COLOURS[name])
    return found[min(scheme, len(found) - 1)]


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("ink", "ground"), WORDS)
def test_words_stand_out_from_their_ground(ink, ground, scheme):
    assert contrast(shade(ink, scheme), shade(ground, scheme)) >= 4.5


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("edge", "ground"), EDGES)
def test_the_edges_of_controls_can_be_seen(edge, ground, scheme):
    assert contrast(shade(edge, scheme), shade(ground, scheme)) >= 3


def test_every_colour_used_is_defined():
    used = set(re.findall(r"var\(--([\w-]+)", SHEET))
    defined = set(re.findall(r"--([\w-]+):", SHEET))
    assert used - defined <= {"font-family-primary", "font-family-monospace"}  # the admin’s own
