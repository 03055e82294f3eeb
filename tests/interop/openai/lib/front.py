"""A live server with one more agent, and chat completions asked for by hand. `probe`: see probe.py."""

import http.client
import json

from live import AGENTS, HERE, live

PROBE = {'id': 'probe', 'type': 'exec', 'settings': {'command': [str(HERE / 'probe.py')]}}


def front(**more):
    return live(**{'agents': AGENTS + [PROBE], **more})


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.text = response.status, response.headers, response.read().decode()
        is_json = response.headers.get('content-type', '').startswith('application/json')
        self.body = json.loads(self.text) if is_json else None

    @property
    def content(self):
        return self.body['choices'][0]['message']['content']

    @property
    def error(self):
        return self.body['error']

    @property
    def chunks(self):
        """The frames of a stream, without its end."""
        frames = self.text.split('\n\n')
        assert frames[-2:] == ['data: [DONE]', ''], frames[-2:]
        return [json.loads(f.removeprefix('data: ')) for f in frames[:-2]]

    def said(self, member='content'):
        return ''.join(c['choices'][0]['delta'].get(member) or '' for c in self.chunks if c.get('choices'))


def call(server, method, path, body=None, headers=None, raw=None):
    connection = http.client.HTTPConnection(*server.address, timeout=60)
    data = raw if raw is not None else None if body is None else json.dumps(body)
    send = {'Content-Type': 'application/json'} if data is not None else {}
    connection.request(method, path, data, {**send, **(headers or {})})
    answer = Answer(connection.getresponse())
    connection.close()
    return answer


def chat(server, messages, model='probe', headers=None, **more):
    messages = [{'role': 'user', 'content': messages}] if isinstance(messages, str) else messages
    return call(server, 'POST', '/v1/chat/completions', {'model': model, 'messages': messages, **more}, headers)
