"""One kind of fault each, where it hurts most."""
import random
import statistics
import threading
import time

from kit import clients, history, stored
from kit.trial import Trial
from lib.a2a import RPC1, Client, message
from lib.http import ask
from lib.tap import Failure, check, each, same, soon, test

SLOW = "slow 100 " + clients.TEXT * 3
ENDED = [n for n, name in history.STATES.items() if name in history.TERMINAL]


def no_violation(t):
    found = t.finish()
    print(f"# {t.counts()}")
    check(not found, lambda: "\n".join(str(v)[:1000] for v in found[:10]))


class Single:
    """A client of one server instead of the balancer."""
    errors = "1.0.1"

    def __init__(self, replica):
        self.address = replica.listen


def start_slow(t, agent="assistant", words=SLOW, on=None):
    """A task that works for some seconds: (its id, its owner, None if it has ended)."""
    c = Client(Single(on) if on else t.cluster, RPC1, base="/agents/" + agent)
    a = c.send(m=message(words), config={"returnImmediately": True})
    task = a.task["id"]
    t.load.agents[task] = Client(t.cluster, RPC1, base="/agents/" + agent)
    soon(lambda: t.cluster.owner(task) or row(t, task)[3] in ENDED, "the task has no owner")
    return task, t.cluster.owner(task)


def row(t, task):
    """owner, fence, last record, state"""
    return tuple(map(int, t.cluster.sql(f"SELECT owner, fence, last_seq, state FROM dragoman.tasks WHERE id='\\x{task.encode().hex()}'").split("|")))


def stop_owner(t, text):
    """A task whose owner was stopped while it streamed: (task, owner, its row, what a reader at the owner gets).
    A busy machine may be too slow for that, or a lease may end by itself: then again, with a text that takes longer."""
    for attempt in range(4):
        task, owner = start_slow(t, words=text.format(clients.TEXT * 3 * 2 ** attempt))
        soon(lambda task=task: row(t, task)[2] > 12 or row(t, task)[3] in ENDED, "it does not stream")
        try:
            reader = Reader(owner, task)
        except (Failure, AttributeError):  # it has ended
            continue
        owner.stop()
        before = row(t, task)
        if t.cluster.owner(task) is owner:
            return task, owner, before, reader
        owner.go_on()
        reader.end()
    raise Failure("this machine is too slow: no task was stopped while it streamed")


class Reader:
    """A stream of one server: it must never have a record that is not in the log."""

    def __init__(self, replica, task):
        self.events, self.frames = Client(Single(replica), RPC1, base="/agents/assistant").subscribe(task, last=0), []
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        try:
            while (e := self.events.next(30)) is not None:
                self.frames.append((int(e.id), e.payload))
        except (Failure, OSError):
            pass

    def end(self):
        self.thread.join(90)
        check(not self.thread.is_alive(), "the reader at the stopped server does not end")
        self.events.close()


@each("SIGSTOP of an owner for longer than its lease, then SIGCONT: it does not write (wakeup: {})", ["notify", "poll"], timeout=600)
def _(wakeup):
    with Trial(7, wakeup=wakeup) as t:
        part = '{{"tag": "zombie"}}'
        held = [start_slow(t, "bench", "hold 300 x", on=r)[0] for r in t.cluster.replicas]
        task, owner, first, reader = stop_owner(t, f"call step {part} call again {part} then slow 150 {{}}")
        stopped = time.monotonic()
        soon(lambda: row(t, task)[1] > first[1] and row(t, task)[2] > first[2], "no other server takes the task", 90)
        taken = time.monotonic() - stopped
        owner.go_on()
        w = clients.Worker(t.load, "reader", random.Random(1))
        w.wait_for_end(task)
        at_owner = held[t.cluster.replicas.index(owner)]
        w.wait_for_end(at_owner)
        for other in held:
            w.cancel(other)
        reader.end()
        log = stored.logs(t.cluster)[task]
        for seq, payload in reader.frames:
            check(seq in log.by_seq and log.by_seq[seq].value == payload, f"the stopped server showed {seq}: {payload}, which is not in the log")
        same(log.state, "COMPLETED", "state")
        same(stored.logs(t.cluster)[at_owner].state, "FAILED", "the task that cannot be resumed")
        print(f"# taken over {taken:.2f} s after SIGSTOP, lease {t.cluster.lease:g} s")
        no_violation(t)


@test("the network between a server and the database is cut for three leases: the others work on, and it comes back", timeout=600)
def _():
    with Trial(8) as t:
        cut, other = t.cluster.replicas[0], t.cluster.replicas[1]
        held, _ = start_slow(t, "bench", "hold 300 x", on=cut)  # its agent cannot resume: another server settles it
        t.load.start(6)
        time.sleep(1)
        cut.each_proxy("cut")
        end, n, refused = time.monotonic() + 3 * t.cluster.lease, 0, 0
        c = Client(Single(other), RPC1, base="/agents/bench")
        while time.monotonic() < end or n < 10:  # a busy machine may need longer: the cut lasts until then
            a = c.send("chunks 3 x")
            n, refused = n + a.ok, refused + (not a.ok)  # a server that got no CPU time for a lease refuses for a moment
            check(time.monotonic() < end + 120, lambda a=a: f"another server, during the cut: {a}")
            time.sleep(0.1)
        print(f"# during the cut {n} messages were accepted by another server, {refused} refused")
        soon(lambda: ask(cut.listen, "GET", "/readyz").status == 503, "/readyz of the server that is cut off stays green", 90)
        soon(lambda: row(t, held)[3] in ENDED, "no other server takes the task", 90)
        cut.each_proxy("heal")
        mine = Client(Single(cut), RPC1, base="/agents/bench")
        soon(lambda: mine.send("chunks 3 x").ok, "the server that was cut off does not come back", 90)
        no_violation(t)


