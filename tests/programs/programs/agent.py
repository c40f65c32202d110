"""Runs each argument in a shell of its own, as coding agents do."""

import subprocess
import sys

for number, step in enumerate(sys.argv[1:], 1):
    done = subprocess.run(["bash", "-c", step], stdin=subprocess.DEVNULL)
    print(f"step {number} ended with {done.returncode}", flush=True)
sys.exit(done.returncode)
