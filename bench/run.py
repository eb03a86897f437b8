"""Every measurement, one after the other: what `make bench` runs.

    python bench/run.py [NAME ...]     only these, for example: connections durability
    python bench/run.py --list

Each measurement is a script of its own in this folder, with its own options and `--help`.
"""

import argparse
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
NOT_MEASUREMENTS = {"__init__", "load", "run"}


def names() -> list[str]:
    return sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NOT_MEASUREMENTS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which measurements; all if none is named")
    parser.add_argument("--list", action="store_true", help="say which there are")
    args = parser.parse_args()
    if args.list:
        print("\n".join(names()))
        return 0
    unknown = set(args.names) - set(names())
    if unknown:
        parser.error(f"there is no measurement {', '.join(sorted(unknown))}; there are: {', '.join(names())}")
    chosen = args.names or names()
    failed = []
    for number, name in enumerate(chosen, start=1):
        print(f"\n[{number}/{len(chosen)}] {name}", flush=True)
        began = time.monotonic()
        if subprocess.run([sys.executable, str(HERE / f"{name}.py")], check=False).returncode:
            failed.append(name)
        print(f"({time.monotonic() - began:.0f} s)", flush=True)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
