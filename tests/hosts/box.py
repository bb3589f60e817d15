"""A box reduced to its database session: run on a host of our own, told over its standard input what to ask.

`box.py URL OPTIONS`: OPTIONS is a JSON object for psycopg. Each line that comes in is a JSON list of a statement and
its parameters, and is answered by a line: the first column of the first row, as JSON. It ends with its input.
"""

import json
import sys

import psycopg

if __name__ == "__main__":
    url, options = sys.argv[1:]
    with psycopg.connect(url, autocommit=True, **json.loads(options)) as session:
        for line in sys.stdin:
            statement, *parameters = json.loads(line)
            cursor = session.execute(statement, parameters)
            row = cursor.fetchone() if cursor.description else None
            print(json.dumps(row and row[0]), flush=True)
