"""Random schedules of faults. A schedule follows from its seed alone; what the machine does with it does not."""
import random
import threading
import time
import traceback

KINDS = {"kill": 4, "stop": 3, "cut": 3, "delay": 2, "reset": 2, "restart": 1, "crash": 1}
STANDBY_EACH = 5  # one of so many schedules has a standby, and a failover


class Fault:
    def __init__(self, at, kind, replica, seconds):
        self.at, self.kind, self.replica, self.seconds = at, kind, replica, seconds

    def __repr__(self):
        of = "" if self.replica is None else f" of replica {self.replica}"
        return f"{self.at:.2f} s: {self.kind}{of}" + (f" for {self.seconds:.2f} s" if self.seconds else "")


class Schedule:
    def __init__(self, seed, replicas=3, lease=1.0, seconds=3.0):
        pick = random.Random(f"schedule {seed}")
        self.seed, self.seconds = seed, seconds
        self.wakeup = pick.choice(["notify", "notify", "poll"])
        self.has_standby = seed % STANDBY_EACH == 0
        kinds = [k for k, weight in KINDS.items() for _ in range(weight)]
        self.faults = []
        for _ in range(pick.randrange(2, 6)):
            kind = pick.choice(kinds)
            long = {"kill": 0.05 + pick.random(), "stop": lease * (1.3 + pick.random()), "cut": lease * (0.2 + 2 * pick.random()),
                    "delay": 0.5 + pick.random()}.get(kind, 0)
            self.faults.append(Fault(pick.random() * seconds, kind, None if kind in ("restart", "crash") else pick.randrange(replicas), long))
        if self.has_standby:
            self.faults = [f for f in self.faults if f.kind not in ("restart", "crash")]
            self.faults.append(Fault(seconds * (0.3 + 0.4 * pick.random()), "failover", None, 0))
        self.faults.sort(key=lambda f: f.at)

    def __repr__(self):
        return f"seed {self.seed}, wakeup: {self.wakeup}" + (", standby" if self.has_standby else "") + "; " + "; ".join(map(repr, self.faults))

    def play(self, cluster):
        """Faults overlap: each has a thread. Returns what went wrong in the test itself."""
        began, wrong, threads = time.monotonic(), [], []

        def one(fault):
            try:
                strike(cluster, fault)
            except Exception:
                wrong.append(f"{fault}: {traceback.format_exc()}")
        for f in self.faults:
            time.sleep(max(0, began + f.at - time.monotonic()))
            t = threading.Thread(target=one, args=(f,), daemon=True)
            t.start()
            threads.append(t)
        time.sleep(max(0, began + self.seconds - time.monotonic()))
        for t in threads:
            t.join(120)
            if t.is_alive():
                wrong.append("a fault does not end")
        return wrong


def strike(cluster, f):
    r = None if f.replica is None else cluster.replicas[f.replica]
    if f.kind == "kill":
        r.kill()
        time.sleep(f.seconds)
        r.revive()
    elif f.kind == "stop":
        if r.server.is_running() and not r.is_stopped:
            r.stop()
            time.sleep(f.seconds)
            r.go_on()
    elif f.kind == "cut":
        r.each_proxy("cut")
        time.sleep(f.seconds)
        r.each_proxy("heal")
    elif f.kind == "delay":
        r.delay(0.02)
        time.sleep(f.seconds)
        r.delay(0.0)
    elif f.kind == "reset":
        r.each_proxy("reset")
    elif f.kind in ("restart", "crash"):
        with cluster.database.lock:
            cluster.database.primary.restart(f.kind == "crash")
    elif f.kind == "failover":
        cluster.fail_over()
