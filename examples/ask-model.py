# Asks a model from inside a sandbox, with nothing but the standard library:
#   airlock run --model airlock/demo examples/ask-model.py
import json, os, sys, urllib.error, urllib.request


def ask(model):
    """The text of the model, or the error that the door answered, on one line."""
    url = os.environ['OPENAI_BASE_URL'] + '/chat/completions'
    body = {'model': model, 'max_tokens': 200, 'messages': [{'role': 'user', 'content': 'Say hello.'}]}
    headers = {'authorization': 'Bearer ' + os.environ['OPENAI_API_KEY'], 'content-type': 'application/json'}
    try:
        answer = json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)))
        return answer['choices'][0]['message']['content'], None
    except urllib.error.HTTPError as error:
        return None, f"{error.code}: {json.load(error)['error']['message']}"
    except urllib.error.URLError as error:
        return None, f'The door of models does not answer: {error.reason}'


if 'OPENAI_BASE_URL' in os.environ:
    text, problem = ask(sys.argv[1] if len(sys.argv) > 1 else 'airlock/demo')
else:
    text, problem = None, 'This sandbox has no model. Type: airlock run --model airlock/demo examples/ask-model.py'
if problem:
    sys.exit(problem)
print(text)
