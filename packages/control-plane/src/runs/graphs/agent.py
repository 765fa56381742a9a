"""sandbox:agent: messages in, one answer of a model out, streamed. Nothing but the standard library.

It reads /workspace/.airlock/messages.json, asks the model at the door of this sandbox, and writes its events as JSON lines to the
file descriptor that AIRLOCK_EVENTS_FD names. What it prints goes to the log of the run. Copy it to begin an agent of your own.
"""
import http.client, json, os, signal, sys, time, urllib.parse

began = time.monotonic()
events = os.fdopen(int(os.environ['AIRLOCK_EVENTS_FD']), 'w', encoding='utf-8')


class Refused(Exception):
    """The door or the provider said no: its code and its words."""


def say(**event):
    events.write(json.dumps(event) + '\n')
    events.flush()


def finish(text, error=None):
    """The one result of the run, and its last line."""
    meta = {'durationMs': round((time.monotonic() - began) * 1000), 'error': error}
    say(type='result', payloads=[{'text': text}], meta=meta)


def stream(messages, model):
    """The pieces of the answer, as they come."""
    door = urllib.parse.urlsplit(os.environ['OPENAI_BASE_URL'])
    body = json.dumps({'model': model, 'messages': messages, 'stream': True, 'max_completion_tokens': 4000})
    connection = http.client.HTTPConnection(door.netloc)
    connection.request('POST', door.path + '/chat/completions', body.encode(), {'content-type': 'application/json'})
    response = connection.getresponse()
    if response.status != 200:
        error = json.loads(response.read(65536)).get('error') or {}
        raise Refused(error.get('code') or 'llm_error', error.get('message') or f'HTTP {response.status}')
    for line in response:
        data = line.decode('utf-8').removeprefix('data:').strip()
        if not line.startswith(b'data:'):
            continue
        if data == '[DONE]':
            return
        chunk = json.loads(data)
        if 'error' in chunk:
            raise Refused(chunk['error'].get('code') or 'llm_error', chunk['error'].get('message') or 'The answer broke off.')
        for choice in chunk.get('choices') or []:
            piece = (choice.get('delta') or {}).get('content')
            if piece:
                yield piece
    raise Refused('upstream_broken', 'The answer broke off.')


def main():
    # Shortly before the timeout of the run: what there is becomes the end of the program.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit('asked to end'))
    with open('/workspace/.airlock/messages.json', encoding='utf-8') as file:
        messages = json.load(file)
    say(type='status', phase='thinking')
    text = ''
    try:
        for piece in stream(messages, os.environ['AIRLOCK_MODEL']):
            text += piece
            say(type='text_delta', delta=piece)
    except Refused as refused:
        code, message = refused.args
        return finish(text, {'code': str(code)[:64], 'message': str(message)[:2000]})
    finish(text)


main()
