import os
import sys

os.read(os.open(sys.argv[1], os.O_RDWR), 1)
print("GOT", os.read(0, 100), flush=True)
