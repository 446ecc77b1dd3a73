"""measure.py SECONDS COMMAND...: runs a command, its output dropped; prints wall seconds and peak memory in MiB.

Memory below what this interpreter takes itself, some 14 MiB, reads as that much.
"""

import os
import signal
import subprocess
import sys
import time


def main():
    limit, command = float(sys.argv[1]), sys.argv[2:]
    start = time.monotonic()
    with open(os.devnull, "w") as drop:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=drop, stderr=drop, start_new_session=True)
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(process.pid, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, limit)
    _, status, usage = os.wait4(process.pid, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    wall = time.monotonic() - start
    if os.WIFSIGNALED(status):
        print(f"over {limit:.0f} s" if wall >= limit else f"killed by {signal.Signals(os.WTERMSIG(status)).name}")
    elif os.WEXITSTATUS(status) != 0:
        print(f"failed after {wall:.2f} s")
    else:
        print(f"{wall:8.2f} s {usage.ru_maxrss / 1024:8.0f} MiB")


main()
