import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readProgram } from '../shell/read.ts'

const started = (runtime: string, code: string) => readProgram(runtime, code).invocations.map(({ text }) => text)
const calls = (runtime: string, code: string) => readProgram(runtime, code).codes.flatMap((of) => of.calls)

describe('programs that code starts by literal lines', () => {
  it.each([
    ['python', "import os\nos.system('a b')"],
    ['python', "os.system('a ' + 'b')"],
    ['python', '__import__("os").system("a b")'],
    ['python', "subprocess.run(['a', 'b'], check=True, cwd='/x')"],
    ['python', "subprocess.Popen('a b', shell=True)"],
    ['python', "os.execvp('a', ['b'])"],
    ['python', 'os.system("""a b""")'],
    ['python', 'exec(\'os.system("a b")\')'],
    ['node', "require('child_process').execSync('a b')"],
    ['node', 'cp.exec(`a b`)'],
    ['node', "spawn('a', ['b'])"],
    ['perl', 'system("a b");'],
    ['perl', "system 'a', 'b'"],
    ['perl', '`a b`'],
    ['perl', 'qx(a b)'],
    ['ruby', "system('a b')"],
    ['ruby', '`a b`'],
    ['ruby', '%x(a b)'],
    ['php', 'shell_exec("a b");'],
  ])('%s: %s', (runtime, code) => {
    expect(started(runtime, code)).toEqual(['a b'])
  })

  it('are found behind thousands of other calls', () => {
    expect(started('python', `${'print(1)\n'.repeat(5000)}os.system('a b')`)).toEqual(['a b'])
  })

  it.each([
    ['python', "# os.system('a b')"],
    ['python', 'print("os.system(\'a b\')")'],
    ['python', 'os.system(line)'],
    ['node', "// exec('a b')\n/* exec('a b') */"],
    ['node', "console.log('a b')"],
  ])('are none in %s: %s', (runtime, code) => {
    expect(started(runtime, code)).toEqual([])
  })
})

describe('calls', () => {
  it('have their names, their strings and what is called among their arguments', () => {
    expect(calls('python', "exec(base64.b64decode('eA==').decode())")).toEqual([
      expect.objectContaining({ name: 'base64.b64decode', strings: ['eA=='] }),
      expect.objectContaining({ name: 'decode', strings: [] }),
      expect.objectContaining({ name: 'exec', strings: ['eA=='], within: ['base64.b64decode', '.decode'] }),
    ])
  })

  it('leave out what is put into a string when it runs', () => {
    expect(calls('python', "open(f'/etc/{name}')").map(({ strings }) => strings)).toEqual([['/etc/\uFFFF']])
    expect(calls('node', 'open(`/etc/${name}`)').map(({ strings }) => strings)).toEqual([['/etc/\uFFFF']])
  })
})

describe('whatever is written', () => {
  it('is read: nothing is thrown, and there is an answer', () => {
    const piece = fc.constantFrom(
      ...Array.from('ab.()[]{},;:=+#/*\'"`\\\n $'),
      '"""',
      'exec(',
      "system('a b')",
      'f"',
      '${',
      '#{',
      'qx(',
    )
    const code = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(''))
    fc.assert(
      fc.property(fc.constantFrom('python', 'node', 'perl', 'ruby', 'php', 'other'), code, (runtime, text) => {
        expect(readProgram(runtime, text).codes[0]).toMatchObject({ runtime, code: text })
      }),
      { numRuns: 3000 },
    )
  })

  it('is looked at only so far', () => {
    const { codes, invocations } = readProgram('python', 'x = 1\n'.repeat(200_000))
    expect(codes[0]?.code).toHaveLength(128 * 1024)
    expect(invocations.map(({ traits }) => traits)).toEqual([['unreadable']])
  })
})
