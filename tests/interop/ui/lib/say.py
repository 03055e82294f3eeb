#!/usr/bin/env python3
"""An agent that emits its message: each line is an event to emit, `wait FILE` waits for the file, and
any other line is text. The result of a client's tool is a message, too."""
import json
import os
import sys
import time


def told(message):
    for part in message['parts']:
        for result in part.get('data', {}).get('tool_results', []):
            yield result['output'] if isinstance(result['output'], str) else f"got {json.dumps(result['output'])}"
        if 'text' in part:
            yield part['text']


for line in '\n'.join(told(json.loads(sys.stdin.readline())['message'])).splitlines():
    if line.startswith('wait '):
        while not os.path.exists(line[5:]):
            time.sleep(0.02)
    elif line.startswith('{'):
        print(line, flush=True)
    else:
        print(json.dumps({'artifactUpdate': {'artifact': {'artifactId': 'a', 'parts': [{'text': line}]}, 'append': True}}), flush=True)
