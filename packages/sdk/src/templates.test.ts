import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KEYS, startTestApi, type TestApi } from '../../control-plane/src/api/testing/test-api.ts'
import { Airlock, type TemplateEvent } from './index.ts'

let api: TestApi
let airlock: Airlock
let home: string
beforeAll(async () => {
  api = await startTestApi()
  airlock = new Airlock({ url: api.url, apiKey: KEYS.developer })
  home = mkdtempSync(join(tmpdir(), 'airlock-sdk-'))
})
afterAll(async () => {
  await api.close()
  rmSync(home, { recursive: true })
})

async function eventsOf(events: AsyncIterable<TemplateEvent>): Promise<readonly TemplateEvent[]> {
  const all: TemplateEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

describe('templates', () => {
  it('are listed, made, built with progress, and removed', async () => {
    expect((await airlock.templates.list()).map(({ name }) => name)).toEqual(['base', 'data'])
    expect(await airlock.templates.put('web', { packages: ['jq'] })).toMatchObject({
      state: 'absent',
      packages: ['jq'],
    })
    const events = await eventsOf(airlock.templates.build('web'))
    expect(events.map(({ event }) => event)).toEqual(['progress', 'progress', 'ended'])
    expect(await airlock.templates.get('web')).toMatchObject({ state: 'ready' })
    expect(await eventsOf(airlock.templates.build('web'))).toHaveLength(1)
    await airlock.templates.remove('web')
    await expect(airlock.templates.get('web')).rejects.toMatchObject({ code: 'template_not_found' })
  })

  it('that cannot be built say why', async () => {
    await airlock.templates.put('bad', { packages: ['no-such-package'] })
    await expect(eventsOf(airlock.templates.build('bad'))).rejects.toMatchObject({
      code: 'template_failed',
      message: 'There is no package no-such-package.',
    })
  })

  it('are imported from a directory as a tar that tells everything', async () => {
    const tree = mkdtempSync(join(home, 'tree-'))
    const long = 'long-'.repeat(30)
    mkdirSync(join(tree, 'bin', long), { recursive: true })
    writeFileSync(join(tree, 'bin', 'tool'), 'x'.repeat(1000))
    chmodSync(join(tree, 'bin', 'tool'), 0o755)
    writeFileSync(join(tree, 'bin', long, 'ä'), '')
    symlinkSync('/usr/bin/env', join(tree, 'bin', 'env'))
    symlinkSync(`/${long}/target`, join(tree, 'bin', 'far'))
    utimesSync(join(tree, 'bin', 'tool'), 1_700_000_000, 1_700_000_000)
    const listening = createServer().listen(join(tree, 'socket'))
    const sent: number[] = []
    const made = await airlock.templates.import('tree', { path: tree }, { onProgress: ({ bytes }) => sent.push(bytes) })
    listening.close()
    expect(made).toMatchObject({ name: 'tree', source: 'imported', state: 'ready' })
    expect(sent.at(-1)).toBe(api.core.imported.length)
    const listed = execFileSync('tar', ['-tvf', '-', '--full-time', '--utc'], {
      input: api.core.imported,
      encoding: 'utf8',
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
    })
    const lines = listed.trimEnd().split('\n')
    expect(lines.map((line) => line.replace(/^(\S+) (\S+) +(\d+) \S+ \S+ /, '$1 $2 $3 '))).toEqual([
      'drwxr-xr-x root/root 0 bin/',
      'lrwxrwxrwx root/root 0 bin/env -> /usr/bin/env',
      `lrwxrwxrwx root/root 0 bin/far -> /${long}/target`,
      `drwxr-xr-x root/root 0 bin/${long}/`,
      String.raw`-rw-r--r-- root/root 0 bin/${'long-'.repeat(30)}/\303\244`,
      '-rwxr-xr-x root/root 1000 bin/tool',
    ])
    expect(lines.at(-1)).toContain('2023-11-14 22:13:20')
    const tool = execFileSync('tar', ['-xOf', '-', 'bin/tool'], { input: api.core.imported, encoding: 'utf8' })
    expect(tool).toBe('x'.repeat(1000))
  })

  it('are imported from a tar, from bytes and from a stream, as they are', async () => {
    const tar = join(home, 'image.tar')
    writeFileSync(tar, 'the bytes')
    const seen: unknown[] = []
    await airlock.templates.import('file', { path: tar }, { onProgress: (sent) => seen.push(sent) })
    expect([Buffer.from(api.core.imported).toString(), seen.at(-1)]).toEqual(['the bytes', { bytes: 9, total: 9 }])
    await airlock.templates.import('bytes', Buffer.from('others'))
    expect(Buffer.from(api.core.imported).toString()).toBe('others')
    await airlock.templates.import('stream', new Blob(['streamed']).stream())
    expect(Buffer.from(api.core.imported).toString()).toBe('streamed')
    await expect(airlock.templates.import('none', { path: join(home, 'none') })).rejects.toMatchObject({
      code: 'invalid_request',
    })
  })
})
