"""SQL that is handed in: read by Postgres' own parser, and taken where everything in it is on a list.

What runs is what was read: the statement is written anew from its tree, so no comment, no second statement and no
trick of quoting reaches the server. The lists say what is lent; nothing is refused for its name alone that could come
in by another one. Behind this stands a role that trusts none of it: see `exercises.lab.guest`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pglast import ast, parse_sql
from pglast.enums import LockWaitPolicy
from pglast.parser import ParseError, scan
from pglast.stream import RawStream

LONGEST = 2000  # characters of a statement
DEEPEST = 60  # levels of its tree: how deep Python itself could go is another number wherever it is asked
MOST_TABLES = 6  # tables named in one statement: joined without a condition they stay few rows
KINDS = (ast.SelectStmt, ast.UpdateStmt)
ONE = "a step is one SELECT or UPDATE"
FUNCTIONS = ("abs", "bool_and", "bool_or", "count", "max", "min", "sum")
BETWEEN = ("BETWEEN", "NOT BETWEEN", "BETWEEN SYMMETRIC", "NOT BETWEEN SYMMETRIC")
OPERATORS = {"=", "<>", "<", ">", "<=", ">=", "+", "-", "*", "/", "%", *BETWEEN}
TYPES = {
    *("int2", "int4", "int8", "smallint", "integer", "int", "bigint", "numeric", "text", "varchar", "bool"),
    *("boolean", "timestamptz", "interval", "uuid"),
}
# Whatever is no node of these is refused: what a later Postgres can do besides is not lent by being new.
TAKEN = {
    *("RawStmt", "SelectStmt", "UpdateStmt", "WithClause", "CommonTableExpr"),
    *("ResTarget", "ReturningClause", "RangeVar", "RangeSubselect", "JoinExpr", "Alias", "SortBy", "LockingClause"),
    *("ColumnRef", "A_Star", "ParamRef", "A_Const", "Integer", "Float", "String", "Boolean", "SetToDefault"),
    *("A_Expr", "BoolExpr", "NullTest", "BooleanTest", "CaseExpr", "CaseWhen", "CoalesceExpr", "MinMaxExpr"),
    *("SubLink", "RowExpr", "A_ArrayExpr", "MultiAssignRef", "TypeCast", "TypeName", "FuncCall"),
}
# What else Postgres calls a statement, and what to say of it; of the first two also where they are part of another.
OWNED = {
    "InsertStmt": "INSERT is not taken: the rows are there, to be updated.",
    "DeleteStmt": "DELETE is not taken: the rows stay there, to be updated.",
    "TransactionStmt": "Transactions are the exercise’s: give a step another transaction’s number instead.",
    "VariableSetStmt": f"SET and RESET are not taken, nor SET ROLE: {ONE}.",
    "VariableShowStmt": f"SHOW is not taken: {ONE}.",
    "CopyStmt": f"COPY is not taken: {ONE}.",
    "DoStmt": f"DO is not taken: {ONE}.",
    "CallStmt": f"CALL is not taken: {ONE}.",
    "LockStmt": "LOCK is not taken: lock rows, with SELECT … FOR UPDATE.",
    "ExplainStmt": f"EXPLAIN is not taken: {ONE}.",
}


class NotLent(ValueError):
    """A statement that is not taken, with a sentence for whoever wrote it."""


@dataclass(frozen=True)
class Lent:
    """What an exercise lends. `reads`: tables; `writes`: of tables the columns that an UPDATE may set; `parameters`:
    names, and what each is.
    """

    reads: tuple[str, ...]
    writes: Mapping[str, tuple[str, ...]]
    parameters: Mapping[str, str] = field(default_factory=dict)

    def grants(self) -> Iterator[str]:
        """The same for Postgres, each as GRANT has it before TO."""
        for table in self.reads:
            yield f"select on {table}"
        for table, columns in self.writes.items():
            yield f"update ({', '.join(columns)}) on {table}"


def taken(statement: str, lent: Lent) -> str:
    """The statement as psycopg takes it, with `%(order)s` for `:order`. Raises NotLent."""
    if len(statement) > LONGEST:
        raise NotLent(f"A statement has at most {LONGEST} characters, and this one {len(statement)}.")
    if "\x00" in statement:
        raise NotLent("This has a NUL character in it: take it out.")
    names = list(lent.parameters)
    try:
        tree = parse_sql(_numbered(statement, names))
        _demand_lent(tree, lent)
        return _named(str(RawStream()(tree[0])), names)
    except ParseError as wrong:
        raise NotLent(f"Postgres can’t read this: {wrong.args[0]}.") from wrong


def _numbered(statement: str, names: list[str]) -> str:
    """With `$1` for the first name's `:order`, wherever Postgres' scanner sees neither a string nor a comment."""
    tokens = scan(statement)
    parts, done = [], 0
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.name == "PARAM":
            raise NotLent(f"{statement[token.start : token.end + 1]} stands for nothing: write {_listed(names)}.")
        if token.name != "ASCII_58":
            continue
        if following is None or following.start != token.end + 1:
            raise NotLent(f"A colon belongs right before its parameter’s name: {_listed(names)}.")
        word = statement[following.start : following.end + 1]
        if word not in names:
            raise NotLent(f"There is no parameter :{word}: take {_listed(names)}.")
        parts += [statement[done : token.start], f"${names.index(word) + 1} "]
        done = following.end + 1
    return "".join([*parts, statement[done:]])


def _named(statement: str, names: list[str]) -> str:
    """The other way round, for psycopg, to which a percent sign of the statement's own is two."""
    parts, done = [], 0
    for token in scan(statement):
        if token.name == "PARAM":
            name = names[int(statement[token.start + 1 : token.end + 1]) - 1]
            parts += [statement[done : token.start].replace("%", "%%"), f"%({name})s"]
            done = token.end + 1
    return "".join([*parts, statement[done:].replace("%", "%%")])


