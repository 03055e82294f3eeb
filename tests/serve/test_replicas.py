"""What an operator sees of several servers on one PostgreSQL: /metrics and /readyz."""
import os
import re
import subprocess
import time

from lib import a2a
from lib.a2a import RPC1, Client
from lib.http import ask
from lib.server import ROOT, Server, folder, on_postgres
from lib.tap import check, same, soon, test
from test_process import metrics

LEASE_S = 2


def sql(store, text, database=None):
    """Of the server of the store, in its database or another one."""
    info = store.removeprefix("postgres:")
    if database:
        info = re.sub(r"dbname=\S+", f"dbname={database}", info)
    done = subprocess.run(["psql", "-Atq", "-v", "ON_ERROR_STOP=1", "-d", info, "-c", text], check=True, stdout=subprocess.PIPE, text=True, timeout=60)
    return done.stdout.split()


def serve(store, wakeup="notify"):
    return Server("demo", store=store, config={"replica": {"lease_s": LEASE_S, "wakeup": wakeup}})


def task_of(events):
    """The id of the task of a stream whose task is stored."""
    return a2a.task_of(events.next())


NAMES = {"dragoman_replica_lease_seconds_left", "dragoman_store_wakeup_seconds_count", "dragoman_store_wakeup_seconds_sum", "dragoman_tasks_taken_over_total",
         "dragoman_leases_lost_total", "dragoman_calls_forwarded_total", "dragoman_tasks_followed", "dragoman_follower_lag_records"}


@test("/metrics: those of several servers are absent if the store is not shared")
def _():
    with Server("demo", store="sqlite:" + os.path.join(folder(), "t.db")) as s:
        found = metrics(s)
        same(NAMES & found.keys(), set() if s.store.startswith("sqlite:") else NAMES, "names")


@test("/metrics: a task that is read and canceled on another server", timeout=180)
def _():
    store = on_postgres("memory:")
    with serve(store) as a, serve(store) as b:
        same({n: metrics(b)[n] for n in NAMES if "lease_seconds" not in n}, {n: 0.0 for n in NAMES if "lease_seconds" not in n}, "before")
        check(0 < metrics(b)["dragoman_replica_lease_seconds_left"] <= LEASE_S, "the lease")
        with Client(a, RPC1).stream("slow 60") as events:
            id = task_of(events)
            with Client(b, RPC1).subscribe(id) as there:
                there.next()
                soon(lambda: metrics(b)["dragoman_tasks_followed"] == 1, "it is not followed", 30)
                same(metrics(a)["dragoman_tasks_followed"], 0.0, "followed by its owner")
                soon(lambda: metrics(b)["dragoman_store_wakeup_seconds_count"] >= 2, "no wake-ups", 60)
                soon(lambda: metrics(b)["dragoman_follower_lag_records"] >= 1, "no records were found", 60)
                m = metrics(b)
                buckets = [v for k, v in m.items() if k.startswith("dragoman_store_wakeup_seconds_bucket")]
                same((buckets, len(buckets)), (sorted(buckets), 13), "buckets")
                check(buckets[-1] == m["dragoman_store_wakeup_seconds_count"] and m["dragoman_store_wakeup_seconds_sum"] > 0, m)
                same(Client(b, RPC1).cancel(id).task["status"]["state"], "TASK_STATE_CANCELED", "state")
        same(metrics(b)["dragoman_calls_forwarded_total"], 1.0, "forwarded by the other one")
        same(metrics(a)["dragoman_calls_forwarded_total"], 0.0, "forwarded by the owner")
        soon(lambda: metrics(b)["dragoman_tasks_followed"] == metrics(b)["dragoman_follower_lag_records"] == 0, "it is followed still", 30)


