import subprocess

for how in (
    "exit 0",
    "exit 1",
    "exit 42",
    "exit 126",
    "exit 127",
    "exit 255",
    "kill -TERM $$",
    "kill -INT $$",
    "kill -USR1 $$",
    "kill -SEGV $$",
    "kill -KILL $$",
    "kill -RTMIN $$",
):
    print(subprocess.run(["./tool", how]).returncode, flush=True)
