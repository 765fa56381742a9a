# An agent program of your own, with nothing but the standard library (docs/runs.md):
#   airlock catalog put --model airlock/demo sandbox:haiku examples/haiku-agent.py
#   airlock ask sandbox:haiku "What is a cgroup?"
import json, os, time, urllib.request

began = time.monotonic()
with open('/workspace/.airlock/messages.json') as file:
    messages = [{'role': 'system', 'content': 'Answer in one haiku.'}, *json.load(file)]
print('asking', os.environ['AIRLOCK_MODEL'])  # To the log of the run: airlock agent-run logs

body = json.dumps({'model': os.environ['AIRLOCK_MODEL'], 'messages': messages, 'max_completion_tokens': 200}).encode()
url = os.environ['OPENAI_BASE_URL'] + '/chat/completions'
answer = json.load(urllib.request.urlopen(urllib.request.Request(url, body, {'content-type': 'application/json'})))
text = answer['choices'][0]['message']['content']

with os.fdopen(int(os.environ['AIRLOCK_EVENTS_FD']), 'w') as events:
    meta = {'durationMs': round((time.monotonic() - began) * 1000), 'error': None}
    events.write(json.dumps({'type': 'result', 'payloads': [{'text': text}], 'meta': meta}) + '\n')
