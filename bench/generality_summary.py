"""The table of several parts of the generality matrix, as one.

    generality_summary.py build-gpu/out/generality-?.json
"""

import json
import sys

import generality


def main():
    results, measured = {}, set()
    for path in sys.argv[1:]:
        with open(path) as file:
            report = json.load(file)
        results.update(report["results"])
        measured.add(f"{report['gpu']}, {report['date']}, grade "
                     f"{report['grade']}, compiler {report['compiler'][:12]}")
    print("\n".join(generality.table(results)))
    print("\n".join(sorted(measured)))


if __name__ == "__main__":
    main()