def _listed(names: list[str]) -> str:
    return ", ".join(f":{name}" for name in names) or "none"


# --- What may stand in one ----------------------------------------------------------------------------------------


def _demand_lent(tree: tuple[Any, ...], lent: Lent) -> None:
    """Raises NotLent."""
    if len(tree) != 1:
        raise NotLent(f"There are {len(tree)} statements here: {ONE}." if tree else f"This is empty: {ONE}.")
    statement = tree[0].stmt
    if not isinstance(statement, KINDS):
        what = type(statement).__name__
        raise NotLent(OWNED.get(what, f"{what.removesuffix('Stmt')} is not taken: {ONE}."))
    nodes = list(_nodes(tree[0]))
    for node in nodes:
        if type(node).__name__ not in TAKEN:
            _refuse(type(node).__name__)
    _demand_tables(nodes, lent)
    for node in nodes:
        if demand := _DEMANDS.get(type(node)):
            demand(node)
        if isinstance(node, ast.UpdateStmt):
            _demand_writable(node, lent)


def _nodes(tree: Any) -> Iterator[Any]:
    """Every node below this one, and itself. Raises NotLent where there are too many levels of them."""
    waiting = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > DEEPEST:
            raise NotLent("This is nested too deeply: write it with fewer operators and SELECTs in each other.")
        if isinstance(node, ast.Node):
            yield node
            waiting += [(getattr(node, name), depth + 1) for name in node]
        elif isinstance(node, tuple):
            waiting += [(inner, depth) for inner in node]


def _refuse(what: str) -> None:
    if what in OWNED:
        raise NotLent(OWNED[what])
    if what == "SQLValueFunction":
        raise NotLent("The server’s own clock and names are not lent: the parameters say when it is, and for whom.")
    if what == "IntoClause":
        raise NotLent("SELECT INTO makes a table, which no step may.")
    if what == "RangeFunction":
        raise NotLent("A function in FROM is not taken: read from the tables that are lent.")
    raise NotLent(f"This has a {what} in it, as Postgres calls it, which is not taken here: write it more plainly.")


