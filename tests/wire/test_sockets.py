"""What is below HTTP: descriptors that run out, unix sockets, TLS, streams that wait, the end of the server."""
import os
import resource
import signal
import socket
import ssl
import subprocess
import time

from lib.a2a import RPC1, Client, json_bytes, message, new_id
from lib.http import Conn, request_bytes
from lib.server import Server, folder, needs_ours, needs_sqlite
from lib.tap import Skip, check, same, soon, test

HEAD = b"Host: 127.0.0.1\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\n"


def call(text, method="SendMessage", id=1):
    body = json_bytes({"jsonrpc": "2.0", "id": id, "method": method, "params": {"message": message(text, context=new_id("ctx"))}})
    return b"POST / HTTP/1.1\r\n" + HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


def until(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < end, f"{what}: not after {seconds} s")
        time.sleep(0.02)


def sockets_of(s):
    found = set()
    for fd in os.listdir(f"/proc/{s.process.pid}/fd"):
        try:
            found.add(os.readlink(f"/proc/{s.process.pid}/fd/{fd}"))
        except FileNotFoundError:
            pass  # closed meanwhile
    return {name for name in found if name.startswith("socket:")}


def stream(address, text):
    """A stream whose first events have come."""
    c = Conn(address, 30)
    c.send(call(text, "SendStreamingMessage"))
    same(c.head().status, 200, "status")
    while b"TASK_STATE_WORKING" not in c.kept:
        c.more()
    return c


# ---- descriptors -----------------------------------------------------------------------------------------------------

@test("too many open files: open connections are served, new ones wait or get 503, later all are served", timeout=120)
def _():
    needs_ours("a promise of ours")
    with Server("bench") as s:
        inside = Conn(s.address, 30)
        inside.send(call("echo hi"))
        check(inside.response().status == 200, "before")
        pid = s.process.pid
        used = len(os.listdir(f"/proc/{pid}/fd"))
        _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 5, hard))
        outside = [socket.create_connection(s.address, timeout=30) for _ in range(40)]
        for _ in range(20):  # for about a second, while no client can connect
            inside.send(call("echo hi"))
            check(inside.response().status == 200, "meanwhile")
            time.sleep(0.05)
        for c in outside:
            c.close()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))
        check(Client(s, RPC1).send("echo again").ok, "a new client, afterwards")
        s.stop_well()


# ---- unix sockets ------------------------------------------------------------------------------------------------------

