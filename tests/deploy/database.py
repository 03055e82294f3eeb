"""PostgreSQL servers of a test's own, with TCP, TLS, passwords and standbys. They end with this process."""
import importlib.machinery
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
_path = os.path.join(ROOT, "tests/postgres/server")
_spec = importlib.util.spec_from_loader("postgres_server", importlib.machinery.SourceFileLoader("postgres_server", _path))
postgres = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(postgres)

USER, PASSWORD = "app", "s3cret-of-the-database"
SETTINGS = """max_connections=100
shared_buffers=32MB
autovacuum_naptime=5min
logging_collector=off
wal_level=replica
max_wal_senders=6
hot_standby=on
wal_sender_timeout=60s
log_connections=on
"""
LIVE, LOCK, SHARED = set(), threading.Lock(), {}


def as_user(*command, **options):
    """Runs a program as the user that PostgreSQL runs as."""
    who = postgres.user()
    more = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []} if who else {}
    return subprocess.run(command, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more, **options)


def must(done):
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, done.args))}: {done.stdout}")
    return done.stdout


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Database:
    """hba: lines of pg_hba.conf for TCP; without any, there is no TCP. On the socket, `dragoman` is allowed without a password."""

    def __init__(self, settings="", hba=(), primary=None, files=None):
        self.folder, self.settings = postgres.new_folder("dgm-deploy-pg-"), settings
        LIVE.add(self)
        watch(self.folder)
        if primary:
            must(as_user(postgres.bindir() + "/pg_basebackup", "-D", self.folder + "/data", "-R", "-X", "stream", "-c", "fast", "-h", primary.folder,
                         "-p", str(primary.port), "-U", "dragoman", "--no-sync", timeout=120))
            self.hba = primary.hba
        else:
            postgres.copy_template(self.folder + "/data")
            self.hba = list(hba)
            self.write("data/pg_hba.conf", "\n".join(["local all all trust", "local replication all trust", *self.hba]) + "\n")
        for name, data in (files or {}).items():
            self.write(name, data)
        self.start(new_port=True)

    def write(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(data)
        os.chmod(path, 0o600)
        who = postgres.user()
        if who:
            os.chown(path, who.pw_uid, who.pw_gid)

    def start(self, new_port=False):
        for _ in range(5):
            if new_port:
                self.port = free_port()
            self.write("data/postgresql.auto.conf", self.auto_settings())
            done = as_user(postgres.bindir() + "/pg_ctl", "-D", self.folder + "/data", "-w", "-t", "60", "-l", self.folder + "/log", "start", timeout=120)
            if done.returncode == 0:
                return
            if not new_port or "could not bind" not in self.log() and "Address already in use" not in self.log():
                break
        raise RuntimeError(done.stdout + self.log()[-2000:])

    def auto_settings(self):
        # what pg_basebackup -R wrote about the primary stays
        path = self.folder + "/data/postgresql.auto.conf"
        with open(path, encoding="utf-8") as f:
            kept = [line for line in f if line.startswith("primary_")]
        listen = "127.0.0.1" if self.hba else ""
        return "".join(kept) + f"{SETTINGS}listen_addresses='{listen}'\nport={self.port}\nunix_socket_directories='{self.folder}'\n{self.settings}\n"

    def set(self, settings):
        """Other settings, without a restart."""
        self.settings = settings
        self.write("data/postgresql.auto.conf", self.auto_settings())
        self.sql("SELECT pg_reload_conf()")

    def sql(self, text, db="postgres", timeout=60):
        return subprocess.run(["psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-p", str(self.port), "-U", "dragoman", "-d", db, "-c", text],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True, timeout=timeout).stdout.strip()

    def soon(self, query, wanted, seconds=60):
        end = time.monotonic() + seconds
        while True:
            try:
                got = self.sql(query)
            except subprocess.CalledProcessError as e:
                got = e.stderr
            if got == wanted:
                return
            if time.monotonic() > end:
                raise RuntimeError(f"{query}: {got}, not {wanted}")
            time.sleep(0.1)

    def pid(self):
        return postgres.postmaster(self.folder)

    def processes(self, title=""):
        """Processes of this server whose title contains a text."""
        out = []
        for pid in postgres.children(self.pid()):
            try:
                with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as f:
                    if title in f.read():
                        out.append(pid)
            except OSError:
                pass
        return out

    def kill(self):
        """SIGKILL to all its processes, as a crash."""
        postgres.kill(self.folder)

    def promote(self):
        self.sql("SELECT pg_promote(true, 60)")

    def log(self):
        try:
            with open(self.folder + "/log", encoding="utf-8", errors="replace") as f:
                return f.read()
        except OSError:
            return ""

    def stop(self):
        LIVE.discard(self)
        postgres.stop(self.folder)


def shared(name, **options):
    """One for all tests of this process that ask for this name; tests that break theirs make another one."""
    with LOCK:
        if name not in SHARED:
            SHARED[name] = Database(**options)
        return SHARED[name]


def watch(folder):
    """A process that ends the server when this one is gone, whatever ended it."""
    subprocess.Popen([sys.executable, os.path.abspath(__file__), folder, str(os.getpid())], start_new_session=True,
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def stop_all():
    for d in list(LIVE):
        d.stop()


# ---- certificates ----------------------------------------------------------------------------------------------

def openssl(folder, *args):
    subprocess.run(["openssl", *args], cwd=folder, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60)


def authority(folder, name):
    """A CA: NAME.key, NAME.crt."""
    openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
            "-keyout", f"{name}.key", "-out", f"{name}.crt")


def certificate(folder, ca, name, common_name, san=None):
    """NAME.key, NAME.crt, signed by the CA."""
    openssl(folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={common_name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
    with open(f"{folder}/{name}.ext", "w", encoding="ascii") as f:
        f.write(f"subjectAltName={san}\n" if san else "")
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.crt", "-CAkey", f"{ca}.key", "-CAcreateserial", "-days", "2",
            "-extfile", f"{name}.ext", "-out", f"{name}.crt")
    os.chmod(f"{folder}/{name}.key", 0o600)


if __name__ == "__main__":
    while os.path.exists(sys.argv[1]) and os.path.exists(f"/proc/{sys.argv[2]}"):
        time.sleep(0.5)
    if os.path.exists(sys.argv[1]):
        postgres.stop(sys.argv[1])
        shutil.rmtree(sys.argv[1], ignore_errors=True)
