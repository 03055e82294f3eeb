"""A load, faults, the end of all faults, and the check of the history."""
import collections
import os
import random
import shutil
import tempfile
import time

from . import clients, history, stored
from .cluster import Cluster
from .faults import Schedule
from lib.tap import check

REPLICAS = int(os.environ.get("DRAGOMAN_REPLICAS", "3"))
SETTLE = 120  # seconds after the faults until every task has ended


class Trial:
    """with Trial(...) as t: t.load.start(8); faults; t.finish()"""

    def __init__(self, seed, n=REPLICAS, standby=False, wakeup="notify", database=None, mix=None, seconds=0.05):
        self.folder = tempfile.mkdtemp(prefix="dragoman-trial-")
        self.runs = self.folder + "/runs"
        self.cluster = Cluster(n, clients.config(self.runs, seconds), standby=standby, wakeup=wakeup, database=database)
        self.load = clients.Load(self.cluster, seed, mix)
        self.violations = []

    def finish(self):
        """Returns the violations: of the history, and of the servers."""
        self.cluster.heal()
        self.load.stop()
        end = time.monotonic() + SETTLE
        while True:
            logs = stored.logs(self.cluster)
            if all(g.state in history.RESTING for g in logs.values()) or time.monotonic() > end:
                break
            time.sleep(0.1)
        self.read_all(logs)
        logs = stored.logs(self.cluster)
        self.violations = history.check_history(logs, self.load.ops, messages=stored.messages(self.cluster), runs=clients.runs(self.runs),
                                                once=clients.ONCE, completes=clients.COMPLETES)
        self.violations += [history.Violation("server", None, text) for text in self.cluster.faults()]
        self.logs = logs
        return self.violations

    def read_all(self, logs):
        """Every task once more through the balancer, as a client that has seen nothing: its Task must be the log's end."""
        w = clients.Worker(self.load, "reader", random.Random(0))
        for task in list(self.load.agents):
            if task in logs and w.get(task) is None:
                w.get(task)

    def counts(self):
        kinds = collections.Counter(f"{o.kind} {o.outcome}" for o in self.load.ops)
        return f"{len(self.logs)} tasks, {len(clients.runs(self.runs))} runs of tools, " + ", ".join(f"{n} {k}" for k, n in sorted(kinds.items()))

    def resumed(self):
        """Seconds from the last event before a break to the next one, of each stream that was resumed."""
        return sorted(after - before for _, before, after in self.load.resumed)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cluster.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def run_schedule(seed, n=REPLICAS, clients_n=6, report=print, standby=None):
    """One random schedule; fails with its seed."""
    s = Schedule(seed, n)
    with Trial(seed, n, s.has_standby if standby is None else standby, s.wakeup) as t:
        t.load.start(clients_n)
        wrong = s.play(t.cluster)
        found = t.finish()
        if os.environ.get("DRAGOMAN_REPLICAS_VERBOSE") or found or wrong:
            report(f"# {s}\n# {t.counts()}")
        if os.environ.get("DRAGOMAN_REPLICAS_VERBOSE") and (found or os.environ["DRAGOMAN_REPLICAS_VERBOSE"] == "all"):
            for o in t.load.ops:
                report(f"# {o} {o.task or o.message or ''} {o.error or ''}")
            for r in t.cluster.replicas:
                report("\n".join(f"# {r.index} {line}" for line in r.server.log[-300:]))
            for task in {v.task for v in found if v.task in t.logs}:
                report("\n".join(f"# {task} {r.seq} {r.turn} {r.state or ''} {str(r.value)[:300]}" for r in t.logs[task].records))
    rules = collections.Counter(v.rule for v in found)
    check(not found and not wrong, lambda: f"{s}\nrules: {dict(rules)}\n" + "\n".join(str(v)[:20000] for v in found[:10] + wrong[:2]) +
          f"\nagain: tests/replicas/run --seed {seed}")
