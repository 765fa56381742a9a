import { describe, expect, it } from 'vitest'
import { prepareCode } from './prepare-code.ts'

const prepare = (code: string) => prepareCode(code, 'step-1')
const script = (text: string) => ({ kind: 'script', script: text })

describe('code of a step', () => {
  it.each([
    ['plain JavaScript', 'const a = 1\nawait a', 'const a = 1\nawait a'],
    ['an object', '{ a: 1 }', '({ a: 1 }\n)'],
    ['a block', '{ let a = 1; a }', '{ let a = 1; a }'],
    ['types', 'const a: number = 1 as number', 'const a         = 1          '],
    ['a line for the shell', '#!/usr/bin/env node\n1', '//#!/usr/bin/env node\n1'],
  ])('is taken: %s', (_name, code, expected) => {
    expect(prepare(code)).toEqual(script(expected))
  })

  it.each([
    ['import "a"', 'await __import("a");'],
    ['import a from "b";', 'const { default: a } = await __import("b");'],
    ["import * as a from 'b'", "const a = await __import('b');"],
    ['import a, * as b from "c"', 'const b = await __import("c"), { default: a } = b;'],
    ['import { a, b as c, default as d } from "e"', 'const { a, b: c, default: d } = await __import("e");'],
    ['import {\n  a,\n  b,\n} from "c"\na', 'const { a, b } = await __import("c");\n\n\n\na'],
    [
      'import a from "b" with { type: "json" }',
      'const { default: a } = await __import("b", { with: { type: "json" } });',
    ],
    ['let x = 1; import a from "b"; x', 'let x = 1; const { default: a } = await __import("b"); x'],
    ['import type { T } from "a"\nlet t: T', '                          \nlet t   '],
  ])('has its imports made assignments, on their lines: %s', (code, expected) => {
    expect(prepare(code)).toEqual(script(expected))
  })

  it.each([
    ['await import("a")', 'await __import("a")'],
    ['`${await import("a")}`', '`${await __import("a")}`'],
    ['"import(a)"', '"import(a)"'],
    ['// import(a)\n/import\\(a/.test("")', '// import(a)\n/import\\(a/.test("")'],
    ['o.import(1); ({ import(a) {} })', 'o.import(1); ({ import(a) {} })'],
  ])('has imports in expressions replaced, and nothing that only looks like one: %s', (code, expected) => {
    expect(prepare(code)).toEqual(script(expected))
  })

  it('says where it is wrong', () => {
    expect(prepare('1\nlet = = 2')).toEqual({
      kind: 'error',
      error: {
        name: 'SyntaxError',
        message: "Unexpected token '='",
        traceback: "step-1:2\nlet = = 2\n      ^\n\nSyntaxError: Unexpected token '='",
      },
    })
  })

  it('is judged as TypeScript where that goes further', () => {
    expect(prepare('const a: number = 1\nconst b: = 2')).toMatchObject({
      kind: 'error',
      error: { name: 'SyntaxError', traceback: expect.stringMatching(/^step-1:2\n/) },
    })
  })
})
