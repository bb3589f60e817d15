"""A class, and what it can't prevent."""

import ast
from typing import Annotated, Literal

from pydantic import Field, field_validator

from exercises.handed.answers import Answers as Base
from exercises.handed.answers import Code

MOST = 16 * 1024  # bytes of the source
METHODS = {"acquire", "release"}


class Answers(Base):
    source: Annotated[
        str,
        Code("python"),
        Field(title="Your lock", description="A class Lock with acquire(name, milliseconds) and release(name)."),
    ]
    cannot_prevent: Annotated[
        Literal["two-holders-after-a-pause", "foreign-delete", "stuck-after-a-crash", "nothing"],
        Field(title="What it can't prevent", description="The failure that is left, however well it is written."),
    ]

    @field_validator("source")
    @classmethod
    def _has_the_class(cls, source: str) -> str:
        """Parsed, never run."""
        if len(source.encode(errors="replace")) > MOST:
            raise ValueError(f"This is too long: {MOST // 1024} KiB are taken at the most.")
        try:
            tree = ast.parse(source)
        except (MemoryError, RecursionError) as deep:
            raise ValueError("This is nested too deeply to be read.") from deep
        except (SyntaxError, ValueError) as wrong:
            raise ValueError(f"This is no Python ({wrong}).") from wrong
        for one in tree.body:
            if isinstance(one, ast.ClassDef) and one.name == "Lock" and not METHODS - _methods(one):
                return source
        raise ValueError("There is no class Lock with the methods acquire and release.")


def _methods(of: ast.ClassDef) -> set[str]:
    return {part.name for part in of.body if isinstance(part, ast.FunctionDef)}
