import subprocess

tool = "trap 'echo told; exit 5' TERM; echo ready; while :; do sleep 0.01; done"
process = subprocess.Popen(["./tool", tool], stdout=subprocess.PIPE, text=True)
assert process.stdout.readline() == "ready\n"
process.terminate()
print(process.stdout.read().strip(), process.wait())
