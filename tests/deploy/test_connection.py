"""The connection to PostgreSQL: sources of the password, and that it is read nowhere else; TLS with a certificate authority of the test."""
import glob
import os
import re
import subprocess
import tempfile
import threading

import database
from database import PASSWORD, USER, Database
from lib import server
from lib.a2a import RPC1, Client
from lib.http import ask
from lib.server import DRAGOMAN, Server, folder
from lib.tap import check, each, same, soon, test

LOCK, MADE = threading.Lock(), {}
# Variables of this machine that would change a connection.
CLEAN = {name: None for name in os.environ if name.startswith("PG")}


def environment(more):
    return {name: value for name, value in {**server.ENV, **CLEAN, **more}.items() if value is not None}


def plain():
    """A PostgreSQL that wants a password over TCP, without TLS."""
    with LOCK:
        if "plain" not in MADE:
            d = MADE["plain"] = Database(hba=["host all all 127.0.0.1/32 scram-sha-256"])
            d.sql(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")
            d.sql(f"CREATE DATABASE d OWNER {USER}")
        return empty(MADE["plain"])


def secured():
    """One that accepts TLS alone. Its certificate is for `localhost`."""
    with LOCK:
        if "tls" not in MADE:
            files = tempfile.mkdtemp(prefix="dgm-deploy-tls-", dir=server.FOLDER)
            for ca in ("right", "wrong"):
                database.authority(files, ca)
            database.certificate(files, "right", "server", "localhost", "DNS:localhost")
            database.certificate(files, "right", "client", USER)
            texts = {name: open(f"{files}/{name}", encoding="ascii").read() for name in ("server.crt", "server.key", "right.crt")}
            d = MADE["tls"] = Database(hba=[f"hostssl certificates {USER} 127.0.0.1/32 cert", f"hostssl certificates {USER} ::1/128 cert",
                                            "hostssl all all 127.0.0.1/32 scram-sha-256", "hostssl all all ::1/128 scram-sha-256"])
            for name, text in texts.items():
                d.write(name, text)
            d.set(f"ssl=on\nssl_cert_file='{d.folder}/server.crt'\nssl_key_file='{d.folder}/server.key'\nssl_ca_file='{d.folder}/right.crt'")
            d.sql(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")
            for name in ("certificates", "d"):
                d.sql(f"CREATE DATABASE {name} OWNER {USER}")
            d.files = files
        return empty(MADE["tls"])


def empty(d):
    """Each test has the database for itself."""
    d.sql("SET client_min_messages=error; DROP SCHEMA IF EXISTS dragoman CASCADE", "d")
    return d


def write(text, mode=0o600):
    path = os.path.join(folder(), "secret")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def refusal(store, env, args=()):
    """What a server that cannot start prints; it must end with status 1."""
    p = subprocess.run([DRAGOMAN, "serve", "--listen", "127.0.0.1:0", "--agent", "bench", "--store", store, *args], cwd=folder(),
                       env=environment(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
    same(p.returncode, 1, "status")
    check(p.stdout.strip(), "it prints nothing")
    return p.stdout


def visible(s):
    """All that others can read of a server: its arguments and those of its children, its output, its public responses."""
    out = {"log": "\n".join(s.log)}
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                out[path] = f.read()
        except OSError:
            pass
    for path in ("/metrics", "/readyz", "/healthz", "/", "/.well-known/agent-card.json", "/debug/tasks"):
        r = ask(s.address, "GET", path)
        out[path] = r.body.decode("utf-8", "replace") + str(r.headers)
    return out


def check_secret(texts, secret=PASSWORD):
    for where, text in texts.items():
        check(secret not in text, lambda: f"the password is in {where}")


class Settings:
    """CLEAN is applied to a server of the library, too."""
    def __init__(self, **more):
        self.more = more

    def __enter__(self):
        self.before = server.ENV
        server.ENV = environment(self.more)

    def __exit__(self, *_):
        server.ENV = self.before


# ---- the password ------------------------------------------------------------------------------------------------

def sources(d, dbname):
    """name: (connection string, environment)"""
    at = f"host=127.0.0.1 port={d.port} dbname={dbname} user={USER}"
    service = f"[dragoman]\nhost=127.0.0.1\nport={d.port}\ndbname={dbname}\nuser={USER}\npassword={PASSWORD}\n"
    return {
        "PGPASSWORD": (at, {"PGPASSWORD": PASSWORD}),
        "PGPASSFILE": (at, {"PGPASSFILE": write(f"127.0.0.1:{d.port}:{dbname}:{USER}:{PASSWORD}\n")}),
        "passfile= in the connection string": (at + " passfile=" + write(f"*:*:*:*:{PASSWORD}\n"), {}),
        "a service file": ("service=dragoman", {"PGSERVICEFILE": write(service)}),
        "a service file that others may read, named by PGSERVICE": ("target_session_attrs=read-write", {"PGSERVICE": "dragoman", "PGSERVICEFILE": write(service, 0o444)}),
        "variables alone, with a URL": ("postgresql://", {"PGHOST": "127.0.0.1", "PGPORT": str(d.port), "PGDATABASE": dbname, "PGUSER": USER, "PGPASSWORD": PASSWORD}),
    }


NAMES = ["PGPASSWORD", "PGPASSFILE", "passfile= in the connection string", "a service file", "a service file that others may read, named by PGSERVICE",
         "variables alone, with a URL"]


@each("the password comes from {}, and is in no argument, log, banner, metric or response", NAMES, timeout=300)
def _(name):
    d = plain()
    conninfo, env = sources(d, "d")[name]
    # an agent that prints its environment
    config = {"log": {"level": "debug"}, "inspect": "owner",
              "agents": [{"id": "env", "type": "exec", "settings": {"command": ["env"], "output": "text"}}]}
    with Settings(**env), Server(agent=None, config=config, store="postgres:" + conninfo) as s:
        answer = str(Client(s, RPC1).send("show it").value)
        check("PATH=" in answer, f"the agent printed no environment: {answer[:300]}")
        check_secret({"the environment of an agent": answer})
        check_secret(visible(s))
        shown = d.sql("SELECT string_agg(application_name || ' ' || query, ' ') FROM pg_stat_activity")
        check("dragoman" in shown, shown)
        check_secret({"pg_stat_activity": shown, "the log of PostgreSQL": d.log()})
        s.stop_well()
        check_secret({"the log after its end": "\n".join(s.log)})


@each("without the right password ({}) the server ends with status 1 and a message without it",
      [("no password", None), ("a wrong one", "wr0ng-password"), ("a PGPASSFILE that others may read", "file")], timeout=200)
def _(given):
    d = plain()
    at = f"postgres:host=127.0.0.1 port={d.port} dbname=d user={USER}"
    env = {"PGPASSFILE": write(f"*:*:*:*:{PASSWORD}\n", 0o644)} if given == "file" else {"PGPASSWORD": given} if given else {"PGPASSFILE": write("")}
    text = refusal(at, env)
    check(PASSWORD not in text and "wr0ng" not in text, text)
    check(re.search(r"password|PGPASS", text), f"the message does not name the password: {text}")
    check(f"port={d.port}" in text or "127.0.0.1" in text, f"the message does not name the server: {text}")


@each("a password in {} is refused, and not repeated",
      [("the connection string", "host=127.0.0.1 dbname=x password=" + PASSWORD), ("a URL", f"postgresql://{USER}:{PASSWORD}@127.0.0.1/x"),
       ("a URL's query", f"postgresql://{USER}@127.0.0.1/x?password={PASSWORD}"), ("sslpassword", "host=127.0.0.1 sslpassword=" + PASSWORD),
       ("a string with an error", f"host=127.0.0.1 pass word={PASSWORD}")], timeout=100)
def _(conninfo):
    text = refusal("postgres:" + conninfo, {})
    check(PASSWORD not in text, text)
    if "pass word" in conninfo:
        return  # only libpq reads it
    path = os.path.join(folder(), "dragoman.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f'store: "postgres:{conninfo}"\n')
    for words in (("serve", "-c", path, "--listen", "127.0.0.1:0"), ("serve", "--check", "-c", path)):
        p = subprocess.run([DRAGOMAN, *words], cwd=folder(), env=environment({}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=100)
        check(PASSWORD not in p.stdout, f"{' '.join(words)} prints it")
        same(p.returncode, 1, f"status of {' '.join(words)}")


@test("`inherit_env: all` does not pass PGPASSWORD to an agent; naming it does", timeout=200)
def _():
    d = plain()
    store = f"postgres:host=127.0.0.1 port={d.port} dbname=d user={USER}"
    agents = [{"id": "all", "type": "exec", "settings": {"command": ["env"], "output": "text", "inherit_env": "all"}},
              {"id": "named", "type": "exec", "settings": {"command": ["env"], "output": "text", "inherit_env": ["PGPASSWORD"]}}]
    with Settings(PGPASSWORD=PASSWORD, OTHER="other-value"), Server(agent=None, config={"agents": agents}, store=store) as s:
        answers = {}
        for a in ("all", "named"):
            body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": {"messageId": "m-" + a, "role": "ROLE_USER", "parts": [{"text": "x"}]}}}
            answers[a] = ask(s.address, "POST", f"/agents/{a}/", body, [("Content-Type", "application/json"), ("A2A-Version", "1.0")]).body.decode()
        check("OTHER=other-value" in answers["all"], answers["all"][:500])
        check(PASSWORD not in answers["all"], "inherit_env: all passes it")
        check(PASSWORD in answers["named"], "inherit_env: [PGPASSWORD] does not pass it")
        s.stop_well()


@test("while PostgreSQL is away callers get an error without its address and user; the password is in no log", timeout=300)
def _():
    d = Database(hba=["host all all 127.0.0.1/32 scram-sha-256"])
    try:
        d.sql(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")
        d.sql(f"CREATE DATABASE d OWNER {USER}")
        with Settings(PGPASSWORD=PASSWORD), Server(config={"log": {"level": "debug"}}, store=f"postgres:host=127.0.0.1 port={d.port} dbname=d user={USER}") as s:
            c = Client(s, RPC1)
            check(c.send("echo x").ok, "a send")
            d.kill()
            soon(lambda: ask(s.address, "GET", "/readyz").status == 503, "/readyz stays green", 120)
            texts = {"the error": c.send("echo x").response.body.decode(), "/readyz": ask(s.address, "GET", "/readyz").body.decode()}
            for where, text in texts.items():
                for word in (PASSWORD, str(d.port), d.folder, "dbname", f"user={USER}"):
                    check(word not in text, f"{where} has {word}: {text}")
            d.start()
            soon(lambda: ask(s.address, "GET", "/readyz").status == 200, "/readyz stays red", 120)
            check(c.send("echo x").ok, "a send")
            check_secret(visible(s))
            s.stop_well()
    finally:
        d.stop()


# ---- TLS -----------------------------------------------------------------------------------------------------------

def sessions(d, dbname):
    return d.sql(f"SELECT count(*), count(*) FILTER (WHERE s.ssl AND s.version LIKE 'TLS%') FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid) WHERE datname='{dbname}'")


@each("{}: every connection is encrypted",
      [("sslmode=require", "d", "host=127.0.0.1 sslmode=require"), ("sslmode=verify-ca, another name", "d", "host=127.0.0.1 sslmode=verify-ca sslrootcert=RIGHT"),
       ("sslmode=verify-full", "d", "host=localhost sslmode=verify-full sslrootcert=RIGHT"), ("PGSSLMODE and PGSSLROOTCERT", "d", "host=localhost"),
       ("sslmode=prefer, the default", "d", "host=127.0.0.1"), ("a client certificate instead of a password", "certificates",
        "host=localhost sslmode=verify-full sslrootcert=RIGHT sslcert=CLIENT.crt sslkey=CLIENT.key")], timeout=200)
def _(dbname, conninfo):
    d = secured()
    conninfo = conninfo.replace("RIGHT", d.files + "/right.crt").replace("CLIENT", d.files + "/client")
    env = {"PGSSLMODE": "verify-full", "PGSSLROOTCERT": d.files + "/right.crt"} if conninfo == "host=localhost" else {}
    env["PGPASSWORD"] = "" if dbname == "certificates" else PASSWORD
    with Settings(**env), Server(store=f"postgres:{conninfo} port={d.port} dbname={dbname} user={USER}") as s:
        check(Client(s, RPC1).send("chunks 5 x").ok, "a send")
        n, encrypted = sessions(d, dbname).split("|")
        check(int(n) >= 2, f"{n} sessions")
        same(encrypted, n, "encrypted sessions")
        s.stop_well()


@each("{} is refused: status 1, and the message says that it is about TLS",
      [("verify-full, another authority", "host=localhost sslmode=verify-full sslrootcert=WRONG", r"certificate verify failed"),
       ("verify-ca, another authority", "host=127.0.0.1 sslmode=verify-ca sslrootcert=WRONG", r"certificate verify failed"),
       ("verify-full, another name", "host=127.0.0.1 sslmode=verify-full sslrootcert=RIGHT", r"does not match host name"),
       ("verify-full, no file of authorities", "host=localhost sslmode=verify-full sslrootcert=/nonexistent/ca.crt", r"root certificate file"),
       ("sslmode=disable where PostgreSQL demands TLS", "host=127.0.0.1 sslmode=disable", r"no encryption|SSL off"),
       ("a client certificate of another user", "host=localhost sslmode=require dbname=certificates sslcert=SERVER.crt sslkey=SERVER.key", r"certificate authentication failed")], timeout=200)
def _(conninfo, why):
    d = secured()
    for name in ("RIGHT", "WRONG"):
        conninfo = conninfo.replace(name, f"{d.files}/{name.lower()}.crt")
    conninfo = conninfo.replace("SERVER", d.files + "/server")
    dbname = "" if "dbname" in conninfo else " dbname=d"
    text = refusal(f"postgres:{conninfo} port={d.port}{dbname} user={USER}", {"PGPASSWORD": PASSWORD})
    check(re.search(why, text), f"{text}")
    check(PASSWORD not in text, "the message has the password")


@test("sslmode=require is refused by a PostgreSQL without TLS: nothing is sent in the clear")
def _():
    d = plain()
    text = refusal(f"postgres:host=127.0.0.1 port={d.port} dbname=d user={USER} sslmode=require", {"PGPASSWORD": PASSWORD})
    check("SSL" in text, text)


@test("a certificate that becomes invalid later: the server loses no request until connections are made again, then /readyz turns red", timeout=300)
def _():
    d = secured()
    database.certificate(d.files, "wrong", "other", "localhost", "DNS:localhost")
    store = f"postgres:host=localhost port={d.port} dbname=d user={USER} sslmode=verify-full sslrootcert={d.files}/right.crt"
    before = {name: open(f"{d.folder}/{name}", encoding="ascii").read() for name in ("server.crt", "server.key")}
    with Settings(PGPASSWORD=PASSWORD), Server(store=store, config={"loops": 1}) as s:  # a loop connects when it is used first
        c = Client(s, RPC1)
        check(c.send("echo x").ok, "a send")
        try:
            for kind in ("crt", "key"):
                with open(f"{d.files}/other.{kind}", encoding="ascii") as f:
                    d.write(f"server.{kind}", f.read())
            d.sql("SELECT pg_reload_conf()")
            check(c.send("echo x").ok, "a send over the old connections")
            d.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname='d'")
            soon(lambda: ask(s.address, "GET", "/readyz").status == 503, "/readyz stays green", 120)
        finally:
            for name, text in before.items():
                d.write(name, text)
            d.sql("SELECT pg_reload_conf()")
        soon(lambda: ask(s.address, "GET", "/readyz").status == 200, "/readyz stays red", 120)
        check(c.send("echo x").ok, "a send after that")
        s.stop_well()


