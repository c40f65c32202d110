import multiprocessing
import subprocess


def square(n):
    return n * n


if __name__ == "__main__":
    for kind in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(kind).Pool(4) as pool:
            assert sum(pool.map(square, range(100))) == 328350
    for _ in range(50):
        assert subprocess.run(["echo", "x"], capture_output=True).stdout == b"x\n"
