"""SQL that is up to something, as it is handed in: what its student is told at the form."""

import pytest

from exercises.catalogue.slot.answers import Answers
from exercises.handed.answers import NotAnswers, read
from exercises.handed.exercise import exercise

RIGHT = next(known.answers for known in exercise("slot").known() if known.name == "right")
ONE = "a step is one SELECT or UPDATE."
INSERT = "INSERT is not taken: the rows are there, to be updated."
DELETE = "DELETE is not taken: the rows stay there, to be updated."
FUNCTIONS = "abs, bool_and, bool_or, count, max, min, sum are."
TYPES = (
    "bigint, bool, boolean, int, int2, int4, int8, integer, interval, numeric, smallint, text, timestamptz, uuid, "
    "varchar are."
)
PARAMETERS = ":order, :book, :now, :box, :run"
BACK = "update shop_book set stock = stock + 1 where id = :book"

AT_THE_FORM = {
    # What owns the session.
    "set role": ("set role marlow", f"SET and RESET are not taken, nor SET ROLE: {ONE}"),
    "reset role": ("reset role", f"SET and RESET are not taken, nor SET ROLE: {ONE}"),
    "session authorization": (
        "set session authorization marlow",
        f"SET and RESET are not taken, nor SET ROLE: {ONE}",
    ),
    "its own timeouts": (
        "set local statement_timeout = 0",
        f"SET and RESET are not taken, nor SET ROLE: {ONE}",
    ),
    "timeouts by function": (
        "select set_config('statement_timeout', '0', false)",
        f"set_config() is not lent: {FUNCTIONS}",
    ),
    "a setting read": ("select current_setting('data_directory')", f"current_setting() is not lent: {FUNCTIONS}"),
    "show": ("show data_directory", f"SHOW is not taken: {ONE}"),
    # What owns the transaction.
    "commit": ("commit", "Transactions are the exercise’s: give a step another transaction’s number instead."),
    "savepoint": (
        "rollback to savepoint x",
        "Transactions are the exercise’s: give a step another transaction’s number instead.",
    ),
    "isolation": (
        "set transaction isolation level serializable",
        f"SET and RESET are not taken, nor SET ROLE: {ONE}",
    ),
    # The server's functions.
    "sleep": ("select pg_sleep(60)", f"pg_sleep() is not lent: {FUNCTIONS}"),
    "sleep by its schema": ("select pg_catalog.pg_sleep(60)", f"pg_catalog.pg_sleep() is not lent: {FUNCTIONS}"),
    "sleep in quotes": ('select "pg_sleep"(60)', f"pg_sleep() is not lent: {FUNCTIONS}"),
    "sleep in unicode": (r"""select U&"pg\005fsleep"(60)""", f"pg_sleep() is not lent: {FUNCTIONS}"),
    "sleep in a condition": (
        "update shop_book set stock = stock + 1 where id = :book and pg_sleep(60) is not null",
        f"pg_sleep() is not lent: {FUNCTIONS}",
    ),
    "terminate": (
        "select pg_terminate_backend(pid) from pg_stat_activity",
        "pg_stat_activity is not lent: shop_order and shop_book are.",
    ),
    "terminate by number": ("select pg_terminate_backend(1)", f"pg_terminate_backend() is not lent: {FUNCTIONS}"),
    "the platform's advisory lock": (
        "select pg_advisory_lock(7102818)",
        f"pg_advisory_lock() is not lent: {FUNCTIONS}",
    ),
    "large object": ("select lo_import('/etc/passwd')", f"lo_import() is not lent: {FUNCTIONS}"),
    "file": ("select pg_read_file('/etc/passwd')", f"pg_read_file() is not lent: {FUNCTIONS}"),
    "dblink": (
        "select * from dblink('dbname=marlow', 'select 1') as t(a int)",
        "A function in FROM is not taken: read from the tables that are lent.",
    ),
    "a query in a string": (
        "select query_to_xml('select * from auth_user', true, true, '')",
        f"query_to_xml() is not lent: {FUNCTIONS}",
    ),
    "the server's clock": (
        "select current_timestamp",
        "The server’s own clock and names are not lent: the parameters say when it is, and for whom.",
    ),
    # The catalogue, and tables that are not lent.
    "catalogue": ("select * from pg_roles", "pg_roles is not lent: shop_order and shop_book are."),
    "catalogue by schema": (
        "select * from pg_catalog.pg_authid",
        "pg_catalog.pg_authid is not lent: name a table without a schema.",
    ),
    "information schema": (
        "select * from information_schema.tables",
        "information_schema.tables is not lent: name a table without a schema.",
    ),
    "catalogue behind a name": (
        "select (with pg_roles as (select 1) select 1) from pg_roles",
        "pg_roles is no name for a part of a statement: take one without pg_ before it.",
    ),
    "an array": (
        "select 1::int[]",
        f"A type with [] is an array’s, and those are not taken: {TYPES}",
    ),
    "catalogue by a cast": ("select 'pg_authid'::regclass", f"The type regclass is not lent: {TYPES}"),
    "what the oracle counts": (
        "select count(*) from shop_settlement",
        "shop_settlement is not lent: shop_order and shop_book are.",
    ),
    "less for the oracle to count": ("delete from shop_settlement", DELETE),
    "the shelf": (
        "insert into shop_stockmovement (book_id, kind, copies, at) values (:book, 'received', 1, :now)",
        INSERT,
    ),
    "the shelf behind an alias": (
        "select 1 from shop_stockmovement o for update of o",
        "shop_stockmovement is not lent: shop_order and shop_book are.",
    ),
    "a schema where rows are locked": (
        "select 1 from shop_order for update of pg_catalog.pg_authid",
        "pg_catalog.pg_authid is not lent: name a table without a schema.",
    ),
    "the shelf in a part": (
        "with more as (update shop_stockmovement set copies = copies + 1 returning 1) select * from more",
        "shop_stockmovement is not lent: shop_order and shop_book are.",
    ),
    "money": ("select * from shop_refund", "shop_refund is not lent: shop_order and shop_book are."),
    "a row of its own": ("insert into shop_book (title) values ('mine')", INSERT),
    "a row of its own in a part": (
        "with mine as (insert into shop_book (title) values ('mine') on conflict do nothing returning id) "
        "select id from mine",
        INSERT,
    ),
    "rows away": ("delete from shop_order where id = :order", DELETE),
    "rows away in a part": ("with gone as (delete from shop_order returning id) select id from gone", DELETE),
    "either": (
        "merge into shop_book b using shop_order o on b.id = o.book_id when matched then delete",
        f"Merge is not taken: {ONE}",
    ),
    "another column": (
        "update shop_order set amount_minor = 0 where id = :order",
        "shop_order.amount_minor is not yours to write: status, settled_at, settled_by_box, settled_by_run are.",
    ),
    # Tricks of writing.
    "two statements": (f"{BACK}; {BACK}", f"There are 2 statements here: {ONE}"),
    "behind a comment": (f"{BACK} -- \n; drop table shop_order", f"There are 2 statements here: {ONE}"),
    "nothing but a comment": ("/* update shop_book */", f"This is empty: {ONE}"),
    "an open comment": (
        "select 1 /* /* */",
        'Postgres can’t read this: unterminated /* comment at or near "/* /* */".',
    ),
    "an open string": ("select 'a", 'Postgres can’t read this: unterminated quoted string at or near "\'a".'),
    "a parameter by number": ("select $1", f"$1 stands for nothing: write {PARAMETERS}."),
    "a parameter of others": ("select :password", f"There is no parameter :password: take {PARAMETERS}."),
    "nul": ("select 1\x00; drop table shop_order", "This has a NUL character in it: take it out."),
    # Other statements.
    "copy to a program": ("copy shop_order to program 'id'", f"COPY is not taken: {ONE}"),
    "copy from a file": ("copy shop_order from '/etc/passwd'", f"COPY is not taken: {ONE}"),
    "do": ("do $$ begin perform pg_sleep(60); end $$", f"DO is not taken: {ONE}"),
    "call": ("call anything()", f"CALL is not taken: {ONE}"),
    "prepare": ("prepare p as select 1", f"Prepare is not taken: {ONE}"),
    "execute": ("execute p", f"Execute is not taken: {ONE}"),
    "listen": ("listen verdicts", f"Listen is not taken: {ONE}"),
    "lock table": ("lock table shop_order", "LOCK is not taken: lock rows, with SELECT … FOR UPDATE."),
    "explain": ("explain analyze update shop_book set stock = 9", f"EXPLAIN is not taken: {ONE}"),
    "grant": ("grant all on shop_settlement to public", f"Grant is not taken: {ONE}"),
    "a function of its own": (
        "create function f() returns int language sql as 'select 1'",
        f"CreateFunction is not taken: {ONE}",
    ),
    "alter role": ("alter role current_user superuser", f"AlterRole is not taken: {ONE}"),
    "a table of its own": (
        "select * into temp mine from shop_order",
        "SELECT INTO makes a table, which no step may.",
    ),
    # Much of everything.
    "without end": (
        "with recursive t as (select 1 union all select 1 from t) select count(*) from t",
        "WITH RECURSIVE is not taken: no step of a settle needs to go round in circles.",
    ),
    "rows from nowhere": (
        "select generate_series(1, 1000000000)",
        f"generate_series() is not lent: {FUNCTIONS}",
    ),
    "many tables": (
        f"select 1 from {', '.join(f'shop_order o{number}' for number in range(7))}",
        "This names 7 tables: 6 are taken at the most.",
    ),
    "long texts": ("select repeat('x', 1000000000)", f"repeat() is not lent: {FUNCTIONS}"),
    "texts that double": ("select 'x' || 'x'", "The operator || is not lent: % * + - / < <= <> = > >= are."),
    "a pattern that backtracks": (
        "select 1 from shop_order where buyer ~ '(a*)*b'",
        "The operator ~ is not lent: % * + - / < <= <> = > >= are.",
    ),
    "many levels": (
        f"select {'1+' * 500}1",
        "This is nested too deeply: write it with fewer operators and SELECTs in each other.",
    ),
    "waiting for nobody": (
        "select 1 from shop_order for update nowait",
        "NOWAIT is an error where it meets a lock, and ends the run: take SKIP LOCKED, or wait.",
    ),
}


@pytest.mark.parametrize(("statement", "says"), AT_THE_FORM.values(), ids=AT_THE_FORM)
def test_what_is_not_lent_is_refused_at_its_field(statement: str, says: str) -> None:
    step = {"statement": statement, "transaction": 1, "on_zero_rows": "go on"}
    with pytest.raises(NotAnswers) as refused:
        read(Answers, {**RIGHT, "settle": [RIGHT["settle"][0], step]})
    assert refused.value.problems == {"settle.1.statement": says}
