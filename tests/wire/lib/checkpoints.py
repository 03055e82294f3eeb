#!/usr/bin/env python3
"""A worker in plain Python that does with checkpoints what its message says. It is no graph: it needs no package.

The message is JSON. {"calls": [[METHOD, PARAMS], ...]} makes these requests and answers with their results as a JSON list, an error as
{"error": CODE, "message": TEXT}. In params "$thread" is the thread of the run, and {"$value": [TYPE, SIZE, SEED]} a value of so many bytes,
which is written in parts if it is large. In results a value is [TYPE, SIZE, SHA-256], after it was read in parts if it is large.
{"puts": FILE, "size": SIZE} puts checkpoints and writes until it is killed, and adds a line to the file for everything that was acknowledged.
"""
import base64
import hashlib
import json
import os
import random
import socket
import threading

LINE = 1 << 20  # larger values are written in parts


def value_bytes(size, seed):
    return random.Random(seed).randbytes(size)


def digest(data):
    return hashlib.sha256(data).hexdigest()


class Refused(Exception):
    pass


class Worker:
    def __init__(self):
        self.connection = socket.socket(fileno=int(os.environ["DRAGOMAN_FD"]))
        self.lock, self.answers, self.n, self.n_blobs = threading.Lock(), {}, 0, 0

    def send(self, **message):
        with self.lock:
            self.connection.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def call(self, method, params):
        with self.lock:
            self.n += 1
            id, arrived = f"w{self.n}", threading.Event()
            self.answers[id] = (arrived, answer := {})
        self.send(id=id, method=method, params=params)
        arrived.wait()
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]

    def write(self, type, size, seed):
        data = value_bytes(size, seed)
        if size <= LINE:
            return [type, base64.b64encode(data).decode()]
        self.n_blobs += 1
        name = f"b{self.n_blobs}"
        for at in range(0, size, LINE):
            self.call("blob/write", {"blob": name, "data": base64.b64encode(data[at:at + LINE]).decode()})
        return [type, {"blob": name}]

    def read(self, type, body):
        if isinstance(body, str):
            data = base64.b64decode(body, validate=True)
        else:
            data, last = b"", False
            while not last:
                part = self.call("blob/read", {"blob": body["blob"], "offset": len(data), "max": 3000000})
                data, last = data + base64.b64decode(part["data"]), part["last"]
            assert len(data) == body["bytes"], (len(data), body)
            self.call("blob/close", {"blob": body["blob"]})
        return [type, len(data), digest(data)]

    def fill(self, v, thread):
        if isinstance(v, str):
            return v.replace("$thread", thread)
        if isinstance(v, list):
            return [self.fill(x, thread) for x in v]
        if isinstance(v, dict) and "$value" in v:
            return self.write(*v["$value"])
        return {k: self.fill(x, thread) for k, x in v.items()} if isinstance(v, dict) else v

    def show(self, row):
        return {**row, "checkpoint": self.read(*row["checkpoint"]), "metadata": self.read(*row["metadata"]),
                "writes": [[task, channel, self.read(*value), path] for task, channel, value, path in row["writes"]]}

    def one(self, method, params, thread):
        try:
            result = self.call(method, self.fill(params, thread))
        except Refused as e:
            return {"error": e.args[0]["code"], "message": e.args[0]["message"]}
        if method == "checkpoint/get" and result:
            return self.show(result)
        if method == "checkpoint/list":
            result["rows"] = [self.show(r) for r in result["rows"]]
        return result

    def put_until_killed(self, thread, path, size):
        with open(path, "a", encoding="utf-8") as acknowledged:
            for i in range(1, 1000000):
                id = f"{os.getpid():010}-{i:06}"
                self.call("checkpoint/put", {"thread": thread, "ns": "", "id": id, "run": "r", "checkpoint": self.write("bytes", size, id),
                                             "metadata": self.write("json", 20, id)})
                print("put", id, file=acknowledged, flush=True)
                self.call("checkpoint/writes", {"thread": thread, "ns": "", "id": id, "task": "k", "writes": [[0, "c", self.write("w", size, id)]]})
                print("writes", id, file=acknowledged, flush=True)

    def run(self, id, params):
        text = "".join(part.get("text", "") for part in params["message"]["parts"])
        order, thread = json.loads(text), params["thread"]
        if "puts" in order and params["isResumed"]:  # by the next server
            return self.send(id=id, result={"status": "completed"})
        if "puts" in order:
            self.put_until_killed(thread, order["puts"], order["size"])
        answer = json.dumps([self.one(method, p, thread) for method, p in order["calls"]]).replace(thread, "$thread")
        event = {"artifactUpdate": {"artifact": {"artifactId": "answer", "parts": [{"text": answer}]}, "append": False, "lastChunk": True}}
        self.send(method="event", params={"run": params["run"], "seq": 0, "type": "a2a", "data": event})
        self.send(id=id, result={"status": "completed"})

    def serve(self):
        for line in self.connection.makefile("rb"):
            m = json.loads(line)
            if "method" not in m:
                arrived, answer = self.answers.pop(m["id"])
                answer.update(m)
                arrived.set()
            elif m["method"] == "initialize":
                self.send(id=m["id"], result={"protocolVersion": 1, "worker": {"name": "checkpoints.py", "lang": "python", "version": "1"}, "maxRuns": 64,
                                              "agents": [{"id": m["params"]["agent"], "kind": "events"}], "capabilities": {"cancel": False}})
            elif m["method"] == "run":
                threading.Thread(target=self.run, args=(m["id"], m["params"]), daemon=True).start()
            elif "id" in m:  # ping, shutdown
                self.send(id=m["id"], result={})


if __name__ == "__main__":
    Worker().serve()
