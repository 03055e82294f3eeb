#!/usr/bin/env python3
"""Several replicas on one PostgreSQL, beside a2a-python's database cluster mode on the same one: a part of docs/performance.md.

usage: tests/bench/replicas.py [--seconds N] [--rounds N] [--replicas 1,2,3] [--only TEXT] [--dry]
--only: rows that have this text in their names; --dry and --only leave docs/performance.md alone.

It starts a PostgreSQL of its own (tests/postgres/server, commits are synced). Replicas, database and load generators share
all cores, so tasks per second are those of the whole machine; what does not depend on that is the CPU time of the processes per
task, which the kernel counts. Every measurement has new replicas and a new database. Within a round ours and the other's
follow each other. Every answer is checked by `dragoman bench`. Build first: `make bench-replicas` does.
"""
import argparse
import asyncio
import contextlib
import datetime
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kit import BUILD, DRAGOMAN, FOLDER, ROOT, Failed, Row, Server, Skip, number, ours, write_config  # noqa: E402

MODEL_SERVER = os.path.join(BUILD, "tests/bench/model_server")
POSTGRES = os.path.join(ROOT, "tests/postgres/server")
PEER = os.path.join(ROOT, "tests/bench/peer/cluster.py")
PYTHON = os.path.join(ROOT, "tests/bench/peer/.venv-a2a-cluster/bin/python")
TIMES_ITS_TASKS, TIMES_ITS_LATENCY = 20, 0.1
CONNECTIONS = 48  # in all, evenly over the replicas
WARM_S = 2  # of CPU time of the replicas
OUR_POLL_MS = 250  # DGM_FOLLOW_POLL_MS
THEIR_POLLS = [0.2, 0.5]  # of the SDK's sample of a cluster, and its default
TASKS, AT_ONCE = 24, 4  # of a measurement of latencies
EVERY_MS, EVENTS = 900, 4  # of each of these tasks
# mode, text, events of a task, connections in all
SHAPES = {"tasks": ("send", "chunks 3", 6, CONNECTIONS), "alone": ("send", "chunks 3", 6, 1), "streams": ("stream", "chunks 100 yield", 103, CONNECTIONS)}


# ---- PostgreSQL ----------------------------------------------------------------------------------------------------

