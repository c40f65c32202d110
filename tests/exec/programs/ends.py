import subprocess

for how in (
    "exit 0",
    "exit 1",
    "exit 42",
    "exit 127",
    "kill -TERM $$",
    "kill -SEGV $$",
    "kill -KILL $$",
    "kill -RTMIN $$",
):
    print(subprocess.run(["./tool", how]).returncode, flush=True)
