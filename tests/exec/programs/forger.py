import subprocess

# A child of ours is no child of a stub: to exec what a stub may is an exec like any other.
print(subprocess.run(["./real-tool"], capture_output=True).stdout)
