"""`python -m spec.proofs`: the table of the claims; `python -m spec.proofs contracts`: that of the contracts.

Exit codes: 0 everything is as it should be, 2 wrong arguments or a missing package, 3 something is not.
"""

from __future__ import annotations

import argparse
import sys

EXIT_USAGE = 2
EXIT_FOUND = 3


def main(arguments: list[str] | None = None) -> int:
    """Prints one table; the exit code says whether everything is as it should be."""
    parser = argparse.ArgumentParser(prog="python -m spec.proofs", description="Claims for all sizes, judged by Z3.")
    parser.add_argument("what", nargs="?", choices=("claims", "contracts"), default="claims")
    parser.add_argument("--json", action="store_true", help="one line of JSON for each row")
    options = parser.parse_args(arguments)
    try:
        return _contracts(options.json) if options.what == "contracts" else _claims(options.json)
    except ModuleNotFoundError as error:
        if error.name not in {"z3", "crosshair"}:
            raise
        print(f"Error: {error.name} is missing: pip install '.[symbolic]'", file=sys.stderr)
        return EXIT_USAGE


def _claims(as_json: bool) -> int:
    from spec.proofs.catalogue import CLAIMS
    from spec.proofs.run import rows

    wrong = count = 0
    for row in rows(CLAIMS):
        print(row.as_json() if as_json else row.as_text(), flush=True)
        count += 1
        wrong += not row.is_as_expected
    if not as_json:
        print(f"{len(CLAIMS)} claims and {count - len(CLAIMS)} twins, {wrong} not as expected")
    return EXIT_FOUND if wrong else 0


def _contracts(as_json: bool) -> int:
    from spec.proofs.check_contracts import outcomes

    wrong = 0
    for outcome in outcomes():
        print(outcome.as_json() if as_json else outcome.as_text(), flush=True)
        wrong += not outcome.is_as_expected
    return EXIT_FOUND if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
