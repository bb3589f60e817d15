"""The processes of a proof:

python -m exercises.proof box
python -m exercises.proof lane FOLDER PORT [HOST]
python -m exercises.proof keep BATCH
"""

import sys

import django


def main() -> None:
    django.setup()
    from exercises.proof import box, keep, lane

    match sys.argv[1:]:
        case ["box"]:
            box.obey(sys.stdin, sys.stdout)
        case ["lane", folder, port, *host]:
            lane.play_all(sys.stdin, sys.stdout, folder, int(port), *host)
        case ["keep", batch]:
            keep.keep_all(sys.stdin, sys.stdout, batch)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
