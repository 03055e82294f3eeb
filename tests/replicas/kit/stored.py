"""Reads what the database has: the order that everything else is checked against. src/store/store_frame.c has the form of a row."""
import json
import struct

from .history import Log, Record

ROW_HEAD = 9
RECORD_HEAD = struct.Struct("<IIQBB")  # length, turn, time, kind, state


def records_of(first_seq, data):
    if data[:1] != b"\x01":
        raise ValueError(f"a row of the log has version {data[:1]!r}")
    at, seq, out = ROW_HEAD, first_seq, []
    while at < len(data):
        length, turn, time, kind, state = RECORD_HEAD.unpack_from(data, at)
        at += RECORD_HEAD.size
        out.append(Record(seq, turn, kind, state, json.loads(data[at:at + length]), time))
        at, seq = at + length, seq + 1
    return out


def rows(cluster, select):
    text = cluster.sql(select)
    return [line.split("|") for line in text.splitlines()]


def text(hex_digits):
    return bytes.fromhex(hex_digits).decode()


def logs(cluster):
    """{task: Log}"""
    owner = "owner" if rows(cluster, "SELECT 1 FROM information_schema.columns WHERE table_schema='dragoman' AND table_name='tasks' AND column_name='owner'") else "0"
    records, out = {}, {}
    # one statement: one moment of the database
    tasks = "SELECT 'T',encode(id,'hex'),state::text,last_seq::text,encode(agent,'hex')," + owner + "::text,0 FROM dragoman.tasks"
    parts = "SELECT 'L',encode(task,'hex'),first_seq::text,encode(bytes,'hex'),'','',first_seq FROM dragoman.log"
    found = rows(cluster, f"SELECT * FROM ({tasks} UNION ALL {parts}) x ORDER BY 1,2,7")
    for row in found:
        if row[0] == "L":
            records.setdefault(text(row[1]), []).extend(records_of(int(row[2]), bytes.fromhex(row[3])))
    for row in found:
        if row[0] == "T":
            task = text(row[1])
            out[task] = Log(task, records.get(task, []), int(row[3]), int(row[2]), text(row[4]), int(row[5]))
    return out


def messages(cluster):
    return [(text(m), text(t)) for m, t in rows(cluster, "SELECT DISTINCT encode(message,'hex'),encode(task,'hex') FROM dragoman.messages")]
