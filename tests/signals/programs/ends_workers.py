import multiprocessing
import time

process = multiprocessing.Process(target=time.sleep, args=(1000,))
process.start()
process.terminate()
process.join()
other = multiprocessing.Process(target=time.sleep, args=(1000,))
other.start()
other.kill()
other.join()
with multiprocessing.Pool(2) as pool:
    print(process.exitcode, other.exitcode, sum(pool.map(abs, range(10))))
