"""`make bench`: all measurements, one table each; or those named: `python -m tests.bench scale`."""

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(names):
    """Runs the measurements named, or all of them."""
    known = sorted(p.stem for p in HERE.glob("*.py") if not p.stem.startswith("_"))
    for name in names or known:
        if name not in known:
            sys.exit(f"no measurement {name!r}; one of: {', '.join(known)}")
        print(f"\n## {name}\n", flush=True)
        sys.argv = [name]
        try:
            runpy.run_module(f"tests.bench.{name}", run_name="__main__")
        except SystemExit as end:
            print(f"ended: {end}")


if __name__ == "__main__":
    main(sys.argv[1:])
