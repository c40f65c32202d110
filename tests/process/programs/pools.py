import multiprocessing
import sys


def double(x):
    return 2 * x


if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(2) as pool:
        print(pool.map(double, range(10)))
    process = context.Process(target=sys.exit, args=(3,))
    process.start()
    process.join()
    print(process.exitcode)
    process = context.Process(target=input)
    queue = context.Queue()
    process = context.Process(target=queue.get)
    process.start()
    process.terminate()
    process.join()
    print(process.exitcode)
