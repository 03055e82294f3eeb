/*
 * backend/test_worker.h - a worker for tests, in Python: it does what the text of a message says.
 *
 * A text is a list of actions, separated by ";". An action that starts with "1:" is done in the first attempt only, one that starts
 * with "again:" if the run is resumed, "new:" if it is not. After the last one the run is completed.
 */
#pragma once

#include "backend/test_fake.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* clang-format off */
static const char worker_script[] =
"import json, os, socket, sys, threading, time\n"
"how = sys.argv[1] if len(sys.argv) > 1 else ''\n"
"c = socket.socket(fileno=int(os.environ['DRAGOMAN_FD']))\n"
"lock, runs, waiting, number = threading.Lock(), {}, {}, [0]\n"
"def line(data):\n"
"    with lock: c.sendall(data + b'\\n')\n"
"def send(**m): line(json.dumps(dict(m, jsonrpc='2.0')).encode())\n"
"def ask(method, params):\n"
"    with lock: number[0] += 1; id = 'w%d' % number[0]\n"
"    done = waiting[id] = threading.Event()\n"
"    send(id=id, method=method, params=params)\n"
"    done.wait()\n"
"    return done.answer\n"
"class Run(threading.Thread):\n"
"    def __init__(self, id, p):\n"
"        super().__init__(daemon=True)\n"
"        self.id, self.p, self.seq, self.canceled, self.inbox = id, p, 0, threading.Event(), []\n"
"    def emit(self, data, type='a2a'):\n"
"        send(method='event', params=dict(run=self.p['run'], seq=self.seq, type=type, data=data)); self.seq += 1\n"
"    def text(self, text, append=False, last=True, id='a'):\n"
"        self.emit({'artifactUpdate': {'artifact': {'artifactId': id, 'parts': [{'text': text}]}, 'append': append, 'lastChunk': last}})\n"
"    def end(self, **m): send(id=self.id, **m)\n"
"    def run(self):\n"
"        for action in self.p['message']['parts'][0]['text'].split(';'):\n"
"            first, _, rest = action.partition(':')\n"
"            if first.isdigit() or first in ('new', 'again'):\n"
"                if first not in (str(self.p['attempt']), 'again' if self.p['isResumed'] else 'new'): continue\n"
"                action = rest\n"
"            word, _, arg = action.strip().partition(' ')\n"
"            if self.act(word, arg): return\n"
"            if self.canceled.is_set() and word != 'deaf': return self.end(result=dict(status='cancelled'))\n"
"        self.end(result=dict(status='completed'))\n"
"    def act(self, word, arg):\n"
"        if word == 'say': self.text(arg)\n"
"        elif word == 'part': self.text(arg, last=False)\n"
"        elif word == 'many':\n"
"            n, size = map(int, arg.split())\n"
"            for i in range(n): self.text('x' * size, append=i > 0, last=i == n - 1)\n"
"        elif word == 'show': self.text(json.dumps(self.p.get(arg)))\n"
"        elif word == 'ask': self.emit({'statusUpdate': {'status': {'state': 'TASK_STATE_INPUT_REQUIRED', 'message': {'role': 'ROLE_AGENT', 'parts': [{'text': arg}]}}}})\n"
"        elif word == 'event': self.emit(json.loads(arg))\n"
"        elif word == 'type': self.emit({}, type=arg)\n"
"        elif word == 'wait': self.canceled.wait(60)\n"
"        elif word == 'sleep': time.sleep(float(arg))\n"
"        elif word == 'input':\n"
"            while not self.inbox and not self.canceled.is_set(): time.sleep(0.005)\n"
"            self.text(self.inbox.pop(0) if self.inbox else '', id=arg or 'a')\n"
"        elif word == 'deaf': time.sleep(30)\n"
"        elif word == 'block': exec('t = time.monotonic()\\nwith lock:\\n  while time.monotonic() < t + ' + arg + ': pass')\n"
"        elif word == 'die': os._exit(int(arg or 3))\n"
"        elif word == 'kill': os.kill(os.getpid(), 9)\n"
"        elif word == 'close': c.shutdown(socket.SHUT_WR); time.sleep(60)\n"
"        elif word == 'garbage': line(b'this is not JSON')\n"
"        elif word == 'list': line(b'[]')\n"
"        elif word == 'long': line(b'{\"x\":\"' + b'x' * (9 << 20) + b'\"}')\n"
"        elif word == 'seq': self.seq += 3; self.text(arg)\n"
"        elif word == 'unknown': send(method='event', params=dict(run='r999999', seq=0, type='a2a', data={})); send(id=999999, result={})\n"
"        elif word == 'log': send(method='log', params=dict(run=self.p['run'], level='info', text=arg))\n"
"        elif word == 'print': print(arg, flush=True)\n"
"        elif word == 'errors': print(arg, file=sys.stderr, flush=True)\n"
"        elif word == 'journal': self.text(json.dumps(ask('journal/put', dict(run=self.p['run'], text=arg))), id='j')\n"
"        elif word == 'call': self.text(json.dumps(ask(arg, dict(run=self.p['run']))), id='c')\n"
"        elif word == 'status': self.end(result=dict(status=arg)); return True\n"
"        elif word == 'error': self.end(error=dict(code=int(arg), message='secret ' + arg, data=dict(type='X', traceback='Traceback: line 1'))); return True\n"
"        elif word == 'nothing': return True\n"
"if how == 'exit': sys.exit(7)\n"
"if how == 'print': print('hello from the worker', flush=True)\n"
"for data in c.makefile('rb'):\n"
"    m = json.loads(data)\n"
"    if 'method' not in m:\n"
"        done = waiting.pop(m['id']); done.answer = m.get('result', m.get('error')); done.set(); continue\n"
"    method, p = m['method'], m.get('params', {})\n"
"    if method == 'initialize':\n"
"        if how == 'silent': continue\n"
"        if how == 'broken': send(id=m['id'], error=dict(code=-32004, message='no module named x', data=dict(traceback='Traceback one\\nTraceback two'))); continue\n"
"        if how == 'version': send(id=m['id'], result=dict(protocolVersion=2)); continue\n"
"        if how == 'slow': time.sleep(0.5)\n"
"        send(id=m['id'], result=dict(protocolVersion=1, worker=dict(name='test', lang='python', version='1'), maxRuns=int(how) if how.isdigit() else 64,\n"
"             agents=[dict(id=p['agent'], kind='graph' if how == 'graph' else 'events')], capabilities=dict(cancel=True, input=how != 'noinput')))\n"
"    elif method == 'run':\n"
"        run = runs[p['run']] = Run(m['id'], p)\n"
"        run.start()\n"
"    elif method == 'cancel': runs[p['run']].canceled.set()\n"
"    elif method == 'input': runs[p['run']].inbox.append(p['message']['parts'][0]['text'])\n"
"    elif method == 'state': send(id=m['id'], result=dict(exists=True, thread=p['thread'])) if how != 'mute' else None\n"
"    elif 'id' in m: send(id=m['id'], result={})\n";
/* clang-format on */

