import { Airlock, AirlockError, type AuditRecord, type Sandbox } from '@airlock/sdk'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CLI, CliProcess, type Ended } from '../../packages/cli/src/testing/cli-process.ts'
import { type Member, tarOf } from '../../packages/std/src/tar/testing/tar-writer.ts'
import { waitFor } from '@airlock/std'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'
import { pidOf } from '../support/pid-of.ts'
import { requires } from '../support/requires.ts'

const SMALL_FILES = 1000
const PATIENT = { timeout: 100_000 }

describe('directories in and out', requires('root', 'crun'), () => {
  let server: BorrowedServer
  let airlock: Airlock
  let sandbox: Sandbox
  let home: string
  beforeAll(async () => {
    server = await borrowServer()
    airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
    sandbox = await airlock.sandboxes.create()
    home = mkdtempSync(join(tmpdir(), 'airlock-archives-'))
  })
  afterAll(async () => {
    await server?.giveBack()
    if (home) rmSync(home, { recursive: true })
  })

  const cli = async (...argv: string[]): Promise<Ended> => {
    const env = {
      PATH: process.env['PATH'] ?? '',
      HOME: home,
      AIRLOCK_URL: server.url,
      AIRLOCK_API_KEY: server.developerKey,
    }
    const started = new CliProcess(argv, { env, cwd: home })
    started.child.stdin.end()
    return started.ended
  }
  const evidence = async (point: 'file.read' | 'file.write'): Promise<readonly AuditRecord[]> => {
    const admin = new Airlock({ url: server.url, apiKey: server.adminKey })
    return (await admin.audit.events({ sandbox: sandbox.id, point, limit: 200 })).items
  }
  const manifestOf = (directory: string, names: readonly string[]): string => {
    const hash = (text: Buffer | string): string => createHash('sha256').update(text).digest('hex')
    return hash(names.map((name) => `${hash(readFileSync(join(directory, name)))}  ${name}\n`).join(''))
  }

  it('takes a thousand small files as one request and one record, and gives them back equal', PATIENT, async () => {
    const tree = join(home, 'many')
    mkdirSync(tree)
    const names = Array.from({ length: SMALL_FILES }, (_, at) => `f${String(at).padStart(4, '0')}`)
    for (const name of names) writeFileSync(join(tree, name), `this is ${name}`)
    const before = (await evidence('file.write')).length
    const { manifest, ...sent } = await sandbox.files.uploadDirectory(tree, 'many')
    expect(sent).toEqual({ files: SMALL_FILES, directories: 0, links: 0, bytes: SMALL_FILES * 13, skipped: [] })
    expect(manifest).toBe(manifestOf(tree, names))
    const records = await evidence('file.write')
    expect(records).toHaveLength(before + 2)
    const done = records.find(({ status, payload }) => status === 'done' && payload['archive'] === true)
    expect(done?.payload).toMatchObject({ path: 'many', archive: true, files: SMALL_FILES, manifest })
    const back = join(home, 'many-back')
    const got = await sandbox.files.downloadDirectory('many', back)
    expect(got).toMatchObject({ files: SMALL_FILES, manifest, skippedCount: 0 })
    execFileSync('diff', ['-r', tree, back])
    const read = (await evidence('file.read')).find(({ status }) => status === 'done')
    expect(read?.payload).toMatchObject({ path: 'many', archive: true, files: SMALL_FILES, manifest })
  })

  it('refuses a hostile archive before anything of it is written', PATIENT, async () => {
    const hostile: readonly Member[] = [
      { name: '/workspace/absolute' },
      { name: '../escaped' },
      { name: 'l', type: '2', link: '../../etc' },
      { name: 'h', type: '1', link: '/etc/passwd' },
      { name: 'device', type: '3' },
      { name: 'setuid', mode: 0o4755 },
    ]
    for (const bad of hostile) {
      const archive = tarOf([{ name: 'good', content: 'x' }, bad])
      const error = await sandbox.files.writeArchive('target/inner', archive).catch((one: unknown) => one)
      expect(error, String(bad.name)).toMatchObject({
        code: 'archive_invalid',
        message: expect.stringMatching(/Nothing was written[.]$/u),
      })
    }
    expect((await sandbox.run('ls -A /workspace; ls -A / | sort')).stdout).not.toMatch(/target|absolute|escaped/u)
    await sandbox.files.writeArchive('target/inner', tarOf([{ name: 'good', content: 'x' }]))
    expect(await sandbox.files.readText('target/inner/good')).toBe('x')
  })

  it('says how far it came when an archive turns out to be hostile late', PATIENT, async () => {
    const large: Member = { name: 'large', content: Buffer.alloc(3_000_000, 1) }
    const archive = tarOf([large, { name: 'second', content: 'x' }, { name: '../escaped' }])
    const error = await sandbox.files.writeArchive('late', archive).catch((one: unknown) => one)
    expect(error).toMatchObject({
      code: 'archive_invalid',
      message: expect.stringContaining('Up to 2 entries before it were written.'),
    })
    expect((await sandbox.run('ls -A late /workspace')).stdout).not.toContain('escaped')
  })

  it('does not write through links that the sandbox put there', PATIENT, async () => {
    await sandbox.run('mkdir -p /home/user/private linked; ln -s /home/user/private linked/way')
    const error = await sandbox.files
      .writeArchive('linked', tarOf([{ name: 'way/planted', content: 'x' }]))
      .catch((one: unknown) => one)
    expect(error).toMatchObject({ code: 'not_a_directory' })
    expect((await sandbox.run('ls -A /home/user/private')).stdout).toBe('')
  })

  it('holds rules about paths to each entry', PATIENT, async () => {
    const admin = new Airlock({ url: server.url, apiKey: server.adminKey })
    const put = await admin.policies.put({
      name: 'archives',
      rules: [
        {
          id: 'no-hooks',
          kind: 'file',
          effect: 'deny',
          risk: 'high',
          reason: 'Hooks run.',
          match: { actions: ['write'], paths: ['/workspace/**/hooks/**'] },
          examples: { match: ['/workspace/a/hooks/b'], notMatch: ['/workspace/a'] },
        },
      ],
    })
    try {
      const archive = tarOf([
        { name: 'ok', content: 'x' },
        { name: 'a/hooks/pre-commit', content: 'x' },
      ])
      await expect(sandbox.files.writeArchive('ruled', archive)).rejects.toMatchObject({ code: 'policy_denied' })
      expect((await sandbox.run('ls -d ruled')).exitCode).not.toBe(0)
    } finally {
      await admin.policies.remove(put.name)
    }
  })

  it('leaves links out, FIFOs and devices behind while the sandbox changes the tree', PATIENT, async () => {
    const churn = await sandbox.start(
      `mkdir live; cd live; echo kept > kept; while :; do mkdir -p a/b; echo x > a/b/f; mkfifo p; ln -s /etc l
       ln -s ../../.. a/up; head -c 300000 /dev/zero > big; : > big; rm -rf a p l; ln -s / a; rm a; done`,
    )
    await sandbox.run('until [ -e live/big ]; do sleep 0.05; done')
    try {
      for (let round = 0; round < 10; round++) {
        const back = join(home, `live-${round}`)
        try {
          await sandbox.files.downloadDirectory('live', back)
          expect(readFileSync(join(back, 'kept'), 'utf8')).toBe('kept\n')
        } catch (error) {
          expect(error).toBeInstanceOf(AirlockError)
        }
        expect(existsSync(join(back, 'l'))).toBe(false)
        expect(existsSync(join(back, 'p'))).toBe(false)
      }
    } finally {
      await churn.signal('SIGKILL')
    }
  })

  it('leaves no file open in the sandbox when the data plane is killed in the middle', PATIENT, async () => {
    const openFiles = (): readonly string[] =>
      server.processesOf(sandbox.id).flatMap((pid) => linksOf(`/proc/${pid}/fd`).filter((to) => to.includes('half/')))
    const half = tarOf([{ name: 'f', content: Buffer.alloc(4_000_000, 1) }]).subarray(0, 2_000_000)
    const uploading = sandbox.files.writeArchive('half', stalling(half)).catch((one: unknown) => one)
    const isOpen = (): true | undefined => (openFiles().length > 0 ? true : undefined)
    expect(await waitFor(isOpen, { signal: AbortSignal.timeout(60_000), everyMs: 20 })).toBe(true)
    process.kill(pidOf(server.home, 'data-plane') ?? 0, 'SIGKILL')
    expect(await uploading).toMatchObject({ code: 'data_plane_unavailable' })
    const isBack = async (): Promise<true | undefined> =>
      sandbox.files.stat('half').then(
        () => true,
        () => undefined,
      )
    expect(await waitFor(isBack, { signal: AbortSignal.timeout(60_000), everyMs: 100 })).toBe(true)
    const isClosed = (): true | undefined => (openFiles().length === 0 ? true : undefined)
    expect(await waitFor(isClosed, { signal: AbortSignal.timeout(60_000), everyMs: 20 })).toBe(true)
    await sandbox.files.writeArchive('half', tarOf([{ name: 'f', content: 'again' }]))
    expect(await sandbox.files.readText('half/f')).toBe('again')
  })

  it('brings results back with --out, also when the program failed', PATIENT, async () => {
    mkdirSync(join(home, 'project', '.git'), { recursive: true })
    mkdirSync(join(home, 'project', 'node_modules', 'x'), { recursive: true })
    writeFileSync(join(home, 'project', '.git', 'config'), 'x')
    writeFileSync(join(home, 'project', 'in.txt'), 'in')
    symlinkSync('in.txt', join(home, 'project', 'link'))
    const line = 'ls -A project > seen; mkdir -p dist/deep; cat project/link > dist/deep/out; exit 3'
    const ended = await cli('run', '--with', 'project', '--out', 'seen', '--out', '/workspace/dist', '--shell', line)
    expect(ended).toMatchObject({ code: 3, stdout: '' })
    expect(ended.stderr).not.toContain('in /workspace')
    expect(readFileSync(join(home, 'seen'), 'utf8').trim().split('\n')).toEqual(['in.txt', 'link'])
    expect(readFileSync(join(home, 'dist/deep/out'), 'utf8')).toBe('in')
    const missing = await cli('run', '--out', 'nothing', '--', 'true')
    expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining('could not bring back nothing') })
    expect(readdirSync(home)).not.toContain('nothing')
  })

  it('tells a person which files go with the sandbox, and how to keep them', PATIENT, async () => {
    const line = `'${process.execPath}' '${CLI}' run --shell 'echo 1 > result.csv'`
    const env = { ...process.env, AIRLOCK_URL: server.url, AIRLOCK_API_KEY: server.developerKey, HOME: home }
    const seen = execFileSync('script', ['-qec', line, '/dev/null'], { env, cwd: home }).toString()
    expect(seen).toContain(
      'new in /workspace, and gone with the sandbox: result.csv. To bring them back: airlock run --out result.csv',
    )
  })
})

/** As a caller who sends no more, and does not leave either. */
async function* stalling(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 200))
    yield Buffer.alloc(1)
  }
}

/** Where they lead; a process that ended meanwhile has none. */
function linksOf(directory: string): readonly string[] {
  try {
    return readdirSync(directory).map((name) => readlinkSync(join(directory, name)))
  } catch {
    // It ended, or closed one of them.
    return []
  }
}
