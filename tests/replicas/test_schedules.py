"""Random schedules of faults over a load of several protocols; each in a process of its own, a few at a time.

DRAGOMAN_SCHEDULES: how many (20; the long target: 1000). DRAGOMAN_SEED: of the first; random and printed otherwise."""
import os
import random
import subprocess
import sys
import threading

from kit import HERE, database
from lib.tap import check, same, test

N = int(os.environ.get("DRAGOMAN_SCHEDULES", "20"))
SEED = int(os.environ.get("DRAGOMAN_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 24) * 1000
AT_ONCE = int(os.environ.get("DRAGOMAN_AT_ONCE", "4"))  # they wait most of the time
LIMIT = 700  # seconds for one; more than its own limit


def run_one(seed):
    """None, or what is wrong. A schedule that does not end is a fault, too."""
    command = [sys.executable, os.path.join(HERE, "run"), "--seed", str(seed)]
    try:
        p = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired as e:
        return f"tests/replicas/run --seed {seed}: no end after {LIMIT} s\n{(e.stdout or b'').decode('utf-8', 'replace')[-6000:]}"
    return f"tests/replicas/run --seed {seed}\n{p.stdout[-6000:]}\n{p.stderr[-2000:]}" if p.returncode else None


@test(f"{N} random schedules of faults: every view of every client fits one order", timeout=600 + 30 * N)
def _():
    print(f"# DRAGOMAN_SEED={SEED}", flush=True)
    database.server.template()  # for all of them
    seeds, lock, bad, good = list(range(SEED, SEED + N)), threading.Lock(), [], []

    def work():
        while True:
            with lock:
                if not seeds or len(bad) >= 3:
                    return
                seed = seeds.pop(0)
            fault = run_one(seed)
            with lock:
                (bad if fault else good).append(fault or seed)
    threads = [threading.Thread(target=work, daemon=True) for _ in range(AT_ONCE)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(not bad, lambda: "\n".join(bad))
    same(len(good), N, "schedules that ran")
