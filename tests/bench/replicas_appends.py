#!/usr/bin/env python3
"""Instructions per task of two builds with the stores that are not shared, counted by callgrind: what replicas cost who has none.

usage: tests/bench/replicas_appends.py BEFORE AFTER      two programs dragoman, built alike and not stripped

One client sends tasks of 3 chunks (6 records), one after the other, so that both builds have the same appends and commits. The server ends after
few and after many of them; the difference is free of its start. The figures do not depend on what else the machine does, but for some retries. Fails if
AFTER needs more than 2 % more.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

FEW, MANY, MORE = 100, 500, 1.02
STORE = ("dgm_store_append", "writer_main")  # of the loop; the thread of SQLite


def run(program, store, tasks, folder):
    """Instructions by function, those that it calls included; None: all of them."""
    out = os.path.join(folder, "callgrind")
    config = os.path.join(folder, "appends.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write("loops: 1\nlog:\n  level: warn\nagents:\n  - id: bench\n    type: bench\n")
    server = subprocess.Popen(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}", program, "serve", "-c", config, "--listen", "127.0.0.1:0",
                               "--store", store], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder)
    try:
        url = next(found[0].decode() for line in server.stdout if (found := re.search(rb"127\.0\.0\.1:\d+", line)))
        subprocess.run([program, "bench", "--mode", "send", "--text", "chunks 3", "-n", "1", "--warmup", "0", "--seconds", "600", "--requests", str(tasks), f"http://{url}/"],
                       check=True, stdout=subprocess.DEVNULL)
        server.terminate()
        server.wait(120)
    finally:
        server.kill()
        server.wait()
    text = subprocess.check_output(["callgrind_annotate", "--inclusive=yes", "--threshold=100", out], text=True, stderr=subprocess.DEVNULL)
    counts = {None: int(re.search(r"^\s*([\d,]+) .*PROGRAM TOTALS", text, re.M)[1].replace(",", ""))}
    for name in STORE:
        found = re.search(rf"^\s*([\d,]+) .*:{name}\b", text, re.M)
        counts[name] = int(found[1].replace(",", "")) if found else 0
    return counts


def per_task(program, store):
    counts = []
    for tasks in (FEW, MANY):
        folder = tempfile.mkdtemp(prefix="bench-appends-")
        try:
            counts.append(run(os.path.abspath(program), store.format(folder), tasks, folder))
        finally:
            shutil.rmtree(folder)
    return {name: (counts[1][name] - counts[0][name]) / (MANY - FEW) for name in counts[0]}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    is_slower = False
    for store in ("memory:", "sqlite:{}/appends.db"):
        before, after = (per_task(program, store) for program in sys.argv[1:])
        for name, count in before.items():
            if count:
                print(f"{store.split(':')[0]:7} {name or 'all':17} {count:12,.0f} -> {after[name]:12,.0f} instructions a task  {100 * after[name] / count - 100:+.2f} %", flush=True)
        is_slower |= after[None] > before[None] * MORE
    sys.exit(is_slower)


main()
