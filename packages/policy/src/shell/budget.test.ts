import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { LEAST_WORK, workFor } from './budget.ts'
import { Cursor } from './cursor.ts'
import { readArgv, readProgram, readScript } from './read.ts'

/** The longest that is read. */
const LONGEST = 128 * 1024
/** How often the text may be looked at, for each step that is counted. */
const LOOKS_PER_STEP = 16

const repeated = (piece: string) => piece.repeat(LONGEST / piece.length)
const numbered = (count: number, line: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => line(at)).join('')

const PIECES = [
  'a=b;',
  '"$x"',
  "echo 'a' | ",
  'a|',
  'a;',
  '{a,b}',
  '{',
  '((',
  '$((',
  '(',
  '<<E ',
  '`a`',
  'a=( b )',
  '@(',
  '*',
  '\\a',
  "'a'",

  'f(){ a;};f;',
  'cd a/../b;',
  'rm /e*;',
  'x=$(a);',
  'export a=b;',
  'find . -exec ',
  'a<b>c ',
  '[[ a ]];',
  '#\n',
  ';\n',
  'while a;do b;done;',
  'case x in a) b;; esac;',
  'sh -c a;',
  'eval a;',
  'env ',
  '${x:-',
  '$x',
  '\n',
  'a &',
]

const SCRIPTS: readonly (readonly [string, string])[] = [
  ...PIECES.map((piece) => [piece, repeated(piece)] as const),
  ['variables and subshells', numbered(1500, (at) => `v${at}=1;(a);`)],
  ['variables and ways', numbered(1500, (at) => `v${at}=1 || a;`)],
  ['variables for everybody', numbered(1500, (at) => `export v${at}=1;a;`)],
  ['a long text in many commands', `x=${'a'.repeat(10_000)};${'a $x;'.repeat(2000)}`],
  ['many words in many commands', `set -- ${'a '.repeat(1000)};${'a "$@";'.repeat(2000)}`],
  ['a long text that is split', `x="${'a '.repeat(500)}";${'a $x;'.repeat(2000)}`],
  ['a long text that is trimmed', `x=${'a'.repeat(250)};${'a ${x%%*b*c*d*e*f};'.repeat(2000)}`],
  ['a long text through filters', `x=${'a'.repeat(60_000)};${'echo $x|rev|tr a b|rev;'.repeat(1000)}`],
  ['texts that double', `x=aaaaaaaaaa; ${'x=$x$x; '.repeat(64)}a $x`],
  ['pipes of many programs', numbered(2000, (at) => `p${at}|`)],
  ['loops in loops', `${'for i in 1 2 3 4 5 6 7 8; do '.repeat(8)}a${'; done'.repeat(8)}`],
  ['a long directory', `cd ${'a/'.repeat(10_000)};${'cat b c d;'.repeat(2000)}`],
  ['long globs', `rm /${'*a'.repeat(100)};`.repeat(600)],
]

describe('the work of a reading', () => {
  let spies: readonly { readonly mock: { readonly calls: readonly unknown[] }; mockClear(): unknown }[] = []
  const looks = () => spies.reduce((sum, { mock }) => sum + mock.calls.length, 0)

  beforeEach(() => {
    spies = (['peek', 'take', 'eat', 'startsWith'] as const).map((name) => vi.spyOn(Cursor.prototype, name))
  })

  afterEach(() => void vi.restoreAllMocks())

  it.each(SCRIPTS)('is bounded, and counted where it is done: %j', (_, script) => {
    const { work, invocations } = readScript(script, { env: [] })
    expect(looks()).toBeLessThanOrEqual(LOOKS_PER_STEP * workFor(script.length, 'script'))
    if (work > workFor(script.length, 'script'))
      expect(invocations.flatMap(({ traits }) => traits)).toContain('unreadable')
  })

  it('is bounded whatever is repeated', () => {
    const piece = fc.array(fc.constantFrom(...PIECES, 'x=', '"', ' ', 'do ', 'done;', ')', '}', '/'), {
      minLength: 1,
      maxLength: 6,
    })
    fc.assert(
      fc.property(piece, (pieces) => {
        for (const spy of spies) spy.mockClear()
        const script = repeated(pieces.join('')).slice(0, LONGEST / 8)
        readScript(script, { env: [] })
        expect(looks()).toBeLessThanOrEqual(LOOKS_PER_STEP * workFor(script.length, 'script'))
      }),
      { numRuns: 50 },
    )
  })
})

describe('the steps that are counted', () => {
  const workOf = (script: string) => readScript(script, { env: [] }).work

  it.each(['a=b;', '"$x"', "echo 'a'|", 'a;', 'a b c;', 'f(){ a;};', 'export a=b;', 'a > b;', '`a`;'])(
    'grow with the length and not with its square: %j',
    (piece) => {
      const [once, twice] = [workOf(piece.repeat(60)), workOf(piece.repeat(120))]
      expect(twice).toBeLessThanOrEqual(2.1 * once)
      expect(twice).toBeLessThan(LEAST_WORK)
    },
  )

  it('are a few for an everyday line', () => {
    expect(workOf('cd app && npm ci && npm test -- --coverage | tee test.log')).toBeLessThan(LEAST_WORK / 50)
  })

  it('suffice for what is plain and long', () => {
    const plain = [
      readScript(repeated('echo hello world > out.txt\n'), { env: [] }),
      readScript(`cat > data.csv <<'E'\n${'a,b,1,2\n'.repeat(16_000)}E\n`, { env: [] }),
      readProgram('python', repeated('total = compute(rows, key="name") + 1.25  # as before\n')),
      readProgram('python', `data = [${'1.25, '.repeat(21_000)}]\n`),
      readProgram('python', `data = {${numbered(4000, (at) => `"key ${at}": "value ${at}", `)}}\n`),
      readProgram('node', repeated('export const f = (a, b) => g(a, "x", [b])\n')),
    ].map(({ invocations }) => invocations.flatMap(({ traits }) => traits))
    expect(plain.flat()).toEqual([])
  })

  it('bound an argv and code too, and what is beyond them is not readable', () => {
    const traits = [
      readArgv(['rm', ...Array.from({ length: 60_000 }, () => '/e*')], { cwd: '/', env: [] }),
      readArgv(['find', ...Array.from({ length: 60_000 }, () => '-exec')], { cwd: '/', env: [] }),
      readProgram('python', 'f(g('.repeat(60_000)),
      readProgram('node', '"a"+'.repeat(60_000)),
    ].map(({ invocations }) => invocations.flatMap((invocation) => invocation.traits))
    expect(traits).toEqual([['unreadable'], ['unreadable'], ['unreadable'], ['unreadable']])
  })
})
