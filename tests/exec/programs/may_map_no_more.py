import os
import resource

size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size, size))
try:
    os.execv("/bin/ls", ["ls"])
except OSError as error:
    os._exit(error.errno)