@each("PostgreSQL {} under load: nothing acknowledged is lost", ["restarts", "crashes and comes back"], timeout=600)
def _(how):
    with Trial(9) as t:
        t.load.start(6)
        for _ in range(2):
            time.sleep(1)
            t.cluster.database.primary.restart(crash=how != "restarts")
        time.sleep(1)
        no_violation(t)


@test("failover to a synchronous standby under load: nothing acknowledged is lost, every cursor is valid", timeout=600)
def _():
    with Trial(10, standby=True) as t:
        t.load.start(6)
        time.sleep(1.5)
        seconds, began = t.cluster.fail_over(), time.monotonic()
        for r in t.cluster.replicas:
            c = Client(Single(r), RPC1, base="/agents/bench")
            soon(lambda c=c: c.send("chunks 1 x").ok, "a server does not find the new primary", 90, step=0.2)
        print(f"# the standby accepts writes after {seconds:.2f} s, all servers write {time.monotonic() - began:.2f} s later")
        time.sleep(1)
        no_violation(t)


@test("servers are restarted one after the other (SIGTERM) under load: tasks that can be resumed go on elsewhere", timeout=600)
def _():
    with Trial(11) as t:
        t.load.start(6)
        time.sleep(1)
        for r in t.cluster.replicas:
            with r.lock:
                status = r.server.stop(120)
                same(status, 0, "status after SIGTERM")
            r.revive()
            time.sleep(0.3)
        no_violation(t)


# When a server takes a task, as the database sees it.
NOTE_TAKEOVERS = """CREATE TABLE public.taken(task bytea, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE FUNCTION public.note_takeover() RETURNS trigger LANGUAGE plpgsql AS
 $$BEGIN INSERT INTO public.taken(task) VALUES(NEW.id); RETURN NEW; END$$;
CREATE TRIGGER note_takeover BEFORE UPDATE ON dragoman.tasks FOR EACH ROW WHEN (NEW.fence>OLD.fence) EXECUTE FUNCTION public.note_takeover()"""


def streams_of_killed(t, n, text):
    """n streams of tasks of one server, which is killed. Half of them are read at that server, and from the break on at another one behind the
    last cursor; the others are read at other servers all the time. What each got, and when it was killed. None: a task ended before."""
    victim, others = t.cluster.replicas[0], t.cluster.replicas[1:]
    tasks = [start_slow(t, words="slow 100 " + text, on=victim)[0] for _ in range(n)]
    got = {task: [] for task in tasks}

    def read_at(replica, task):
        """Each frame with its time, behind those that are there."""
        after = got[task][-1][1] if got[task] else 0
        try:
            with Client(Single(replica), RPC1, base="/agents/assistant").subscribe(task, last=after, wait=90) as s:
                while (e := s.next(90)) is not None:
                    got[task].append((time.time(), int(e.id), e.payload))
        except (Failure, OSError):
            pass

    def read(i, task):
        if i % 2:
            read_at(victim, task)
        read_at(others[i // 2 % len(others)], task)
    threads = [threading.Thread(target=read, args=of, daemon=True) for of in enumerate(tasks)]
    for th in threads:
        th.start()
    soon(lambda: all(len(g) > 8 for g in got.values()) or not all(th.is_alive() for th in threads), "the streams do not start", 90)
    killed = time.time()
    victim.kill()
    rows = [row(t, task) for task in tasks]
    for th in threads:
        th.join(120)
    if any(r[3] in ENDED for r in rows):
        victim.revive()
        return None
    return got, killed


@test("streams go on at another server when their owner is killed: the median of the time without the lease is below 1 s, and the lease ends in time", timeout=900)
def _():
    with Trial(12) as t:
        n, text, rests, leases = 8, clients.TEXT * 4, [], []
        t.cluster.sql(NOTE_TAKEOVERS)
        for _ in range(3):  # a busy machine needs longer than the servers: the least counts
            found = streams_of_killed(t, n, text)
            if found is None:  # too fast for this machine
                text *= 2
                continue
            got, killed = found
            logs, lease, rest = stored.logs(t.cluster), [], []
            for task in got:
                after = [(when, seq) for when, seq, _ in got[task] if when > killed and logs[task].by_seq[seq].time / 1000 > killed]
                check(after, f"nothing of {task} came behind the kill")
                taken = float(t.cluster.sql(f"SELECT extract(epoch FROM min(at)) FROM public.taken WHERE task='\\x{task.encode().hex()}'"))
                lease.append(taken - killed)
                rest.append(after[0][0] - taken)
                same([s for _, s, _ in got[task]], [s for s in logs[task].visible], f"cursors of {task}, read without a break or over one")
            rests.append(statistics.median(rest))
            leases.append(statistics.median(lease))
            print(f"# {n} streams: until the task is taken {leases[-1]:.2f} s (lease {t.cluster.lease:g} s), "
                  f"from there to the next event {rests[-1]:.2f} s (medians)")
            if rests[-1] < 1 and leases[-1] < most(t):
                break
            t.cluster.replicas[0].revive()
        check(rests and min(rests) < 1, f"medians from the takeover to the next event: {rests}")
        check(min(leases) < most(t), f"medians until the task is taken: {leases}")
        no_violation(t)


def most(t):
    """A lease and a heartbeat; and a second for a busy machine."""
    return t.cluster.lease * 4 / 3 + 1