@test("/metrics: a task of a server that was killed, and one that was lost", timeout=180)
def _():
    store = on_postgres("memory:")
    with serve(store) as a, serve(store) as b:
        with Client(a, RPC1).stream("slow 60") as events:
            task_of(events)
            a.kill()
        soon(lambda: metrics(b)["dragoman_tasks_taken_over_total"] == 1, "it was not taken over", 60)
        same(metrics(b)["dragoman_leases_lost_total"], 0.0, "lost")
        with Client(b, RPC1).stream("slow 60") as events:
            id = task_of(events)
            sql(store, f"UPDATE dragoman.tasks SET fence=fence+1 WHERE convert_from(id,'UTF8')='{id}'")
            soon(lambda: metrics(b)["dragoman_leases_lost_total"] == 1, "it was not lost", 60)


@test("wakeup: poll follows, cancels and takes over without LISTEN and NOTIFY; wakeup: notify uses both", timeout=240)
def _():
    program = os.path.join(ROOT, "tests/postgres/server")
    conninfo = subprocess.run([program, "start", "--until", str(os.getpid())], check=True, stdout=subprocess.PIPE, text=True, timeout=300).stdout.strip()
    database = re.search(r"host=(\S+)", conninfo)[1]
    try:
        sql(conninfo + " dbname=postgres", "ALTER SYSTEM SET log_statement='all'")
        sql(conninfo + " dbname=postgres", "SELECT pg_reload_conf()")
        for wakeup in ("poll", "notify"):
            sql(conninfo + " dbname=postgres", f"CREATE DATABASE d{len(wakeup)}")  # its name is in the log
            store = f"postgres:{conninfo} dbname=d{len(wakeup)}"
            with serve(store, wakeup) as a, serve(store, wakeup) as b:
                with Client(a, RPC1).stream("slow 60") as events, Client(b, RPC1).subscribe(task_of(events), last=0) as there:
                    id = task_of(there)
                    same(Client(b, RPC1).cancel(id).task["status"]["state"], "TASK_STATE_CANCELED", "state")
                    same([e.state for e in there.rest()][-1], "TASK_STATE_CANCELED", "the last event at the other server")
                with Client(a, RPC1).stream("slow 60") as events:
                    task_of(events)
                    a.kill()
                soon(lambda b=b: metrics(b)["dragoman_tasks_taken_over_total"] == 1, "it was not taken over", 60)
                b.stop_well()
            with open(database + "/log", encoding="utf-8", errors="replace") as f:
                found = {word.upper().removeprefix("PG_") for word in re.findall(r"\b(LISTEN|NOTIFY|pg_notify)\b", f.read(), re.I)}
            same(sorted(found), ["LISTEN", "NOTIFY"] if wakeup == "notify" else [], f"wakeup: {wakeup}")
    finally:
        subprocess.run([program, "stop", database], check=False)


@test("/readyz and /metrics have the lease that has ended", timeout=180)
def _():
    store = on_postgres("memory:")
    database = re.search(r"dbname=(\S+)", store)[1]
    with serve(store) as s:
        same(ask(s.address, "GET", "/readyz").status, 200, "before")
        sql(store, f"ALTER DATABASE {database} ALLOW_CONNECTIONS false", "postgres")
        try:
            sql(store, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname='{database}'", "postgres")
            time.sleep(LEASE_S)
            soon(lambda: "lease of this server ended" in ask(s.address, "GET", "/readyz").body.decode(), "the lease", 60)
            r, m = ask(s.address, "GET", "/readyz"), metrics(s)
            same(r.status, 503, "status")
            check(re.search(r"ended \d+ ms ago", r.json["reason"]), r.json)
            check(m["dragoman_replica_lease_seconds_left"] < 0 and m["dragoman_ready"] == 0, m)
        finally:
            sql(store, f"ALTER DATABASE {database} ALLOW_CONNECTIONS true", "postgres")
        soon(lambda: ask(s.address, "GET", "/readyz").status == 200, "it does not recover", 60)
        soon(lambda: metrics(s)["dragoman_replica_lease_seconds_left"] > 0, "a lease", 60)
