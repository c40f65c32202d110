"""prlimit64 by both ABIs: at sigwrap, at the outside, at a child and at itself. A call that only
asks is never refused."""

import os
import resource
import struct
import sys
import time

from inside import has_i386, i386, low, named, native, tell

outside = int(sys.argv[1])
child = os.fork()
if child == 0:
    time.sleep(600)
targets = {"supervisor": os.getppid(), "outside": outside, "child": child, "self": os.getpid()}
NOFILE = struct.pack("QQ", 3000, 3000)


def asks(pid):
    return named(native(302, pid, resource.RLIMIT_NOFILE, 0, bytes(16)))


def sets(pid):
    results = [named(native(302, pid, resource.RLIMIT_NOFILE, NOFILE, 0))]
    if has_i386():
        results.append(named(i386(340, pid, resource.RLIMIT_NOFILE, low(NOFILE), 0)))
    return sorted(set(results))


own = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (2999, own[1]))  # of the caller itself: free
tell({name: [asks(pid), *sets(pid)] for name, pid in targets.items()})
