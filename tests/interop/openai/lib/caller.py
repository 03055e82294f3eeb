#!/usr/bin/env python3
"""An agent for tests: asks its caller to run two tools at the same time, then says what they gave."""
import json
import sys

run = json.loads(sys.stdin.readline())
results = [r for p in run['message']['parts'] for r in p.get('data', {}).get('tool_results', [])]
if results:
    # by the id of the call, so that it shows whether each result came back to its own call
    said = ', '.join(f"{r['call_id'].rsplit('_', 1)[1]}={r['output']}" for r in sorted(results, key=lambda r: r['call_id']))
    event = {'state': 'TASK_STATE_COMPLETED', 'message': {'role': 'ROLE_AGENT', 'parts': [{'text': f'The tools say: {said}'}]}}
else:
    calls = [{'call_id': f"call_{run['taskId']}_{n}", 'name': name, 'arguments': arguments}
             for n, (name, arguments) in enumerate([('get_weather', {'city': 'Oslo'}), ('get_time', {'zone': 'CET'})], 1)]
    event = {'state': 'TASK_STATE_INPUT_REQUIRED', 'message': {'role': 'ROLE_AGENT', 'parts': [{'data': {'tool_calls': calls}}]}}
print(json.dumps({'statusUpdate': {'status': event}}))
