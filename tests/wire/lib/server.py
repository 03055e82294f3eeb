"""Starts the server under test, learns its port, and ends it again.

DRAGOMAN names the program (build/dragoman). What is needed of it: `serve --listen 127.0.0.1:0 --store S
--agent T [--profile P] [-c FILE]`, and one line on stdout or stderr with `listening on http://HOST:PORT`.
"""
import atexit
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from .tap import Failure, Skip, check

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
DRAGOMAN = os.path.join(ROOT, os.environ.get("DRAGOMAN", "build/dragoman"))
IS_STANDIN = "standin" in DRAGOMAN


def is_sanitized():
    """Memory and times of a build with sanitizers are not representative."""
    with open(DRAGOMAN, "rb") as f:
        return b"__asan_init" in f.read()


# a report of the sanitizers must end the server with its own status
ENV = {**os.environ, "LC_ALL": "C", "ASAN_OPTIONS": "exitcode=77:detect_leaks=1",
       "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}
START = 60  # seconds until it listens; a sanitizer build on a busy machine takes some

FOLDER = tempfile.mkdtemp(prefix="dragoman-wire-")


def folder():
    return tempfile.mkdtemp(dir=FOLDER)


# ---- configuration: every key that a test sets is named here only ----------------------------------------

TOKENS = {"alice": "alice-secret", "bob": "bob-secret"}  # bearer tokens: two principals without tenant
KEYS = {"carol": "carol-key"}  # X-API-Key


def settings(tokens=False, errors=None, card=None, version=None, media=None, streaming=None, extensions=None,
             dedupe=None, canonical_type=None, tenants=False, origins=None, agents=None, limits=None):
    """A dragoman.yaml (JSON is accepted) from what a test wants to be different."""
    out = {}
    if tokens:
        tenant = {"alice": "acme", "bob": "globex"} if tenants else {}
        out["tokens"] = [{"token": t, "principal": p, **({"tenant": tenant[p]} if p in tenant else {})} for p, t in TOKENS.items()] + \
            [{"kind": "api-key", "token": k, "principal": p} for p, k in KEYS.items()]
    a2a = {"error_table": errors, "card_headerless": card, "version_mode": version, "rest_media_type": media,
           "streaming": streaming, "extensions": extensions, "canonical_type": canonical_type}
    out["a2a"] = {k: v for k, v in a2a.items() if v is not None}
    if dedupe is not None:
        out["agent_defaults"] = {"dedupe": dedupe}
    if origins:
        out["cors"] = {"origins": origins}
    if limits:
        out["limits"] = limits
    if agents:
        out["agents"] = agents  # and no agent= for the server: the command line's would replace them
    return out


def agent(type, id=None, settings=None, **more):
    """A row of `agents`."""
    return {"id": id or type, "type": type, **({"settings": settings} if settings else {}), **more}


# ---- PostgreSQL: DRAGOMAN_TEST_STORE=postgres runs the same tests on it -----------------------------------

POSTGRES = os.environ.get("DRAGOMAN_TEST_STORE") == "postgres"
DATABASES = {}  # what a test asked for, and its database


def postgres_server():
    """The connection string of a PostgreSQL: the one that tests/run started for all suites, or one that ends with this process."""
    given = os.environ.get("DRAGOMAN_TEST_POSTGRES")
    if not given:
        given = subprocess.run([os.path.join(ROOT, "tests/postgres/server"), "start", "--until", str(os.getpid())],
                               check=True, stdout=subprocess.PIPE, text=True, timeout=300).stdout.strip()
        os.environ["DRAGOMAN_TEST_POSTGRES"] = given
    return given


def needs_sqlite(why):
    if POSTGRES:
        raise Skip(why)


def on_postgres(store):
    """A database for each file; `memory:` is a new one every time."""
    server = postgres_server()
    if store not in DATABASES or store == "memory:":
        DATABASES[store] = f"w{os.getpid()}_{len(DATABASES)}_{time.monotonic_ns()}"
        host = re.search(r"host=(\S+)", server)[1]
        subprocess.run(["psql", "-q", "-h", host, "-U", "dragoman", "-d", "postgres", "-c", f"CREATE DATABASE {DATABASES[store]}"],
                       check=True, timeout=120)
    return f"postgres:{server} dbname={DATABASES[store]}"


def stored_bytes(store):
    """What a store holds, by file, or by table of PostgreSQL: to look for what must not be there."""
    if not store.startswith("postgres:"):
        out = {}
        for path in glob.glob(store.removeprefix("sqlite:") + "*"):
            with open(path, "rb") as f:
                out[os.path.basename(path)] = f.read()
        return out
    dump = subprocess.run(["pg_dump", "--data-only", "-d", store.removeprefix("postgres:")], check=True, stdout=subprocess.PIPE, timeout=300).stdout
    return {"pg_dump": b"\n".join(bytes.fromhex(m.decode()) for m in re.findall(rb"\\\\x([0-9a-f]+)", dump))}


# ---- the process -------------------------------------------------------------------------------------------

class Server:
    def __init__(self, agent="bench", store="memory:", profile=None, config=None, args=(), env=None, listen="127.0.0.1:0"):
        if POSTGRES and (store == "memory:" or store.startswith("sqlite:")):
            store = on_postgres(store)
        self.agent, self.store, self.profile, self.config = agent, store, profile, config
        self.errors = (config or {}).get("a2a", {}).get("error_table") or ("1.0.0" if profile == "tck" else "1.0.1")
        self.args, self.env, self.listen = list(args), env or {}, listen
        self.process, self.log = None, []
        self.start()

    def command(self):
        words = [DRAGOMAN, "serve", "--listen", self.listen, "--store", self.store]
        if self.agent:
            words += ["--agent", self.agent]
        if self.profile:
            words += ["--profile", self.profile]
        if self.config:
            path = os.path.join(folder(), "dragoman.yaml")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(self.config, f)
            words += ["-c", path]
            self.file = path  # of the configuration, for tests that change it
        return words + self.args

    def start(self):
        self.log, listening = [], threading.Event()
        self.process = subprocess.Popen(self.command(), cwd=folder(), env={**ENV, **self.env}, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        LIVE.add(self)

        def follow(pipe):
            for line in pipe:
                line = line.decode("utf-8", "replace").rstrip("\n")
                self.log.append(line)
                if not listening.is_set() and (m := re.search(r"listening on https?://(127\.0\.0\.1|\[::1\]|localhost):(\d+)", line)):
                    self.address = ("127.0.0.1", int(m[2]))
                    listening.set()
            pipe.close()

        self.readers = [threading.Thread(target=follow, args=(p,), daemon=True) for p in (self.process.stdout, self.process.stderr)]
        for r in self.readers:
            r.start()
        end = time.monotonic() + START
        while not listening.wait(0.05):
            if self.process.poll() is not None or time.monotonic() > end:
                self.kill()
                raise Failure(f"{' '.join(self.command())}: does not listen "
                              f"(status {self.process.returncode})\n" + "\n".join(self.end_of_log()))

    def end_of_log(self):
        """The last lines; all of a sanitizer's report: its start says what is wrong."""
        report = [i for i, line in enumerate(self.log) if "ERROR: " in line and "Sanitizer" in line]
        return self.log[max(report[0] - 5, 0):][:120] if report else self.log[-20:]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.address[1]}"

    def is_running(self):
        return self.process.poll() is None

    def kill(self):
        """kill -9: no chance to say goodbye."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        for r in self.readers:
            r.join(5)
        LIVE.discard(self)

    def restart(self, same_port=True):
        """After kill(): the same again, on the same store, at the same address."""
        if same_port:
            self.listen = f"127.0.0.1:{self.address[1]}"
        end = time.monotonic() + START
        while True:
            try:
                return self.start()
            except Failure as e:
                # Another connection may have the port for a moment: the system chooses ports of outgoing connections from
                # the same range, and a client that tries to come back can even be connected with itself.
                if "already in use" not in str(e) or time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def stop(self, seconds=20):
        """SIGTERM, as a service manager does; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure(f"no end {seconds} s after SIGTERM")
        for r in self.readers:
            r.join(5)
        LIVE.discard(self)
        return status

    def stop_well(self):
        status = self.stop()
        check(status == 0, lambda: f"status {status} after SIGTERM\n" + self.last_words())

    def last_words(self):
        """A sanitizer's report up to its summary, or the end of the log."""
        log = list(self.log)
        at = next((i for i, line in enumerate(log) if "ERROR: " in line and "Sanitizer" in line or "runtime error" in line), None)
        if at is None:
            return "\n".join(log[-20:])
        end = next((i for i in range(at, len(log)) if log[i].startswith("SUMMARY")), at + 60)
        return "\n".join(log[at:end + 1])

    def memory(self):
        """RssAnon in bytes."""
        with open(f"/proc/{self.process.pid}/status") as f:
            return int(re.search(r"RssAnon:\s+(\d+)", f.read())[1]) * 1024

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.is_running():
            self.kill()
        elif self.process.returncode not in (0, -signal.SIGKILL):  # a test that kills it uses kill()
            for r in self.readers:
                r.join(5)
            raise Failure(f"the server ended with status {self.process.returncode}\n" + "\n".join(self.end_of_log()))


LIVE, SHARED, LOCK = set(), {}, threading.Lock()


def server(agent="bench", **options):
    """A server shared by all tests that ask for the same; never stopped or broken by one of them."""
    key = json.dumps([agent, options], sort_keys=True)
    with LOCK:
        s = SHARED.get(key)
        if s is not None and not s.is_running():
            del SHARED[key]
            raise Failure("the server died in an earlier test\n" + s.last_words())
        if s is None:
            s = SHARED[key] = Server(agent, **options)
        return s


def end_all():
    """Stops what is left; complaints about how it ended (a sanitizer's report, a hang)."""
    complaints = []
    for s in list(SHARED.values()):
        try:
            s.stop_well()
        except Failure as e:
            complaints.append(f"{' '.join(s.command())}: {e}")
    for s in list(LIVE):
        s.kill()
    SHARED.clear()
    shutil.rmtree(FOLDER, ignore_errors=True)
    return complaints


@atexit.register
def at_exit():
    for s in list(LIVE):
        s.kill()
    shutil.rmtree(FOLDER, ignore_errors=True)


def needs_plain():
    if is_sanitized():
        raise Skip("a build with sanitizers has other numbers")


def needs_ours(why="only Dragoman has this"):
    if IS_STANDIN:
        raise Skip(why)
