import { AirlockError } from '@airlock/contract'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { TestRecorder } from '../testing/recorder.ts'
import { aSandbox, CALLER, World } from '../testing/world.ts'

let recorder: TestRecorder
let world: World
let sandbox: string
beforeAll(async () => (recorder = await TestRecorder.start()))
beforeEach(async () => {
  world = await World.make(recorder)
  sandbox = (await world.lifecycle.creation.create(CALLER, aSandbox())).id
})
afterEach(() => world.close())
afterAll(() => recorder.stop())

const forever = new AbortController().signal
const failure = async (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )
const read = () => world.lifecycle.files.read(CALLER, sandbox, { path: '/workspace/ü x', signal: forever })
const write = (bytes: AsyncIterable<Buffer>) =>
  world.lifecycle.files.write(CALLER, sandbox, { path: 'a', append: true, bytes })
const told = async () =>
  (await world.evidence(sandbox)).slice(2).map(({ point, status, error, payload }) => ({
    what: `${point} ${status}`,
    ...(error ? { error: error.code } : {}),
    ...('bytes' in payload ? { bytes: payload['bytes'] } : {}),
  }))

async function* chunks(...texts: readonly string[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text)
}

describe('reading a file', () => {
  it('answers its size and bytes, and records how many left', async () => {
    world.plane.script('GET /sandboxes/:id/files', ({ url, response }) => {
      const text = url.searchParams.get('path') ?? ''
      response.writeHead(200, { 'x-size': Buffer.byteLength(text) }).end(text)
    })
    const { size, bytes } = await read()
    expect([size, Buffer.concat(await Array.fromAsync(bytes)).toString()]).toEqual([15, '/workspace/ü x'])
    expect(await told()).toEqual([{ what: 'file.read requested' }, { what: 'file.read done', bytes: 15 }])
  })

  it('that breaks off is an error and a failed record', async () => {
    world.plane.script('GET /sandboxes/:id/files', async ({ response }) => {
      response.writeHead(200, { 'x-size': 1000 }).write('half')
      await new Promise((resolve) => setTimeout(resolve, 50))
      return 'hang-up'
    })
    const { bytes } = await read()
    expect(await failure(Array.fromAsync(bytes))).toMatchObject({ code: 'data_plane_unavailable' })
    expect(await told()).toEqual([
      { what: 'file.read requested' },
      { what: 'file.read failed', error: 'data_plane_unavailable', bytes: 4 },
    ])
  })

  it('that is not there answers so', async () => {
    world.plane.script('GET /sandboxes/:id/files', () => Promise.reject(new AirlockError('file_not_found')))
    expect(await failure(read())).toMatchObject({ code: 'file_not_found' })
    expect(await told()).toEqual([
      { what: 'file.read requested' },
      { what: 'file.read failed', error: 'file_not_found' },
    ])
  })

  it('does not happen when its record cannot be written', async () => {
    world.refused = ['file.read requested']
    expect(await failure(read())).toMatchObject({ code: 'evidence_unavailable' })
    expect(world.plane.calls.some((call) => call.includes('/files'))).toBe(false)
  })
})

describe('writing a file', () => {
  it('sends the bytes on and records how many came', async () => {
    world.plane.script('PUT /sandboxes/:id/files', ({ body, url }) => {
      expect([body.toString(), url.searchParams.get('mode')]).toEqual(['onetwo', 'append'])
      return { bytes: body.length }
    })
    expect(await write(chunks('one', 'two'))).toBe(6)
    expect(await told()).toEqual([{ what: 'file.write requested' }, { what: 'file.write done', bytes: 6 }])
  })

  it('whose body breaks off is the fault of the one who sent it', async () => {
    const broken = async function* () {
      yield Buffer.from('one')
      throw new TypeError('gone')
    }
    expect(await failure(write(broken()))).toMatchObject({ code: 'invalid_request' })
    const large = async function* () {
      yield Buffer.from('one')
      throw new AirlockError('body_too_large')
    }
    expect(await failure(write(large()))).toMatchObject({ code: 'body_too_large' })
  })
})

it('answers entries with dates that can be written, whatever the sandbox says', async () => {
  const entry = { name: 'a', path: '/a', kind: 'file', size: 1, mode: 0o644 } as const
  world.plane.script('POST /sandboxes/:id/files', () => ({ ...entry, modifiedMs: 1e300 }))
  const answer = await world.lifecycle.files.operate(CALLER, sandbox, { op: 'file.stat', path: '/a' })
  expect(answer).toEqual({ ...entry, modifiedAt: '9999-12-31T23:59:59.999Z' })
  world.plane.script('POST /sandboxes/:id/files', () => ({ ...entry, owner: 'root' }))
  const odd = world.lifecycle.files.operate(CALLER, sandbox, { op: 'file.stat', path: '/a' })
  expect(await failure(odd)).toMatchObject({ code: 'internal' })
})
