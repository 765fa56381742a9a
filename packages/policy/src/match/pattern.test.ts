import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compilePattern, PatternError } from './pattern.ts'

describe('a pattern', () => {
  it.each([
    ['abc', 'xabcx', true],
    ['^abc$', 'xabc', false],
    ['a.c', 'a\nc', false],
    ['a*b', 'b', true],
    ['^a+b$', 'b', false],
    ['^colou?r$', 'color', true],
    ['^a{2,3}$', 'aaaa', false],
    ['^a{2,}$', 'aaaa', true],
    ['^[a-c]+$', 'abcabc', true],
    ['^[^a-c]+$', 'xyb', false],
    ['^(red|green) (car)?$', 'green ', true],
    [String.raw`\bsu\b`, 'tiramisu x', false],
    [String.raw`\bsu\b`, 'run su now', true],
    [String.raw`^\d+\s\w+\.$`, '12 ab_c.', true],
    [String.raw`[\d.-]x`, '-x', true],
  ])('%s in %j: %s', (source, text, expected) => {
    expect(compilePattern(source).matches(text)).toBe(expected)
  })

  it('matches what the expressions of JavaScript match', () => {
    const atom = fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', String.raw`\w`, '(?:ab|b)', '(a)')
    const single = fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', String.raw`\w`)
    const repeated = fc
      .tuple(single, fc.constantFrom('', '*', '+', '?', '{2}', '{1,2}', '{0,3}'))
      .map(([of, times]) => of + times)
    const source = fc
      .array(fc.oneof(atom, repeated), { maxLength: 5 })
      .chain((parts) => fc.constantFrom(parts.join(''), `^${parts.join('')}$`, `${parts.join('')}|ba`))
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 8 })
    fc.assert(
      fc.property(source, text, (of, input) => {
        expect(compilePattern(of).matches(input)).toBe(new RegExp(of, 'u').test(input))
      }),
      { numRuns: 1000 },
    )
  })

  it.each([
    '(a+)+$',
    '(a*)*b',
    '(a|a)*b',
    '(a|aa)+$',
    '([a-zA-Z]+)*$',
    '(.*a){20}',
    '(.*)*=(.*)*',
    '(x+x+)+y',
    '^(([a-z])+.)+[A-Z]([a-z])+$',
    '(?:a?){30}a{30}',
    'a**',
    'a{1,64}{1,64}',
    'a{2000}',
    '(a{1,64}){1,64}',
    String.raw`(\w+)\1`,
    '(?=a)b',
    '(?!a)b',
    '(?<=a)b',
    '(?<name>a)',
    String.raw`\k<name>`,
    '^*',
  ])('%s is refused: it could run away', (source) => {
    expect(() => compilePattern(source)).toThrow(PatternError)
  })

  it.each(['(', ')', '[', '[]', 'a{', 'a{x}', 'a{3,2}', '[z-a]', '*a', 'a\\', String.raw`\q`, '(((((((((a)))))))))'])(
    '%s is refused: it is not one',
    (source) => {
      expect(() => compilePattern(source)).toThrow(PatternError)
    },
  )

  it.each(['a*a*a*a*a*a*b', '.*.*.*=.*', '(a|b|ab)?(a|b|ab)?a*b*[ab]*$', 'a{0,64}a{0,64}b', '^.*x.*y.*z$'])(
    '%s takes at most as many steps per character as it has states',
    (source) => {
      const pattern = compilePattern(source)
      for (const length of [10, 100, 1000]) {
        const text = 'a'.repeat(length)
        expect(pattern.countSteps(text)).toBeLessThanOrEqual(pattern.states * (length + 1))
      }
    },
  )

  it('that is accepted never takes more steps than that', () => {
    const source = fc.string({ unit: fc.constantFrom(...Array.from('ab.*+?|()[]^$\\{}1,')), maxLength: 24 })
    const text = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 64 })
    fc.assert(
      fc.property(source, text, (of, input) => {
        let pattern
        try {
          pattern = compilePattern(of)
        } catch (error) {
          expect(error).toBeInstanceOf(PatternError)
          return
        }
        expect(pattern.countSteps(input)).toBeLessThanOrEqual(pattern.states * (input.length + 1))
      }),
      { numRuns: 2000 },
    )
  })
})