class Postgres:
    def __init__(self):
        self.conninfo = subprocess.check_output([POSTGRES, "start", "--fsync", "--until", str(os.getpid())], text=True).strip()
        self.folder = re.search(r"host=(\S+)", self.conninfo)[1]
        self.n = 0
        for setting in ("shared_preload_libraries = 'pg_stat_statements'", "shared_buffers = '256MB'", "autovacuum_naptime = '1min'"):
            self.sql(f"ALTER SYSTEM SET {setting}")
        subprocess.run([POSTGRES, "kill", self.folder], check=True)
        subprocess.run([POSTGRES, "restart", self.folder], check=True)
        self.sql("CREATE EXTENSION pg_stat_statements")
        self.version = self.sql("SHOW server_version").split()[0]

    def sql(self, statement, database="postgres"):
        return subprocess.check_output(["psql", "-h", self.folder, "-U", "dragoman", "-AtqX", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", statement],
                                       text=True, stderr=subprocess.STDOUT).strip()

    @contextlib.contextmanager
    def database(self):
        self.n += 1
        name = f"bench{self.n}"
        self.sql(f"CREATE DATABASE {name}")
        try:
            yield name
        finally:
            self.sql(f"DROP DATABASE {name} WITH (FORCE)")

    def statements(self, database):
        return int(self.sql("SELECT coalesce(sum(calls), 0) FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid "
                            f"WHERE d.datname = '{database}' AND toplevel"))

    def commits(self, database):
        """Sessions report theirs at least each second while they work, and when they end."""
        return int(self.sql(f"SELECT xact_commit FROM pg_stat_database WHERE datname = '{database}'"))

    def cpu_seconds(self):
        """Of all its processes, those that ended included."""
        with open(os.path.join(self.folder, "data/postmaster.pid"), encoding="ascii") as f:
            postmaster = int(f.readline())
        ticks = 0
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                fields = f.read().rsplit(")", 1)[1].split()
                if int(pid) == postmaster:
                    ticks += sum(map(int, fields[11:15]))
                elif int(fields[1]) == postmaster:
                    ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def stop(self):
        subprocess.run([POSTGRES, "stop", self.folder], check=True)


# ---- replicas --------------------------------------------------------------------------------------------------------

class Late(Exception):
    """The task had ended."""


class Ours:
    name = "dragoman"

    def __init__(self, postgres, wakeup="notify", model=None):
        self.postgres, self.config = postgres, os.path.join(FOLDER, f"replicas-{wakeup}{'-model' if model else ''}.yaml")
        more = "replica:\n  wakeup: poll\n" if wakeup == "poll" else ""
        write_config(self.config, more)
        if model:  # the same id, but its text comes from a model, with the time of each piece
            with open(self.config, "w", encoding="utf-8") as f:
                f.write("loops: 1\nlog:\n  level: warn\nagents:\n  - id: bench\n    type: llm\n"
                        f"    settings: {{base_url: \"{model.url}v1\", api: chat, model: bench-1}}\n{more}")
        checked = subprocess.run([DRAGOMAN, "serve", "--check", "-c", self.config], capture_output=True, text=True)
        if checked.returncode:
            why = checked.stderr.strip().splitlines()[-1].split(": ", 2)[-1]  # without the file
            raise Skip(f"this build refuses the configuration: {why}")

    def replica(self, database):
        return Server(*ours(config=self.config, store=f"postgres:{self.postgres.conninfo} dbname={database}"), core=None)


class Theirs:
    name = "a2a-python"

    def __init__(self, postgres, poll=THEIR_POLLS[0]):
        self.postgres, self.poll = postgres, poll
        if not os.access(PYTHON, os.X_OK):
            raise Skip("a2a-python's cluster mode is not installed (`scripts/setup bench` tries to; log: .setup/pip-a2a-cluster.log)")

    def replica(self, database):
        return Server(PYTHON, PEER, f"postgresql+asyncpg://dragoman@/{database}?host={self.postgres.folder}", "--poll", str(self.poll), core=None,
                      env={"OTEL_INSTRUMENTATION_A2A_SDK_ENABLED": "false"})


@contextlib.contextmanager
def replicas(kind, n):
    with kind.postgres.database() as database, contextlib.ExitStack() as stack:
        yield database, [stack.enter_context(kind.replica(database)) for _ in range(n)]


def cpu_seconds(servers):
    """All threads of a process, as the kernel counts them, in nanoseconds."""
    return sum(time.clock_gettime((~server.p.pid << 3) | 2) for server in servers)


# ---- tasks and events ------------------------------------------------------------------------------------------------

def load_all(servers, shape, requests):
    """As many requests, evenly over the replicas. All of them are answered, so none is at an edge of the measured time."""
    mode, text, _, connections = SHAPES[shape]
    n = len(servers)
    each = max(connections // n, 1)
    began = time.monotonic()
    running = [subprocess.Popen([DRAGOMAN, "bench", "--json", "--mode", mode, "--text", text, "-n", str(min(each, max(requests // n, 1))), "--seconds", "600", "--warmup", "0",
                                 "--requests", str(max(requests // n, 1)), server.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for server in servers]
    done = 0
    for p in running:
        out, errors = p.communicate()
        if p.returncode:
            raise Failed(f"dragoman bench --mode {mode} --text '{text}': {errors}{out}")
        done += json.loads(out)["requests"]
    return done, time.monotonic() - began


def measure_load(kind, n, shape, seconds):
    events = SHAPES[shape][2]
    postgres = kind.postgres
    with replicas(kind, n) as (database, servers):
        time.sleep(1.2)
        commits, statements, all_done = postgres.commits(database), postgres.statements(database), 0
        requests, per_s, began = n * 8, 1, time.monotonic()
        while cpu_seconds(servers) < WARM_S * n and time.monotonic() - began < 20:
            done, took = load_all(servers, shape, requests)
            all_done += done
            per_s = done / took
            requests = max(requests, min(int(per_s), requests * 8))
        requests = max(int(per_s * seconds), n * 8)
        cpu, database_cpu = cpu_seconds(servers), postgres.cpu_seconds()
        done, took = load_all(servers, shape, requests)
        cpu, database_cpu = cpu_seconds(servers) - cpu, postgres.cpu_seconds() - database_cpu
        all_done += done
        statements = postgres.statements(database) - statements
        for server in servers:
            server.p.kill()
            server.p.wait()
        time.sleep(0.5)  # their sessions end, and report
        commits = postgres.commits(database) - commits
    return {"per_s": done / took, "events_per_s": done * events / took, "per_cpu_s": done / cpu, "events_per_cpu_s": done * events / cpu,
            "cpu_us": 1e6 * cpu / done, "database_us": 1e6 * database_cpu / done,
            "statements": statements / all_done / events, "commits": commits / all_done / events}


# ---- latencies -------------------------------------------------------------------------------------------------------

def call(method, params):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    return (f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


async def events_of(server, method, params):
    """Pairs of the time at which a line of the stream was read, in microseconds of CLOCK_MONOTONIC, and the event."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rstrip("/").rsplit(":", 1)[1]), limit=1 << 24)
    try:
        writer.write(call(method, params))
        while line := await reader.readline():
            if line.startswith(b"data: "):
                now = time.monotonic_ns() // 1000
                event = json.loads(line[6:])
                if event.get("error", {}).get("code") == -32004:
                    raise Late
                if "result" not in event:
                    raise Failed(f"{method}: {event}")
                yield now, event["result"]
                if "_COMPLETED" in event["result"].get("statusUpdate", {}).get("status", {}).get("state", ""):
                    return
        raise Failed(f"{method}: the stream ended before its task was completed")
    finally:
        writer.close()


def sent_at(event):
    """The times at which the pieces of text of an event were sent, in microseconds of CLOCK_MONOTONIC."""
    parts = event.get("artifactUpdate", {}).get("artifact", {}).get("parts", [])
    return map(int, "".join(part.get("text", "") for part in parts).split())


async def follow(owner, other, delay):
    """Starts a task at one replica and reads it there and at another one. [(ms from an event to the other replica's client, ms that
    this is later than the owner's client)], in the order in which they came. An event counts if it was sent after the first event of
    the subscription, which is the Task as it was, had come."""
    await asyncio.sleep(delay)
    message = {"messageId": os.urandom(8).hex(), "role": "ROLE_USER", "parts": [{"text": f"tokens {EVENTS} every {EVERY_MS}"}]}
    stream = events_of(owner, "SendStreamingMessage", {"message": message})
    _, first = await anext(stream)
    task = (first.get("task") or first.get("statusUpdate"))
    task = task.get("id") or task["taskId"]

    async def read_owner():
        return {at: now async for now, event in stream for at in sent_at(event)}

    async def read_other():
        await asyncio.sleep(random.random() * EVERY_MS / 1000)
        attached, read = None, {}
        with contextlib.suppress(Late):
            async for now, event in events_of(other, "SubscribeToTask", {"id": task}):
                attached = attached or now
                read.update((at, now) for at in sent_at(event) if at > attached)
        return read
    async with asyncio.timeout(120):
        at_owner, at_other = await asyncio.gather(read_owner(), read_other())
    return [((now - at) / 1000, (now - at_owner[at]) / 1000) for at, now in at_other.items()]


async def follow_all(servers, tasks):
    pairs, late = [(a, b) for a in servers for b in servers if a is not b], []
    for _ in range(tasks // AT_ONCE):
        late += await asyncio.gather(*(follow(*pairs[i % len(pairs)], random.random() * EVERY_MS / 1000) for i in range(AT_ONCE)))
    return list(filter(None, late))  # one that came after the last event has nothing to say


def percentile(values, fraction):
    return sorted(values)[int((len(values) - 1) * fraction)]


def measure_latency(kind):
    with replicas(kind, 2) as (_, servers):
        asyncio.run(follow_all(servers, AT_ONCE))  # both have done this before
        late = asyncio.run(follow_all(servers, TASKS))
    if len(late) < TASKS / 2:
        raise Failed(f"{kind.name}: {TASKS - len(late)} of {TASKS} subscriptions at another replica came after the last event")
    first, every, added = [x[0][0] for x in late], [x[0] for of in late for x in of], [x[1] for of in late for x in of]
    return {"first": percentile(first, 0.5), "p50": percentile(every, 0.5), "p99": percentile(every, 0.99), "added_p50": max(percentile(added, 0.5), 0.001),
            "added_p99": max(percentile(added, 0.99), 0.001)}


def measure_our_latency(postgres, wakeup):
    with Server(MODEL_SERVER, core=None) as model:
        return measure_latency(Ours(postgres, wakeup, model))


# ---- rows ------------------------------------------------------------------------------------------------------------

class Measurements:
    """Each measurement is made once in a round, by the first row that has a figure of it."""

    def __init__(self):
        self.made = {}

    def pair(self, round_, key, ours_, theirs):
        if (round_, key) not in self.made:
            self.made[round_, key] = ours_(), theirs()
        return self.made[round_, key]


class FineRow(Row):
    def compared(self):
        return number(self.ratio())


def rows(postgres, counts, seconds, measurements):
    def row(what, unit, key, figure, mine, theirs, goal=None, **how):
        def figures():
            pair = measurements.pair(len(made.rounds), key, mine, theirs)
            return tuple(of[figure] for of in pair)
        made = FineRow(what, unit, goal, figures, against="a2a-python", **how)
        return made

    def loads(n, shape, what):
        key = (n, shape)
        what = f"{n} replica{'s' if n > 1 else ''}: {what}"
        mine = lambda: measure_load(Ours(postgres), n, shape, seconds)  # noqa: E731
        theirs = lambda: measure_load(Theirs(postgres), n, shape, seconds)  # noqa: E731
        if shape == "alone":
            pass
        elif shape == "tasks":
            yield row(what, "tasks per CPU-second of the replicas", key, "per_cpu_s", mine, theirs, TIMES_ITS_TASKS)
            yield row(what, "tasks per second", key, "per_s", mine, theirs)
            yield row(what, "CPU microseconds of the replicas a task", key, "cpu_us", mine, theirs)
            yield row(what, "CPU microseconds of PostgreSQL a task", key, "database_us", mine, theirs)
        else:
            yield row(what, "events per CPU-second of the replicas", key, "events_per_cpu_s", mine, theirs)
            yield row(what, "events per second", key, "events_per_s", mine, theirs)
        yield row(what, "statements an event", key, "statements", mine, theirs)
        yield row(what, "commits an event", key, "commits", mine, theirs)

    def latencies(wakeup, poll, goal):
        key = wakeup
        how = f"wakeup: {wakeup}; the other polls every {poll:g} s"
        mine = lambda: measure_our_latency(postgres, wakeup)  # noqa: E731
        theirs = lambda: measure_latency(Theirs(postgres, poll))  # noqa: E731
        sent, more = "from an event at one replica to a client of another one", "how much later it comes to a client of another replica than to one of the owner"
        for what, figure, goal_, less in ((f"{sent}: the first one of a subscription, half of them (p50)", "first", goal, {"goal_is_least": False}), (f"{sent}: all of them, p50", "p50", None, {}),
                                          (f"{sent}: all of them, p99", "p99", None, {}), (f"{more}, p50", "added_p50", None, {}), (f"{more}, p99", "added_p99", None, {})):
            yield row(f"{what}; {how}", "ms", key, figure, mine, theirs, goal_, **less)

    return [
        *(r for n in counts for shape, what in (("tasks", "tasks of 3 chunks"), ("streams", "streams of 100 chunks, a turn of the loop between them"))
          for r in loads(n, shape, what)),
        *loads(1, "alone", "tasks of 3 chunks, one at a time"),
        *latencies("notify", THEIR_POLLS[0], TIMES_ITS_LATENCY),
        *latencies("poll", THEIR_POLLS[1], None),
    ]


# ---- the report ------------------------------------------------------------------------------------------------------

SIZING = """### Sizing

Cores that a load needs if they are half busy, calculated from the CPU times of {replicas} replicas above. Three replicas are the least, so that one may be lost or
restarted. Agents and models need their own. Text that arrives word by word costs PostgreSQL more: a commit and 0.7 KB of WAL for each word, see [growth](growth.md).

{table}

"""

PART = """<!-- begin: written by tests/bench/replicas.py (`make bench-replicas`) -->
## Replicas on one PostgreSQL

Measured {date} in one run, {rounds} rounds of about {seconds:g} s for each figure, medians; a ratio is dragoman's figure divided by the other's. {versions}.
Replicas, PostgreSQL (`fsync=on`, its own folder, no network) and load generators shared {cores} cores{busy}: tasks and events per second are those of that whole
machine and do not show how replicas on machines of their own scale. The CPU time of a task does: it says how many cores the replicas and the database need for a rate.

{table}

{sizing}What is compared: `dragoman serve --agent bench`, one loop thread in each replica, `store: postgres:`, against `tests/bench/peer/cluster.py`, the same agent on a2a-python's
`VersionedDatabaseTaskStore` and `DatabaseTaskEventStream`, one uvicorn process with uvloop and httptools and a pool of 20 connections in each replica, no tracing. {connections} connections in all,
evenly over the replicas; both store a task of 3 chunks as 6 events. Statements and commits are those of `pg_stat_statements` and `pg_stat_database`, heartbeats and retention
included. Latencies: {tasks} tasks, {at_once} at a time, send one piece of text every {every} ms that says when it was sent (ours come from a model in another process, whose connection is in our figure); a client has subscribed at
a replica that does not own the task. a2a-python's own sample of a cluster polls every 0.2 s, its default is 0.5 s.
<!-- end -->"""


def versions(postgres):
    try:
        theirs = subprocess.check_output([PYTHON, "-c", "import importlib.metadata as m, platform as p; print(f\"a2a-sdk {m.version('a2a-sdk')}, SQLAlchemy {m.version('sqlalchemy')}, "
                                          "asyncpg {m.version('asyncpg')}, uvicorn {m.version('uvicorn')}, Python {p.python_version()}\")"], text=True).strip()
    except (OSError, subprocess.CalledProcessError):
        theirs = "a2a-python: not installed"
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    return f"dragoman {commit}, PostgreSQL {postgres.version}, {theirs}"


def table(all_rows):
    lines = ["| what | unit | dragoman | other | ratio | goal | |", "|---|---|---|---|---|---|---|"]
    return "\n".join(lines + ["| " + " | ".join([row.what, row.unit, *row.cells()]) + " |" for row in all_rows])


LOADS = {"tasks": ("tasks of 3 chunks per second", (100, 1000, 10000)), "streams": ("events per second, in streams of 100", (1000, 10000, 100000))}


def sizing(made, counts):
    """What loads need, by calculation from our figures with the most replicas; made: of Measurements."""
    lines = ["| load | | cores of the replicas | cores of PostgreSQL | replicas of 2 cores |", "|---|---|---|---|---|"]
    for shape, (unit, loads) in LOADS.items():
        figures = [mine for (_, key), (mine, _) in made.items() if key == (max(counts), shape)]
        if not figures:
            return ""
        events = SHAPES[shape][2] if shape == "streams" else 1
        for load in loads:
            of_replicas, of_postgres = (2e-6 * load / events * statistics.median(f[name] for f in figures) for name in ("cpu_us", "database_us"))
            lines.append(f"| {load:,} | {unit} | {number(of_replicas)} | {number(of_postgres)} | {max(3, math.ceil(of_replicas / 2))} |")
    return SIZING.format(replicas=max(counts), table="\n".join(lines))


def write_part(part):
    path = os.path.join(ROOT, "docs/performance.md")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    old = re.compile(r"<!-- begin: written by tests/bench/replicas\.py.*?<!-- end -->", re.S)
    if not old.search(text):
        raise Failed("docs/performance.md has no part for the replicas")
    with open(path, "w", encoding="utf-8") as f:
        f.write(old.sub(lambda _: part, text))
    print("\nwrote docs/performance.md")


def measure(row, n):
    try:
        row.rounds.append(row.measure())
        said = "{} and {} {}".format(*map(number, row.rounds[-1]), row.unit)
    except Skip as e:
        row.skipped = said = str(e)
    print(f"round {n + 1}: {row.what}: {said}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--replicas", default="1,2,3")
    parser.add_argument("--only", default="", help="part of a row's name")
    parser.add_argument("--dry", action="store_true")
    args = parser.parse_args()
    for path in (DRAGOMAN, MODEL_SERVER):
        if not os.access(path, os.X_OK):
            sys.exit(f"bench: there is no {os.path.relpath(path, ROOT)}: make bench-replicas builds it")
    busy = os.getloadavg()[0]
    postgres = Postgres()
    try:
        counts, measurements = list(map(int, args.replicas.split(","))), Measurements()
        chosen = [row for row in rows(postgres, counts, args.seconds, measurements) if args.only in row.what]
        for n in range(args.rounds):
            for row in chosen:
                if not row.skipped:
                    measure(row, n)
        print()
        for row in chosen:
            print(f"{row.verdict()}  {row.what}, {row.unit}: {row.skipped or f'{row.median_of(0)}, {row.median_of(1)}, {row.compared()}'} {row.goal_text()}")
        if not args.dry and not args.only:
            write_part(PART.format(date=datetime.date.today().isoformat(), rounds=args.rounds, seconds=args.seconds, versions=versions(postgres), cores=os.cpu_count(),
                                   busy=f" with other work (load {busy:.0f} when it began)" if busy > 0.5 else "", table=table(chosen),
                                   sizing=sizing(measurements.made, counts), connections=CONNECTIONS,
                                   tasks=TASKS, at_once=AT_ONCE, every=EVERY_MS))
    except Failed as e:
        sys.exit(f"bench: {e}")
    finally:
        postgres.stop()
        subprocess.run(["rm", "-rf", FOLDER], check=False)
    sys.exit(any(row.passed() is False for row in chosen))


if __name__ == "__main__":
    main()
