# Asks a model from inside a sandbox, with nothing but the standard library:
#   airlock run --model airlock/demo examples/ask-model.py
import json, os, sys, urllib.error, urllib.request

model = sys.argv[1] if len(sys.argv) > 1 else 'airlock/demo'
body = {'model': model, 'max_tokens': 200, 'messages': [{'role': 'user', 'content': 'Say hello.'}]}
headers = {'authorization': 'Bearer ' + os.environ['OPENAI_API_KEY'], 'content-type': 'application/json'}
request = urllib.request.Request(os.environ['OPENAI_BASE_URL'] + '/chat/completions', json.dumps(body).encode(), headers)
try:
    answer = json.load(urllib.request.urlopen(request))
    print(answer['choices'][0]['message']['content'])
except urllib.error.HTTPError as error:
    sys.exit(error.read().decode())
