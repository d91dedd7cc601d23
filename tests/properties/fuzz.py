"""The properties on fresh seeds until the time is up, or on one seed again.

python -m tests.properties.fuzz --minutes 10
python -m tests.properties.fuzz --seed 1234 --depth 4 --only 'tests/properties/test_valid_calls.py::...[...]'
"""

import argparse
import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]


def holds(seed, depth, tests):
    """Run a round in its own process, as for a repetition; print it if it fails."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command += [f"--hypothesis-seed={seed}", f"--depth={depth}", tests]
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if run.returncode:
        print(run.stdout)
    return run.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5, help="start rounds for this long; one takes about five")
    parser.add_argument("--seed", type=int, help="this round only")
    parser.add_argument("--depth", type=int, default=4, help="as many times the examples that the test suite takes")
    parser.add_argument("--only", default="tests/properties", help="the tests of a round, as pytest names them")
    options = parser.parse_args()
    end, rounds = time.monotonic() + 60 * options.minutes, 0
    while True:
        seed = random.SystemRandom().randrange(2**31) if options.seed is None else options.seed
        print(f"round {rounds + 1}: seed {seed}", flush=True)
        if not holds(seed, options.depth, options.only):
            sys.exit(f"seed {seed} fails: the example is above, and the command that brings it back is on the Reproduce line")
        rounds += 1
        if options.seed is not None or time.monotonic() >= end:
            print(f"every property held in {rounds} round(s)")
            return


if __name__ == "__main__":
    main()
