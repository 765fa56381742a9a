import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readArgv, readScript } from './read.ts'

/** More than one step can note; a reader that went on without end would be far beyond it. */
const MAX_INVOCATIONS = 10_000

const PIECES = [
  ...Array.from('ab1/~.*?-=+:,;&|<>(){}[]!#$\\\'"` \n\t'),
  '$(',
  '$((',
  '${',
  '<<',
  '<(',
  '&&',
  '||',
  ';;',
  'if ',
  'then ',
  'fi',
  'for x in ',
  'do ',
  'done',
  'while ',
  'case x in ',
  'esac',
  'f() ',
  'eval ',
  'sh -c ',
  'xargs ',
  'find . -exec ',
  '$x',
  'x=',
  '\uFFFF',
  'é',
]
const script = fc.array(fc.constantFrom(...PIECES), { maxLength: 60 }).map((pieces) => pieces.join(''))

describe('whatever is written', () => {
  it('is read: nothing is thrown, and there is an answer', () => {
    fc.assert(
      fc.property(script, (text) => {
        expect(readScript(text, { env: [] }).invocations.length).toBeLessThan(MAX_INVOCATIONS)
      }),
      { numRuns: 5000 },
    )
  })

  it('is read as an argv too', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(script, fc.string()), { maxLength: 5 }), (argv) => {
        expect(readArgv(['sh', '-c', ...argv], { cwd: '/', env: [] }).invocations.length).toBeLessThan(MAX_INVOCATIONS)
        expect(readArgv(argv, { cwd: '', env: ['X'] }).invocations.length).toBeLessThan(MAX_INVOCATIONS)
      }),
      { numRuns: 1000 },
    )
  })

  const HUGE = 100_000
  it.each([
    '$((',
    '((',
    '$(',
    '(',
    '{',
    '{a,b}',
    '"',
    "'",
    '`',
    '\\',
    'a|',
    'a;',
    '<<E ',
    '${',
    '${x:-',
    'f(){ ',
    '<(',
    '$',
    'a ',
    'eval ',
    'env ',
    'xargs ',
    'find . -exec ',
    'case x in a) ',
    'if a; then ',
    'while a; do ',
    '$(a) ',
    'cd ..;',
    '~/..',
  ])('is read when it is %j for very long', (piece) => {
    const long = piece.repeat(HUGE / piece.length)
    expect(readScript(long, { env: [] }).invocations.length).toBeLessThan(MAX_INVOCATIONS)
    expect(readScript(`rm ${long}`, { env: [] }).invocations.length).toBeLessThan(MAX_INVOCATIONS)
  })

  it.each([
    ['loops in loops', `${'for i in 1 2 3 4 5 6 7 8; do '.repeat(8)}a${'; done'.repeat(8)}`],
    ['texts that double', `x=aaaaaaaaaa; ${'x=$x$x; '.repeat(64)}a $x`],
    ['texts that run themselves', `x='eval "$x$x"'; eval "$x"`],
    ['functions that call each other', 'f(){ g; g; }; g(){ h; h; }; h(){ i; i; }; i(){ f; f; }; f'],
    ['a text that is too long', `a ${'b'.repeat(200_000)}`],
    ['more words than there are', `a {1..9}{1..9}{1..9}{1..9}`],
  ])('is not followed further than it makes sense: %s', (_, text) => {
    expect(readScript(text, { env: [] }).invocations.length).toBeLessThan(MAX_INVOCATIONS)
  })

  it.each([
    ['loops in loops', `${'for i in 1 2 3 4 5 6 7 8; do '.repeat(8)}a${'; done'.repeat(8)}`],
    ['a text that is too long', `a ${'b'.repeat(200_000)}`],
    ['too many braces', `a ${'{'.repeat(65)}${'}'.repeat(65)}`],
    ['too deep', `${'$('.repeat(100)}a${')'.repeat(100)}`],
    ['more words than there are', 'a {1..9}{1..9}{1..9}{1..9}'],
  ])('is not readable beyond the bounds: %s', (_, text) => {
    expect(readScript(text, { env: [] }).invocations.flatMap(({ traits }) => traits)).toContain('unreadable')
  })
})
