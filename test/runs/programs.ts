/** Agent programs for tests, in Python. */
export const PRELUDE = `import json, os, sys, time
channel = os.fdopen(int(os.environ['AIRLOCK_EVENTS_FD']), 'wb', buffering=0)
messages = json.load(open('/workspace/.airlock/messages.json'))
def raw(data):
    while data: data = data[channel.write(data):]
def say(**event): raw((json.dumps(event) + '\\n').encode())
def delta(text): say(type='text_delta', delta=text)
def result(text, error=None): say(type='result', payloads=[{'text': text}], meta={'durationMs': 1, 'error': error})
`

/** What each program does after the prelude, by the name after `sandbox:`. */
export const PROGRAMS = {
  echo: `delta('You said: ')
delta(messages[-1]['content'])
result('You said: ' + messages[-1]['content'])`,
  whole: `result('all at once')`,
  prints: `print('{"type": "text_delta", "delta": "forged"}', flush=True)
sys.stderr.write('x' * (100 << 20))
sys.stdout.write('y' * (100 << 20)); sys.stdout.flush()
delta('true'); result('true')`,
  tools: `say(type='status', phase='thinking', label='plan')
say(type='tool_call_start', toolCallId='a', toolName='add', args={'x': 1, 'y': 2})
say(type='tool_call_result', toolCallId='a', result=3)
delta('3'); result('3')`,
  garbage: `delta('before'); raw(b'\\xff\\xfe not json\\n'); delta('after'); time.sleep(600)`,
  strange: `say(type='usage_report', costUsd=0); time.sleep(600)`,
  orphan: `say(type='tool_call_result', toolCallId='nobody', result=1); time.sleep(600)`,
  twice: `result('one'); result('two'); time.sleep(600)`,
  other: `delta('streamed'); result('another'); time.sleep(600)`,
  flood: `line = json.dumps({'type': 'text_delta', 'delta': 'z' * 1000}).encode() + b'\\n'
for _ in range(100 << 10): raw(line)
result('never')`,
  long: `raw(b'{' + b'a' * (100 << 20)); result('never')`,
  silent: `pass`,
  crash: `delta('half'); sys.exit(3)`,
  refuses: `delta('half'); result('half', {'code': 'mine', 'message': 'I will not.'})`,
  sleeps: `delta('begun'); time.sleep(600)`,
  deaf: `import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)
delta('begun'); time.sleep(600)`,
  polite: `import signal
def stop(*_): result('begun, and ended in time'); os._exit(0)
signal.signal(signal.SIGTERM, stop)
delta('begun'); time.sleep(600)`,
  slow: `for n in range(40): delta('%d ' % n); time.sleep(0.1)
result(''.join('%d ' % n for n in range(40)))`,
  context: `result(open('/workspace/.airlock/context.json').read())`,
} as const satisfies Readonly<Record<string, string>>
export type ProgramName = keyof typeof PROGRAMS
