import os
import subprocess
import sys

subprocess._USE_VFORK = sys.argv[1] == "vfork"
print(subprocess.run(["sh", "-c", "cat; exit 3"], input=b"in", capture_output=True))
print(subprocess.run("echo shell; kill -9 $$", shell=True, stdout=-1).returncode)
try:
    subprocess.run(["/no/such/program"])
except FileNotFoundError as error:
    print(error)
try:
    subprocess.run(["no-such-program"])
except FileNotFoundError as error:
    print(error)
try:
    subprocess.run(["/tmp"])
except PermissionError as error:
    print(error)
print(subprocess.check_output(["pwd"], cwd="/", close_fds=False))
p = subprocess.Popen(["cat"], stdin=-1, stdout=-1, start_new_session=True)
print(p.communicate(b"x" * 100000)[0] == b"x" * 100000, p.returncode)
p = subprocess.Popen(["sleep", "600"], process_group=0)
p.terminate()
print(p.wait())
try:
    subprocess.run(["sleep", "600"], timeout=0.05)
except subprocess.TimeoutExpired:
    print("timeout")
print(os.system("exit 4"), os.popen("echo popen").read())
print([os.waitstatus_to_exitcode(subprocess.Popen(["true"]).wait()) for _ in range(5)])
sys.stdout.flush()
pid = os.posix_spawn("/bin/sh", ["sh", "-c", "echo spawned; exit 6"], os.environ)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
pid = os.posix_spawnp("sh", ["sh", "-c", "exit 7"], os.environ, setsid=True)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
try:
    os.posix_spawnp("no-such-program", ["x"], os.environ)
except FileNotFoundError as error:
    print(error)