@test("a unix socket: served, left behind by a dead server and taken over, gone after the end")
def _():
    needs_ours("a promise of ours")
    path = os.path.join(folder(), "s")

    def ask_it():
        with socket.socket(socket.AF_UNIX) as u:
            u.settimeout(30)
            u.connect(path)
            u.sendall(call("echo over a file"))
            data = b""
            while b"over a file" not in data:
                piece = u.recv(65536)
                check(piece, data)
                data += piece

    def start():
        words = [os.environ.get("DRAGOMAN", "build/dragoman"), "serve", "--listen", "unix:" + path, "--store", "memory:", "--agent", "bench"]
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        p = subprocess.Popen([os.path.join(root, words[0])] + words[1:], cwd=folder(), stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def answers():
            check(p.poll() is None, f"it ended with {p.returncode}")
            try:
                ask_it()
                return True
            except OSError:
                return False
        try:
            until(answers, "a server at the socket")
        except BaseException:
            p.kill()
            raise
        return p
    first = start()
    first.kill()
    first.wait()
    check(os.path.exists(path), "the file of a server that was killed")
    second = start()
    second.send_signal(signal.SIGTERM)
    try:
        same(second.wait(30), 0, "status after SIGTERM")
    finally:
        second.kill()
    check(not os.path.exists(path), "the file is gone")


# ---- TLS ---------------------------------------------------------------------------------------------------------------

def certificate(where, name):
    """A key and a certificate of its own; returns the names of the files."""
    cert, key = os.path.join(where, "cert.pem"), os.path.join(where, "key.pem")
    try:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", f"/CN={name}", "-keyout", key, "-out", cert], check=True, capture_output=True, timeout=60)
    except FileNotFoundError:
        raise Skip("no openssl program")
    return cert, key


def tls(address, alpn=("http/1.1",), highest=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(list(alpn))
    if highest:
        context.maximum_version = highest
    return context.wrap_socket(socket.create_connection(address, timeout=30))


@test("TLS: the same answers, http/1.1 by ALPN, 1.2 at least, plain HTTP gets an error")
def _():
    needs_ours("a promise of ours")
    cert, key = certificate(folder(), "first")
    with Server("bench", config={"tls": {"cert": cert, "key": key}}) as s:
        with tls(s.address) as t:
            same(t.selected_alpn_protocol(), "http/1.1", "ALPN")
            check(t.version() in ("TLSv1.2", "TLSv1.3"), t.version())
            for _ in range(3):
                t.sendall(call("echo locked"))
                data = b""
                while b"echo locked" not in data:
                    data += t.recv(65536)
        with tls(s.address, highest=ssl.TLSVersion.TLSv1_2) as t:
            same(t.version(), "TLSv1.2", "version")
        with Conn(s.address, 30) as c:
            c.send(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            same(c.response().status, 400, "plain HTTP")
        s.stop_well()


def name_of(address):
    """The common name of the server's certificate, which contains it as plain text."""
    with tls(address) as t:
        der = t.getpeercert(binary_form=True)
    return next((n for n in ("first", "second") if n.encode() in der), None)


@test("TLS: a new certificate after SIGHUP, open connections go on, a broken one changes nothing", timeout=120)
def _():
    needs_ours("a promise of ours")
    where = folder()
    cert, key = certificate(where, "first")
    with Server("bench", config={"tls": {"cert": cert, "key": key}}) as s:
        same(name_of(s.address), "first", "before")
        with tls(s.address) as old:
            certificate(where, "second")
            s.process.send_signal(signal.SIGHUP)
            until(lambda: all(name_of(s.address) == "second" for _ in range(4)), "the second certificate")
            old.sendall(call("echo still here"))
            data = b""
            while b"still here" not in data:
                data += old.recv(65536)
        with open(cert, "w", encoding="utf-8") as f:
            f.write("no certificate")
        s.process.send_signal(signal.SIGHUP)
        for _ in range(20):
            same(name_of(s.address), "second", "after a broken file")
            time.sleep(0.02)
        s.stop_well()


# ---- streams that wait --------------------------------------------------------------------------------------------------

@test("a stream that waits has a comment every 15 s and nothing else", timeout=120)
def _():
    needs_ours("a promise of ours")
    with Server("bench") as s, stream(s.address, "hold 100 x") as c:
        before = c.kept
        c.socket.settimeout(60)
        c.more()
        new = c.kept[len(before):]
        check(b": " in new and b"data:" not in new and b"id:" not in new, new)


@test("a client that is gone without a word is noticed when its stream is kept alive", timeout=120)
def _():
    needs_sqlite("it counts sockets, and takes those of the database for a client's")
    needs_ours("a promise of ours")
    with Server("bench") as s:
        before = sockets_of(s)
        c = stream(s.address, "hold 300 x")
        ours = sockets_of(s) - before
        check(ours, "its socket")
        c.close()  # a FIN: what is written then is answered by a reset
        until(lambda: not ours & sockets_of(s), "its socket closed", 60)


# ---- the end -------------------------------------------------------------------------------------------------------------

@test("SIGTERM: streams are completed, idle connections close, new ones are refused, exit status 0", timeout=120)
def _():
    needs_ours("a promise of ours")
    with Server("bench", config={"drain_s": 3}) as s:  # which the tasks are given: they hold for longer
        streams = [stream(s.address, "hold 300 x") for _ in range(20)]
        idle = Conn(s.address, 30)
        idle.send(call("echo hi"))
        check(idle.response().status == 200, "before")
        s.process.send_signal(signal.SIGTERM)
        check(idle.ended(30), "the idle connection ends")
        for c in streams:
            data = c.kept
            c.socket.settimeout(30)
            while piece := c.socket.recv(65536):
                data += piece
            check(data.endswith(b"\r\n0\r\n\r\n"), data[-100:])
        same(s.process.wait(60), 0, "exit status")


@test("SIGTERM: an answer that is being made gets its time", timeout=120)
def _():
    needs_ours("a promise of ours")
    with Server("bench", config={"drain_s": 60}) as s:
        c = Conn(s.address, 60)
        c.send(call("hold 5 x"))  # blocking: the answer comes when the task is over
        first = stream(s.address, "hold 1 x")
        soon(lambda: Client(s, RPC1).list().value["totalSize"] == 2, "both tasks", 60)  # they may be on different loops
        s.process.send_signal(signal.SIGTERM)
        r = c.response()
        same(r.status, 200, "status")
        check(b"TASK_STATE_COMPLETED" in r.body, r)
        first.close()
        same(s.process.wait(30), 0, "exit status")
