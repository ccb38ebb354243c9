"""The command `recover`: its errors in words, with the remedy, and the promised exit status."""

from __future__ import annotations

import sys

from recovery.cli import ROOT
from recovery.errors import RecoveryError


def main() -> None:
    """Runs the command line and exits."""
    try:
        ROOT.main(prog_name="recover")
    except RecoveryError as error:
        sys.stderr.write(f"recover: {error.message}\n  remedy: {error.remedy}\n")
        raise SystemExit(error.exit_code) from None


if __name__ == "__main__":
    main()
