import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TestGuest } from '../session/testing/test-guest.ts'
import type { FinishedStep, TestSession } from '../session/testing/test-host.ts'

const isRoot = process.getuid?.() === 0
const plain = { stdout: '', stderr: '', rich: [], exitCode: 0, timedOut: false, restarted: false, truncated: false }
const PNG = 'iVBORw0KGgo='

describe.skipIf(!isRoot)('a Python session', () => {
  let guest: TestGuest
  let session: TestSession
  beforeAll(async () => {
    guest = await TestGuest.start()
    session = await guest.open('python', { FROM_SESSION: 'yes' })
  })
  afterAll(async () => {
    await guest.stop()
  })
  const run = async (lines: readonly string[], options: { readonly stdin?: string } = {}) =>
    await session.run(lines.join('\n'), options)

  it('shows the value of the last expression, unless it is None or ends with a semicolon', async () => {
    expect(await run(['a = 1', '[a, "b"]'])).toEqual({ ...plain, rich: [result({ 'text/plain': "[1, 'b']" })] })
    expect(await run(['print(_)'])).toEqual({ ...plain, stdout: "[1, 'b']\n" })
    expect(await run(['None'])).toEqual(plain)
    expect(await run(['5;'])).toEqual(plain)
    expect(await run([''])).toEqual(plain)
    expect(await run(['# nothing'])).toEqual(plain)
  })

  it('shows every form that an object has', async () => {
    const finished = await run([
      'class Rich:',
      '    def __repr__(self): return "rich"',
      '    def _repr_html_(self): return "<b>"',
      '    def _repr_markdown_(self): return "**"',
      '    def _repr_latex_(self): return "$x$"',
      '    def _repr_svg_(self): return "<svg/>"',
      '    def _repr_png_(self): return b"\\x89PNG\\r\\n\\x1a\\n"',
      '    def _repr_jpeg_(self): return (b"\\xff\\xd8", {"width": 1})',
      '    def _repr_json_(self): return {"a": [1, None]}',
      '    def _repr_mimebundle_(self, include=None, exclude=None): return {"application/x": "y", "bad": object()}',
      'Rich()',
    ])
    const data = {
      'text/plain': 'rich',
      'text/html': '<b>',
      'text/markdown': '**',
      'text/latex': '$x$',
      'image/svg+xml': '<svg/>',
      'image/png': PNG,
      'image/jpeg': '/9g=',
      'application/json': { a: [1, null] },
      'application/x': 'y',
    }
    expect(finished).toEqual({ ...plain, rich: [result(data)] })
  })

  it('shows what it can of objects that resist', async () => {
    const finished = await run([
      'class Bad:',
      '    def __repr__(self): raise ValueError',
      '    def _repr_html_(self): 1 / 0',
      '    def _repr_json_(self): return float("nan")',
      '    def __getattr__(self, name): return lambda *a: "any"',
      'display(Bad, float("nan"))',
      'Bad()',
    ])
    expect(finished.rich).toEqual([
      shown({ 'text/plain': "<class '__main__.Bad'>" }),
      shown({ 'text/plain': 'nan' }),
      result({ 'text/plain': '<Bad whose repr() raised ValueError>' }),
    ])
    expect((await run(['"x" * 10**6'])).rich).toEqual([
      result({ 'text/plain': `'${'x'.repeat(256 * 1024 - 1)}... [1000002 characters]` }),
    ])
  })

  it('displays in the order of the text, and has the classes of IPython.display', async () => {
    writeFileSync(join(guest.work, 'dot.png'), Buffer.from(PNG, 'base64'))
    const { rich, exitCode } = await run([
      'from IPython.display import display, HTML, Markdown, JSON, SVG, Image, Latex, clear_output',
      'from IPython.core.display import HTML as H',
      'display(HTML("<i>"), Markdown("*"), JSON({"a": 1}), SVG("<svg/>"), Latex("$"), H("<u>"))',
      'display(Image("dot.png"), Image(b"\\xff\\xd8"), {"text/plain": "raw"})',
      'display({"text/plain": "raw"}, raw=True)',
    ])
    const named = (name: string, data: Readonly<Record<string, unknown>>) =>
      shown({ 'text/plain': `<${name} object>`, ...data })
    expect([exitCode, rich]).toEqual([
      0,
      [
        named('HTML', { 'text/html': '<i>' }),
        named('Markdown', { 'text/markdown': '*' }),
        named('JSON', { 'application/json': { a: 1 } }),
        named('SVG', { 'image/svg+xml': '<svg/>' }),
        named('Latex', { 'text/latex': '$' }),
        named('HTML', { 'text/html': '<u>' }),
        named('Image', { 'image/png': PNG }),
        named('Image', { 'image/jpeg': '/9g=' }),
        shown({ 'text/plain': "{'text/plain': 'raw'}" }),
        shown({ 'text/plain': 'raw' }),
      ],
    ])
  })

  it('awaits at the top level, and drops what a task of an earlier step says', async () => {
    const first = await run([
      'import asyncio',
      'async def late():',
      '    await asyncio.sleep(0.05)',
      '    print("late")',
      'await asyncio.sleep(0)',
      'task = asyncio.create_task(late())',
      'await asyncio.sleep(0, "value")',
    ])
    expect(first).toEqual({ ...plain, rich: [result({ 'text/plain': "'value'" })] })
    expect(await run(['await asyncio.sleep(0.2)', 'task.done()'])).toEqual({
      ...plain,
      rich: [result({ 'text/plain': 'True' })],
    })
    expect(await run(['asyncio.run(asyncio.sleep(0, 5))'])).toEqual({ ...plain, rich: [result({ 'text/plain': '5' })] })
  })

  it('says where it went wrong, without a frame of ours', async () => {
    const { rich, exitCode } = await run(['def f():', '    return 1 / 0', 'try:', '    f()', 'finally:', '    pass'])
    expect(exitCode).toBe(1)
    const { name, message, traceback } = errorOf(rich)
    expect([name, message]).toEqual(['ZeroDivisionError', 'division by zero'])
    expect(traceback.replaceAll(/^\s+[~^]+\n/gmu, '').replaceAll(/<step \d+>/gu, '<step>')).toBe(
      [
        'Traceback (most recent call last):',
        '  File "<step>", line 4, in <module>',
        '    f()',
        '  File "<step>", line 2, in f',
        '    return 1 / 0',
        'ZeroDivisionError: division by zero',
      ].join('\n'),
    )
  })

  it('shows the line of an earlier step, the caret of a syntax error, and the cause of an error', async () => {
    await run(['def earlier():', '    raise KeyError("k")'])
    expect(errorOf((await run(['earlier()'])).rich).traceback).toContain('    raise KeyError("k")')
    const syntax = errorOf((await run(['x = 1', 'y = = 2'])).rich)
    expect([syntax.name, syntax.message]).toEqual(['SyntaxError', expect.stringContaining('invalid syntax')])
    expect(syntax.traceback).toMatch(
      /^ {2}File "<step \d+>", line 2\n {4}y = = 2\n {8}\^\nSyntaxError: invalid syntax$/u,
    )
    const chained = await run(['try: earlier()', 'except KeyError as e: raise OSError("o") from e'])
    expect(errorOf(chained.rich).traceback).toContain('The above exception was the direct cause')
  })

  it('bounds what an error says, and keeps its beginning and its end', async () => {
    const { message, traceback } = errorOf((await run(['raise ValueError("a" * 10**6 + "ü" * 9 + "z")'])).rich)
    expect([Buffer.byteLength(message) <= 8192, Buffer.byteLength(traceback) <= 32_768]).toEqual([true, true])
    expect([message.slice(0, 3), message.slice(-3)]).toEqual(['aaa', 'üüz'])
  })

  it('ends the step and not the session when it exits', async () => {
    expect(await run(['import sys', 'sys.exit()'])).toEqual(plain)
    expect(await run(['exit(0)'])).toEqual(plain)
    const { rich, exitCode, restarted } = await run(['quit("enough")'])
    expect([exitCode, restarted, errorOf(rich).message]).toEqual([1, false, 'exit code enough'])
    expect(await run(['print(input())'], { stdin: 'still here' })).toEqual({ ...plain, stdout: 'still here\n' })
  })

  it('has the variables of the session always and those of the step for the step', async () => {
    const code =
      'import os, subprocess\nprint([os.environ.get(n) for n in ("FROM_SESSION", "A", "HOME")], flush=True)\nsubprocess.run("echo $A $HOME", shell=True)\nNone'
    const env = { A: 'ü', HOME: '/elsewhere' }
    expect((await session.run(code, { env })).stdout).toBe("['yes', 'ü', '/elsewhere']\nü /elsewhere\n")
    expect((await session.run(code)).stdout).toBe("['yes', None, '/tmp']\n/tmp\n")
  })

  it('is a program of its own to the code: __main__, modules of its directory, pickles and processes', async () => {
    mkdirSync(join(guest.work, 'package'))
    writeFileSync(join(guest.work, 'package', '__init__.py'), 'value = "from a file"\n')
    const { stdout, stderr } = await run([
      'import multiprocessing, pickle, sys, package, inspect',
      'class Point: x = 3',
      'def double(n): return n * 2',
      'print(__name__, sys.argv, package.value, pickle.loads(pickle.dumps(Point())).x)',
      'with multiprocessing.get_context("fork").Pool(2) as pool: print(pool.map(double, [1, 2]))',
      'print(inspect.getsource(double))',
      'import __main__; print(__main__.double is double, "Driver" in globals())',
    ])
    expect([stderr, stdout]).toEqual([
      '',
      "__main__ [''] from a file 3\n[2, 4]\ndef double(n): return n * 2\n\nTrue False\n",
    ])
  })

  it('gives the text of a thread to the step that started it while that runs', async () => {
    const { stdout, stderr } = await run([
      'import threading, logging',
      'def work():',
      '    print("from a thread")',
      '    logging.getLogger("x").warning("logged")',
      '    raise ValueError("in the thread")',
      't = threading.Thread(target=work); t.start(); t.join()',
    ])
    expect(stdout).toBe('from a thread\n')
    expect(stderr).toContain('logged\n')
    expect(stderr).toContain('ValueError: in the thread')
  })
})

function result(data: Readonly<Record<string, unknown>>): unknown {
  return { kind: 'result', data }
}

function shown(data: Readonly<Record<string, unknown>>): unknown {
  return { kind: 'display', data }
}

function errorOf(rich: FinishedStep['rich']): {
  readonly name: string
  readonly message: string
  readonly traceback: string
} {
  const line = rich.at(-1)
  const error: unknown = typeof line === 'object' && line !== null && 'error' in line ? line.error : undefined
  if (typeof error !== 'object' || error === null) throw new TypeError('there is no error')
  const { name, message, traceback } = error as Readonly<Record<string, unknown>>
  return { name: String(name), message: String(message), traceback: String(traceback) }
}
