#!/usr/bin/env python3
"""An agent for tests: returns its input, or does what the last text asks for.

what   all that it reads, as JSON: message, metadata, acceptedOutputModes, state of the task
json   data, and no text          nothing, credentials   waits, without a word
wait N      says N words, and then no more
call NAME   asks its caller to run the tool NAME
[...]       a JSON list of parts: an artifact of them; of events: those
"""
import json
import signal
import sys


def status(state, *parts, **more):
    message = {'message': {'role': 'ROLE_AGENT', 'parts': list(parts)}} if parts else {}
    print(json.dumps({'statusUpdate': {'status': {'state': f'TASK_STATE_{state}', **message}, **more}}), flush=True)


def artifact(*parts, id='made', **more):
    print(json.dumps({'artifactUpdate': {'artifact': {'artifactId': id, 'parts': list(parts)}, **more}}), flush=True)


run = json.loads(sys.stdin.readline())
texts = [p['text'] for p in run['message']['parts'] if 'text' in p]
word, _, rest = (texts[-1] if texts else 'what').partition(' ')
if word == 'json':
    artifact({'data': {'city': 'Oakland'}}, lastChunk=True)
    status('COMPLETED')
elif word in ('nothing', 'credentials') and not run['task']:
    status('INPUT_REQUIRED' if word == 'nothing' else 'AUTH_REQUIRED')
elif word == 'wait':
    for n in range(int(rest)):
        artifact({'text': f'{n} '}, append=n > 0)
    signal.pause()
elif word == 'call':
    status('INPUT_REQUIRED', {'data': {'tool_calls': [{'call_id': f"call_{run['taskId']}", 'name': rest, 'arguments': {}}]}})
elif word.startswith('['):
    things = json.loads(texts[-1])
    if any(k.endswith('Update') or k in ('task', 'message') for k in things[0]):
        print(*map(json.dumps, things), sep='\n', flush=True)
    else:
        artifact(*things, lastChunk=True)
        status('COMPLETED')
else:
    probe = {k: run[k] for k in ('message', 'history', 'metadata', 'acceptedOutputModes', 'contextId')}
    probe['state'] = (run['task'] or {}).get('status', {}).get('state')
    status('COMPLETED', {'text': json.dumps(probe, ensure_ascii=False)})
