"""Statements on a page: what Markdown says, and nothing that a strict page forbids."""

import re

import pytest

from exercises.handed.exercise import catalogue
from grading.statement import as_html

STATEMENT = """# The title

Some *words* and `code`.

1. one
2. two

| a | b |
| ---: | --- |
| 1 | 2 |

```python
x < 1
```
"""


def test_markdown_becomes_what_it_says_without_its_title():
    page = as_html(STATEMENT)
    assert "The title" not in page
    for told in ("<em>words</em>", "<code>code</code>", "<li>one</li>", "<td>1</td>", "x &lt; 1"):
        assert told in page
    assert "style" not in page


@pytest.mark.parametrize(
    "odd",
    [
        "<script>alert(1)</script>",
        "<p style='color: red' onclick='alert(1)'>x</p>",
        "[x](javascript:alert(1))",
        "<img src=x onerror=alert(1)>",
        "<iframe src='https://example.com'></iframe>",
        "<style>p { color: red }</style>",
        "<form action='/admin/logout/'><button>x</button></form>",
        "![x](https://example.com/x.png)",
    ],
)
def test_nothing_gets_through_that_the_page_forbids(odd):
    page = as_html(f"# Title\n\nBefore.\n\n{odd}\n\nAfter.")
    assert not re.search("<(script|img|iframe|style|form|button)|on[a-z]+=|style=|javascript:", page)
    assert "Before." in page
    assert "After." in page


@pytest.mark.parametrize("slug", catalogue())
def test_every_statement_has_a_title_and_a_text(slug):
    exercise = catalogue()[slug]
    assert exercise.title
    assert len(as_html(exercise.statement)) > 200
    assert "<h1" not in as_html(exercise.statement)
