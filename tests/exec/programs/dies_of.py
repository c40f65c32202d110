"""What a tool ended with that kills itself by a signal."""

import resource
import subprocess
import sys

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print(subprocess.run(["./tool", f"kill -{sys.argv[1]} $$"]).returncode)