static char worker_path[] = "/tmp/dragoman-worker-XXXXXX";

static inline int worker_write_script(void **state)
{
    int fd = mkstemp(worker_path);
    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, worker_script, sizeof worker_script - 1), sizeof worker_script - 1);
    close(fd);
    return 0;
}

static inline int worker_remove_script(void **state)
{
    (void)state;
    return unlink(worker_path);
}

/* The operator's log. */
struct worker_lines {
    pthread_mutex_t lock;
    dgm_buf text;
};

static inline void worker_on_log(void *user, dgm_str agent, bool is_fault, dgm_str line)
{
    struct worker_lines *l = user;
    (void)agent;
    pthread_mutex_lock(&l->lock);
    dgm_buf_printf(&l->text, "%s%.*s\n", is_fault ? "! " : "", DGM_P(line));
    pthread_mutex_unlock(&l->lock);
}

static inline bool worker_logged(struct worker_lines *l, const char *what)
{
    pthread_mutex_lock(&l->lock);
    bool has = fake_has(&l->text, what);
    pthread_mutex_unlock(&l->lock);
    return has;
}

/* Within 20 s. */
static inline void worker_wait_log(struct worker_lines *l, const char *what)
{
    for (int i = 0; i < 2000 && !worker_logged(l, what); i++)
        usleep(10000);
    if (!worker_logged(l, what)) {
        print_error("\"%s\" is not in the log: %.*s\n", what, DGM_P(dgm_buf_str(&l->text)));
        fail();
    }
}
