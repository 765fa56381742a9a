import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { NODE } from './node.ts'
import { type DriverAnswer, DriverProcess } from './testing/driver-process.ts'

const BUILD = new URL('../../build.ts', import.meta.url).pathname

describe('the driver of Node', () => {
  const root = mkdtempSync(join(tmpdir(), 'airlock-node-'))
  let driver: DriverProcess
  beforeAll(() => {
    execFileSync(process.execPath, [BUILD, join(root, 'guest.cjs')], { stdio: 'ignore' })
    driver = new DriverProcess(NODE, join(root, 'kernels'))
  })
  afterAll(async () => {
    await driver.end()
    rmSync(root, { recursive: true })
  })

  const run = async (code: string) => await driver.run({ code })

  it('calls itself by its version', async () => {
    expect(await driver.ready()).toBe(`Node.js ${process.version}`)
  })

  it('keeps declarations, and lets them be made again', async () => {
    expect(await run('const a = 1; let b = 2; class C {}; function f() { return a + b }')).toEqual(done())
    expect(await run('const a = 5; class C { x = 1 }; f()')).toEqual(done({ rich: [result('7')] }))
    expect(await run('import { sep } from "node:path"; sep')).toEqual(done({ rich: [result("'/'")] }))
    expect(await run('sep + new C().x')).toEqual(done({ rich: [result("'/1'")] }))
  })

  it('runs TypeScript, also what is more than types', async () => {
    const code = 'interface P { x: number }\nenum Colour { Red, Green }\nconst p: P = { x: Colour.Green }\np'
    expect(await run(code)).toEqual(done({ rich: [result('{ x: 1 }')] }))
  })

  it('imports modules and requires scripts of its directory', async () => {
    writeFileSync(join(driver.directory, 'own.mjs'), 'export default 1; export const two = 2')
    writeFileSync(join(driver.directory, 'own.cjs'), 'module.exports = 3')
    const code =
      'import one, { two } from "./own.mjs"\n[one, two, require("./own.cjs"), (await import("./own.mjs")).two]'
    expect(await run(code)).toEqual(done({ rich: [result('[ 1, 2, 3, 2 ]')] }))
  })

  it('shows bundles, and what offers one', async () => {
    const code = `display({ "text/html": "<b>1</b>", "image/png": Buffer.from("png") })
      display({ plain: 1 })
      ;({ toMimeBundle: () => ({ "text/markdown": "*2*" }) })`
    expect(await run(code)).toEqual(
      done({
        rich: [
          { kind: 'display', data: { 'text/html': '<b>1</b>', 'image/png': 'cG5n' } },
          { kind: 'display', data: { 'text/plain': '{ plain: 1 }' } },
          { kind: 'result', data: { 'text/markdown': '*2*' } },
        ],
      }),
    )
  })

  it('names the lines of the step where it failed, and none of ours', async () => {
    const { status, rich } = await run('function inner() {\n  throw new TypeError("no")\n}\n\ninner()')
    expect(status).toBe('failed')
    expect(rich).toEqual([
      {
        kind: 'error',
        error: {
          name: 'TypeError',
          message: 'no',
          traceback: expect.stringMatching(/^TypeError: no\n {4}at inner \(step-\d+:2:9\)\n {4}at step-\d+:5:1$/),
        },
      },
    ])
  })

  it.each([
    ['a rejection that nobody handles', 'Promise.reject(new RangeError("no")); 1', 'RangeError'],
    [
      'a timer of a step that waits',
      'setTimeout(() => { throw new RangeError("no") }); await new Promise(() => setInterval(() => {}, 1000))',
      'RangeError',
    ],
    ['what is no error', 'throw { a: 1 }', 'Uncaught'],
    [
      'an exit in a callback',
      'setTimeout(() => process.exit(2)); await new Promise(() => setInterval(() => {}, 1000))',
      'ExitStatus',
    ],
    [
      'a value that cannot be shown',
      '({ [Symbol.for("nodejs.util.inspect.custom")]() { throw new RangeError("no") } })',
      'RangeError',
    ],
  ])('fails the step for %s', async (_what, code, name) => {
    expect(await run(code)).toMatchObject({ status: 'failed', rich: [{ kind: 'error', error: { name } }] })
  })

  it('lets a failed step end without what it left running being heard again', async () => {
    await run('var ticks = 0; setInterval(() => { ticks++; console.log("tick") }, 5); throw new Error("no")')
    const later = await run('await new Promise((resolve) => setTimeout(resolve, 100)); ticks > 1')
    expect(later).toEqual(done({ rich: [result('true')] }))
  })
})

function done(change: Partial<DriverAnswer> = {}): DriverAnswer {
  return { status: 'completed', stdout: '', stderr: '', rich: [], ...change }
}

function result(text: string): DriverAnswer['rich'][number] {
  return { kind: 'result', data: { 'text/plain': text } }
}
