import subprocess

tool = subprocess.Popen(["./tool"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
tool.stdout.read(1)
print([subprocess.run(["true"]).returncode for _ in range(20)] == [0] * 20, tool.poll())
print(len(tool.stdout.read()), tool.stderr.read(), tool.wait())
