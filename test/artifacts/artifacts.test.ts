import { createHash } from 'node:crypto'
import { Airlock, type Sandbox } from '@airlock/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'

let server: BorrowedServer
let airlock: Airlock
let sandbox: Sandbox

beforeAll(async () => {
  server = await borrowServer('off')
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  sandbox = await airlock.sandboxes.create()
})
afterAll(async () => server?.giveBack())

const sh = async (shell: string) => {
  const { exitCode, stdout, stderr } = await sandbox.run({ shell })
  expect([exitCode, stderr]).toEqual([0, ''])
  return stdout
}
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const contentOf = async (id: string, part?: { from?: number; to?: number }) =>
  Buffer.concat(await Array.fromAsync(airlock.artifacts.download(id, part))).toString()
const get = async (path: string, headers: Record<string, string> = {}) =>
  fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${server.developerKey}`, ...headers } })

describe('files of a sandbox', () => {
  it('are collected by patterns, with their provenance, and outlive the sandbox', async () => {
    const own = await airlock.sandboxes.create()
    const command = await own.start({
      shell: 'mkdir -p out/deep && printf a,b > out/t.csv && printf x > out/deep/x.log',
    })
    await command.wait()
    const collected = await airlock.artifacts.collect(own.id, ['out/**'], { command: command.id })
    await own.terminate()
    expect(collected.skipped).toEqual([])
    expect(collected.items.map(({ name, size, mediaType }) => [name, size, mediaType])).toEqual([
      ['out/t.csv', 3, 'text/csv'],
      ['out/deep/x.log', 1, 'text/plain'],
    ])
    const [table] = collected.items
    expect(table).toMatchObject({
      agent: 'default',
      sandbox: own.id,
      command: command.id,
      job: null,
      sha256: sha256('a,b'),
      provenance: { template: 'base', tier: 'standard', codeSha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
    })
    expect(await contentOf(table?.id ?? '')).toBe('a,b')
    expect((await airlock.artifacts.list({ command: command.id })).items.map(({ id }) => id)).toContain(table?.id)
  })

  it('match `*` and `?` within a name, and `**` over directories, from the root too', async () => {
    await sh('mkdir -p g/a/b && touch g/1.csv g/12.csv g/a/3.csv g/a/b/4.csv g/a/b/4.txt')
    const names = async (...patterns: string[]) =>
      (await airlock.artifacts.collect(sandbox.id, patterns)).items.map(({ name }) => name).toSorted()
    expect(await names('g/*.csv')).toEqual(['g/1.csv', 'g/12.csv'])
    expect(await names('g/?.csv')).toEqual(['g/1.csv'])
    expect(await names('g/**/*.csv')).toEqual(['g/1.csv', 'g/12.csv', 'g/a/3.csv', 'g/a/b/4.csv'])
    expect(await names('/workspace/g/a/b/4.txt', 'g/a/b/*.txt')).toEqual(['g/a/b/4.txt'])
    expect(await names('nothing/**')).toEqual([])
  })

  it('of a command or step of another sandbox are refused', async () => {
    const command = `cmd_${'0'.repeat(26)}`
    await expect(airlock.artifacts.collect(sandbox.id, ['*'], { command })).rejects.toMatchObject({
      code: 'command_not_found',
    })
    const session = await airlock.sessions.create({ sandbox: sandbox.id, runtime: 'bash' })
    const { id: step } = await session.run('echo kept > kept-by-step')
    const { items } = await airlock.artifacts.collect(sandbox.id, ['kept-by-step'], { step })
    expect(items).toMatchObject([{ step, provenance: { codeSha256: expect.any(String) } }])
  })

  it('keep names of any bytes, escaped, each different from all others', async () => {
    await sh(
      String.raw`mkdir odd && cd odd && printf 1 > "$(printf 'a\377b')" && printf 2 > 'a\xffb' && printf 3 > "$(printf 'n\ne')"`,
    )
    const { items } = await airlock.artifacts.collect(sandbox.id, ['odd/*'])
    const contents = await Promise.all(items.map(async ({ id, name }) => [name, await contentOf(id)] as const))
    expect(new Map(contents)).toEqual(
      new Map([
        [String.raw`odd/a\xffb`, '1'],
        [String.raw`odd/a\\xffb`, '2'],
        [String.raw`odd/n\x0ae`, '3'],
      ]),
    )
  })
})

describe('an artifact', () => {
  it('is uploaded, listed, downloaded and removed', async () => {
    const uploaded = await airlock.artifacts.upload('report.html', '<script>1</script>')
    expect(uploaded).toMatchObject({ name: 'report.html', size: 18, sandbox: null, provenance: null, agent: 'default' })
    const response = await get(`/v1/artifacts/${uploaded.id}/content`)
    expect(await response.text()).toBe('<script>1</script>')
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/html',
      'content-disposition': "attachment; filename*=UTF-8''report.html",
      'x-content-type-options': 'nosniff',
      etag: `"${sha256('<script>1</script>')}"`,
    })
    await airlock.artifacts.remove(uploaded.id)
    await expect(airlock.artifacts.get(uploaded.id)).rejects.toMatchObject({ code: 'artifact_not_found' })
  })

  it('answers ranges, and nothing to who has it', async () => {
    const { id, sha256: hash } = await airlock.artifacts.upload('digits.txt', '0123456789')
    const path = `/v1/artifacts/${id}/content`
    const ask = async (headers: Record<string, string>) => {
      const response = await get(path, headers)
      return [response.status, response.headers.get('content-range'), await response.text()]
    }
    expect(await ask({ range: 'bytes=2-4' })).toEqual([206, 'bytes 2-4/10', '234'])
    expect(await ask({ range: 'bytes=-3' })).toEqual([206, 'bytes 7-9/10', '789'])
    expect(await ask({ range: 'bytes=8-99' })).toEqual([206, 'bytes 8-9/10', '89'])
    expect(await ask({ range: 'bytes=0-1,3-4' })).toEqual([200, null, '0123456789'])
    expect(await ask({ range: 'bytes=2-4', 'if-range': '"other"' })).toEqual([200, null, '0123456789'])
    expect(await ask({ 'if-none-match': `"${hash}"` })).toEqual([304, null, ''])
    const [status, range, text] = await ask({ range: 'bytes=10-' })
    expect([status, range, text]).toEqual([416, 'bytes */10', expect.stringContaining('range_invalid')])
    expect(await contentOf(id, { from: 3, to: 5 })).toBe('345')
    const empty = await airlock.artifacts.upload('empty', '')
    expect(await contentOf(empty.id)).toBe('')
  })

  it('of equal content is removed without harm to the other', async () => {
    const [one, other] = await Promise.all([1, 2].map(async (n) => airlock.artifacts.upload(`same-${n}`, 'same')))
    await airlock.artifacts.remove(one?.id ?? '')
    expect(await contentOf(other?.id ?? '')).toBe('same')
  })

  it('is downloaded by a signed URL without a key, until it expires or is removed', async () => {
    const { id } = await airlock.artifacts.upload('linked', 'by link')
    const other = await airlock.artifacts.upload('other', 'not by link')
    const { url } = await airlock.artifacts.link(id)
    expect(await (await fetch(url)).text()).toBe('by link')
    expect(await (await fetch(url, { headers: { range: 'bytes=3-' } })).text()).toBe('link')
    const [claims = '', signature = ''] = (url.split('/').at(-1) ?? '').split('.')
    const forged = Buffer.from(Buffer.from(claims, 'base64url').toString().replace(id, other.id)).toString('base64url')
    const statusOf = async (token: string) => (await fetch(url.replace(/[^/]+$/, token))).status
    expect(await Promise.all([statusOf(`${claims}.${signature}`), statusOf(`${forged}.${signature}`)])).toEqual([
      200, 403,
    ])
    const short = await airlock.artifacts.link(id, { expiresInMs: 1000 })
    await expect.poll(async () => (await fetch(short.url)).status, { timeout: 60_000 }).toBe(403)
    await airlock.artifacts.remove(id)
    expect((await fetch(url)).status).toBe(403)
  })

  it('by a link is as good as the key that made it', async () => {
    const admin = new Airlock({ url: server.url, apiKey: server.adminKey })
    const { key, secret } = await admin.keys.create({ name: 'links', role: 'developer' })
    const { id } = await airlock.artifacts.upload('keyed', 'x')
    const { url } = await new Airlock({ url: server.url, apiKey: secret }).artifacts.link(id)
    expect((await fetch(url)).status).toBe(200)
    await admin.keys.revoke(key.id)
    expect((await fetch(url)).status).toBe(403)
  })

  it('expires, and its bytes go', async () => {
    const { id } = await airlock.artifacts.upload('short', 'x', { ttlMs: 1000 })
    await expect
      .poll(async () => airlock.artifacts.get(id).catch(({ code }: { code: string }) => code), { timeout: 60_000 })
      .toBe('artifact_not_found')
    const admin = new Airlock({ url: server.url, apiKey: server.adminKey })
    const expired = async () =>
      (await admin.eventPage({ point: 'artifact.remove', limit: 100 })).items.some(
        ({ payload }) => payload?.['artifact'] === id && payload['reason'] === 'expired',
      )
    await expect.poll(expired, { timeout: 60_000 }).toBe(true)
  })
})

describe('a job', () => {
  it('leaves artifacts, and another job gets one as a file', async () => {
    const job = await airlock.jobs.submit(
      { shell: 'mkdir out; echo first > out/a.txt; ln -s /etc/passwd out/link; exit 3' },
      { artifacts: ['out/**'] },
    )
    await job.wait()
    const { artifacts, state, sha256: code } = job.data
    expect([state, artifacts?.count, artifacts?.bytes, artifacts?.error]).toEqual(['failed', 1, 6, null])
    expect(artifacts?.skipped).toEqual([{ name: 'out/link', why: 'is a link or no file' }])
    const [made] = artifacts?.items ?? []
    expect(made).toMatchObject({ name: 'out/a.txt', size: 6, mediaType: 'text/plain' })
    expect(await airlock.artifacts.get(made?.id ?? '')).toMatchObject({ job: job.id, provenance: { codeSha256: code } })
    const inputs = [{ artifact: made?.id ?? '', path: 'in/b.txt' }]
    const next = await airlock.jobs.submit(['cat', 'in/b.txt'], { inputs })
    expect((await next.wait()).stdout).toBe('first\n')
  })

  it('is refused with an input that is not there', async () => {
    const inputs = [{ artifact: `art_${'0'.repeat(26)}`, path: 'x' }]
    await expect(airlock.jobs.submit(['true'], { inputs })).rejects.toMatchObject({ code: 'artifact_not_found' })
  })

  it('that is tried again keeps the files of its last try', async () => {
    const job = await airlock.jobs.submit(
      { shell: 'date +%s%N > stamp; exit 1' },
      { artifacts: ['stamp'], retries: 1, retryDelayMs: 1 },
    )
    await job.wait()
    expect([job.data.tries, job.data.artifacts?.count]).toEqual([2, 1])
    expect((await airlock.artifacts.list({ job: job.id })).items.length).toBe(1)
  })
})

describe('a rule about artifacts', () => {
  it('denies by name, size and count, and leaves the others', async () => {
    const admin = new Airlock({ url: server.url, apiKey: server.adminKey })
    const rule = { kind: 'artifact', effect: 'deny', risk: 'low', reason: 'No keys.' } as const
    await admin.policies.put({
      name: 'own-artifacts',
      rules: [
        { ...rule, id: 'keys', match: { names: ['*.pem'] } },
        { ...rule, id: 'large', match: { over: { bytes: 100 } } },
      ],
    })
    try {
      await sh('mkdir ruled && touch ruled/a.pem ruled/b.txt && head -c 101 /dev/zero > ruled/c.bin')
      const { items, skipped } = await airlock.artifacts.collect(sandbox.id, ['ruled/*'])
      expect(items.map(({ name }) => name)).toEqual(['ruled/b.txt'])
      expect(skipped.map(({ name }) => name).toSorted()).toEqual(['ruled/a.pem', 'ruled/c.bin'])
      await expect(airlock.artifacts.upload('x.pem', 'x')).rejects.toMatchObject({ code: 'policy_denied' })
    } finally {
      await admin.policies.remove('own-artifacts')
    }
  })
})
