"""An exercise's statement for a page: Markdown made into a little HTML, with nothing in it that the page forbids."""

import markdown
import nh3

EXTENSIONS = ["fenced_code", "tables", "sane_lists"]
TAGS = {
    *("p", "h2", "h3", "h4", "ul", "ol", "li", "strong", "em", "code", "pre", "blockquote", "hr", "br", "a"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {"a": {"href"}, "ol": {"start"}}
SCHEMES = {"http", "https", "mailto"}


def as_html(statement: str) -> str:
    """Safe to be put on a page as it is. The first line, the title, is left out."""
    made = markdown.markdown(statement.partition("\n")[2], extensions=EXTENSIONS)
    return nh3.clean(made, tags=TAGS, attributes=ATTRIBUTES, url_schemes=SCHEMES)