def _demand_tables(nodes: list[Any], lent: Lent) -> None:
    tables = [node for node in nodes if isinstance(node, ast.RangeVar)]
    # What is locked stands in FROM already, and may be called there as it likes.
    locked = {id(name) for node in nodes if isinstance(node, ast.LockingClause) for name in node.lockedRels or ()}
    named = [table for table in tables if id(table) not in locked]
    if len(named) > MOST_TABLES:
        raise NotLent(f"This names {len(named)} tables: {MOST_TABLES} are taken at the most.")
    parts = {node.ctename for node in nodes if isinstance(node, ast.CommonTableExpr)}
    for table in tables:
        if table.schemaname or table.catalogname:
            before = f"{table.catalogname}." if table.catalogname else ""
            raise NotLent(f"{before}{table.schemaname}.{table.relname} is not lent: name a table without a schema.")
    for table in named:
        if table.relname not in (*lent.reads, *parts):
            raise NotLent(f"{table.relname} is not lent: {' and '.join(lent.reads)} are.")


def _demand_writable(node: Any, lent: Lent) -> None:
    table = node.relation.relname
    if table not in lent.writes:
        raise NotLent(f"{table} is not yours to write: {' and '.join(lent.writes)} are.")
    for target in node.targetList or ():
        if target.name not in lent.writes[table]:
            raise NotLent(f"{table}.{target.name} is not yours to write: {', '.join(lent.writes[table])} are.")


def _demand_function(call: Any) -> None:
    name = ".".join(part.sval for part in call.funcname)
    if name not in FUNCTIONS:
        raise NotLent(f"{name}() is not lent: {', '.join(FUNCTIONS)} are.")


def _demand_operator(expression: Any) -> None:
    name = ".".join(part.sval for part in expression.name)
    if name not in OPERATORS:
        raise NotLent(f"The operator {name} is not lent: {' '.join(sorted(OPERATORS - {*BETWEEN}))} are.")


def _demand_type(named: Any) -> None:
    parts = [part.sval for part in named.names]
    if named.arrayBounds:
        raise NotLent(f"A type with [] is an array’s, and those are not taken: {', '.join(sorted(TYPES))} are.")
    if parts[:-1] not in ([], ["pg_catalog"]) or parts[-1] not in TYPES or named.setof:
        raise NotLent(f"The type {'.'.join(parts)} is not lent: {', '.join(sorted(TYPES))} are.")


def _demand_not_recursive(clause: Any) -> None:
    if clause.recursive:
        raise NotLent("WITH RECURSIVE is not taken: no step of a settle needs to go round in circles.")


def _demand_own_name(part: Any) -> None:
    """A name that is the catalogue's is the part's here and the catalogue's two lines further down."""
    if part.ctename.startswith("pg_"):
        raise NotLent(f"{part.ctename} is no name for a part of a statement: take one without pg_ before it.")


def _demand_waiting(clause: Any) -> None:
    if clause.waitPolicy == LockWaitPolicy.LockWaitError:
        raise NotLent("NOWAIT is an error where it meets a lock, and ends the run: take SKIP LOCKED, or wait.")


def _demand_plain_order(sort: Any) -> None:
    if sort.useOp:
        raise NotLent("ORDER BY … USING is not taken: write ASC or DESC.")


_DEMANDS = {
    ast.FuncCall: _demand_function,
    ast.A_Expr: _demand_operator,
    ast.TypeName: _demand_type,
    ast.WithClause: _demand_not_recursive,
    ast.CommonTableExpr: _demand_own_name,
    ast.LockingClause: _demand_waiting,
    ast.SortBy: _demand_plain_order,
}
