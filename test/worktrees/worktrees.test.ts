import { Airlock, type Sandbox } from '@airlock/sdk'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { switchShippedRulesOff } from '../support/shipped-rules.ts'
import { OWNER, TestRepository } from './repository.ts'

const SECRET = `ghp_${'a1B2c3D4'.repeat(5)}`

const PROGRAM = fileURLToPath(
  new URL('../../packages/data-plane/src/isolation/backends/oci/worktrees/repository.py', import.meta.url),
)

let server: TestServer
let admin: Airlock
let repository: TestRepository

beforeAll(async () => {
  server = await startServer()
  await switchShippedRulesOff(server)
  admin = new Airlock({ url: server.url, apiKey: server.adminKey })
  repository = new TestRepository({
    'readme.md': 'hello\n',
    'src/main.py': 'print(1)\n',
    'old.txt': 'moved as it is\n',
    'secret-before.txt': `${SECRET}\n`,
    'gone.txt': 'bye\n',
    'grüße.txt': 'umlaut\n',
    'tool.bin': Buffer.from([0, 1, 2, 3]),
    'run-me': '#!/bin/sh\n',
    '.gitattributes': '* text eol=crlf export-subst\nexported.txt export-ignore\n*.md ident\n',
    'exported.txt': '$Format:%H$ $Id$\n',
  })
  await admin.grants.add('default', repository.path, { mode: 'worktree' })
}, 240_000)

afterAll(async () => {
  repository?.remove()
  await server?.stop()
})

async function open(at?: string, more: object = {}, airlock = admin): Promise<Sandbox> {
  const worktree = { source: repository.path, ...(at === undefined ? {} : { at }) }
  const sandbox = await airlock.sandboxes.create({ worktree, ...more })
  onTestFinished(async () => void (await sandbox.terminate({ force: true })))
  return sandbox
}

async function sh(sandbox: Sandbox, line: string): Promise<string> {
  const result = await sandbox.run(line, { cwd: '/workspace/repo' })
  expect(result, `${line}: ${result.stderr}`).toMatchObject({ exitCode: 0 })
  return result.stdout
}

describe('a worktree', requires('root', 'python3'), () => {
  test('is the commit byte for byte, belongs to the user, and works with git', async () => {
    const sandbox = await open()
    expect(sandbox.data.mounts).toMatchObject([
      {
        mode: 'worktree',
        path: repository.path,
        target: '/workspace/repo',
        commit: repository.git('rev-parse', 'HEAD'),
      },
    ])
    expect(await sh(sandbox, 'git status --porcelain --ignored')).toBe('')
    expect((await sh(sandbox, 'git rev-parse HEAD^{tree}')).trim()).toBe(repository.git('rev-parse', 'HEAD^{tree}'))
    // Neither attributes nor filters touched a byte.
    expect(await sh(sandbox, 'cat exported.txt')).toBe('$Format:%H$ $Id$\n')
    expect(await sh(sandbox, 'cat readme.md')).toBe('hello\n')
    expect(await sh(sandbox, 'stat -c %u:%g . readme.md .git .git/HEAD | sort -u')).toBe('1000:1000\n')
    expect(
      await sh(
        sandbox,
        'git rev-list --all | wc -l; git remote; ls .git/hooks 2>/dev/null; find .git -name alternates',
      ),
    ).toBe('1\n')
    expect((await sandbox.worktree.diff()).changes).toEqual([])
    expect(await sandbox.worktree.export({ branch: 'nothing' })).toMatchObject({ exported: false })
  })

  test('is refused without a grant, with the command that gives one', async () => {
    const other = new TestRepository({ a: 'a\n' })
    onTestFinished(() => other.remove())
    const asked = admin.sandboxes.create({ worktree: { source: other.path } })
    await expect(asked).rejects.toMatchObject({
      code: 'worktree_refused',
      hint: expect.stringContaining(`airlock grant add default ${other.path} --worktree`),
    })
    await expect(open('no-such-branch')).rejects.toMatchObject({ code: 'worktree_refused' })
    await expect(admin.grants.add('default', '/usr/share', { mode: 'worktree' })).rejects.toMatchObject({
      code: 'worktree_refused',
    })
    await expect(admin.grants.add('default', '/etc', { mode: 'worktree' })).rejects.toMatchObject({
      code: 'grant_refused',
    })
  })

  test('ends with its grant', async () => {
    const other = new TestRepository({ a: 'a\n' })
    onTestFinished(() => other.remove())
    const grant = await admin.grants.add('default', other.path, { mode: 'worktree' })
    const sandbox = await admin.sandboxes.create({ worktree: { source: other.path } })
    await admin.grants.remove('default', grant.id)
    expect((await admin.sandboxes.get(sandbox.id)).data).toMatchObject({ endReason: 'grant_revoked' })
  })
})

describe('a diff', requires('root', 'python3'), () => {
  test('has all that was changed, however it was changed', async () => {
    const sandbox = await open()
    await sh(
      sandbox,
      String.raw`
      echo committed > committed.txt; git add committed.txt; git commit -qm 'inside'
      echo untracked > untracked.txt
      git mv old.txt new.txt
      git mv secret-before.txt secret-after.txt
      rm gone.txt
      echo more >> grüße.txt
      printf 'x' > "$(printf 'quo"ted\nname')"
      printf 'y' > "$(printf 'bytes-\377')"
      chmod +x run-me
      printf '\000\001' >> tool.bin
      ln -s /etc/passwd leads-out
      echo 'node_modules/' > .gitignore; mkdir node_modules; echo x > node_modules/x`,
    )
    const diff = await sandbox.worktree.diff()
    const byPath = new Map(diff.changes.map((change) => [change.path, change]))
    expect(Object.fromEntries([...byPath].map(([path, { status }]) => [path, status]))).toEqual({
      '.gitignore': 'added',
      'committed.txt': 'added',
      'untracked.txt': 'added',
      'new.txt': 'renamed',
      'secret-after.txt': 'renamed',
      'gone.txt': 'deleted',
      'grüße.txt': 'changed',
      'quo"ted\nname': 'added',
      'file:///bytes-%FF': 'added',
      'run-me': 'mode',
      'tool.bin': 'changed',
      'leads-out': 'added',
    })
    expect(byPath.get('tool.bin')).toMatchObject({ binary: true })
    expect(diff).toMatchObject({ ignored: 1, commitsComplete: true, commits: [{ subject: 'inside' }] })
    const found = diff.findings.map(({ kind, path }) => `${kind} ${path}`)
    expect(found).toEqual(
      expect.arrayContaining([
        'secret secret-after.txt',
        'binary tool.bin',
        'link-out leads-out',
        'name file:///bytes-%FF',
      ]),
    )
    expect(found).toContain('name quo"ted\nname')
    // Looked at again, it is the same.
    expect((await sandbox.worktree.diff()).seal).toBe(diff.seal)
  })

  test('runs nothing of a hostile tree and follows nothing', async () => {
    const sandbox = await open()
    const marks = mkdtempSync('/var/tmp/airlock-marks-')
    onTestFinished(() => rmSync(marks, { recursive: true }))
    const mark = `touch ${marks}/ran /workspace/ran`
    await sh(
      sandbox,
      String.raw`
      git config core.fsmonitor '${mark}'; git config core.hooksPath /workspace/hooks
      git config filter.x.clean '${mark}; cat'; git config diff.x.textconv '${mark}'; git config diff.external '${mark}'
      echo '* filter=x diff=x' > .gitattributes
      mkdir -p /workspace/hooks .git/hooks; printf '#!/bin/sh\n${mark}\n' | tee /workspace/hooks/pre-commit > .git/hooks/post-index-change
      chmod +x /workspace/hooks/* .git/hooks/*
      mkfifo pipe; mkfifo .git/HEAD.fifo; mkdir -p sub/.git sub/.GIT; echo x > sub/.git/config
      echo /etc > .git/objects/info/alternates; ln -s /etc sub/etc; rm .git/HEAD; ln -s /etc/shadow .git/HEAD
      rm -rf src; ln -s /etc src; rm -f /workspace/ran`,
    )
    const diff = await sandbox.worktree.diff()
    expect(diff.leftOut).toEqual([
      { path: 'pipe', why: 'special' },
      { path: 'sub/.GIT', why: 'git-name' },
      { path: 'sub/.git', why: 'git-name' },
    ])
    expect(diff.changes.map(({ path, status }) => `${status} ${path}`)).toEqual([
      'changed .gitattributes',
      'added src',
      'deleted src/main.py',
      'added sub/etc',
    ])
    expect(diff.commitsComplete).toBe(false)
    expect(readdirSync(marks)).toEqual([])
    await expect(sandbox.files.stat('/workspace/ran')).rejects.toMatchObject({ code: 'file_not_found' })
    // The tree could have run it: git inside does.
    await sandbox.run('rm .git/HEAD; echo "ref: refs/heads/main" > .git/HEAD; git status', { cwd: '/workspace/repo' })
    await expect(sandbox.files.stat('/workspace/ran')).resolves.toBeDefined()
  })

  test('of a worktree that is gone is an error and never empty', async () => {
    const sandbox = await open()
    await sandbox.run('mv repo away; ln -s /etc repo')
    await expect(sandbox.worktree.diff()).rejects.toMatchObject({ code: 'worktree_refused' })
    const bare = await admin.sandboxes.create()
    onTestFinished(async () => void (await bare.terminate({ force: true })))
    await expect(bare.worktree.diff()).rejects.toMatchObject({ code: 'worktree_not_found' })
  })
})

describe('an export', requires('root', 'python3'), () => {
  test('is a new branch of the owner, and touches nothing else of the repository', async () => {
    const before = stateOf(repository)
    const sandbox = await open(undefined, { name: 'worker' })
    await sh(
      sandbox,
      'echo more >> readme.md; mkdir -p deep/er; echo x > deep/er/file; rm gone.txt; ln -s readme.md link',
    )
    const done = await sandbox.worktree.export({ message: 'All of it' })
    expect(done).toMatchObject({ exported: true, branch: 'sandbox/worker', base: repository.git('rev-parse', 'HEAD') })
    expect(stateOf(repository)).toEqual(before)
    expect(repository.git('fsck', '--strict', '--no-dangling')).toBe('')
    expect(repository.git('rev-list', '--count', 'HEAD..sandbox/worker')).toBe('1')
    expect(repository.git('log', '-1', '--format=%s', 'sandbox/worker')).toBe('All of it')
    await sh(sandbox, 'git add -A')
    const tree = (await sh(sandbox, 'git write-tree')).trim()
    expect(repository.git('rev-parse', 'sandbox/worker^{tree}')).toBe(tree)
    expect(ownersIn(join(repository.path, '.git'))).toEqual([OWNER])
    // The same again is the same; other work under that name is refused.
    expect(await sandbox.worktree.export({ message: 'All of it' })).toEqual(done)
    await sh(sandbox, 'echo again >> readme.md')
    await expect(sandbox.worktree.export()).rejects.toMatchObject({ code: 'worktree_refused' })
  })

  test('as a patch gives the same tree', async () => {
    const sandbox = await open()
    await sh(sandbox, 'echo more >> grüße.txt; chmod +x readme.md; rm old.txt; ln -s gone.txt l')
    const { seal } = await sandbox.worktree.diff()
    const patch = join(mkdtempSync('/var/tmp/airlock-patch-'), 'patch')
    onTestFinished(() => rmSync(join(patch, '..'), { recursive: true }))
    writeFileSync(patch, await sandbox.worktree.patch(seal))
    execFileSync('chown', ['-R', `${OWNER}`, join(patch, '..')])
    const index = join(patch, '..', 'index')
    const git = (...args: string[]) =>
      execFileSync('setpriv', ['--reuid', `${OWNER}`, '--clear-groups', 'git', '-C', repository.path, ...args], {
        env: { PATH: '/usr/bin:/bin', HOME: '/nonexistent', GIT_INDEX_FILE: index },
        encoding: 'utf8',
      }).trim()
    git('read-tree', 'HEAD')
    git('apply', '--cached', patch)
    await sh(sandbox, 'git add -A')
    expect(git('write-tree')).toBe((await sh(sandbox, 'git write-tree')).trim())
  })

  test('with findings asks a person, who is shown them', async () => {
    const developer = new Airlock({ url: server.url, apiKey: server.developerKey })
    const sandbox = await open(undefined, {}, developer)
    await sh(
      sandbox,
      `mkdir -p sub/.GitHub/Workflows; echo on: push > sub/.GitHub/Workflows/ci.yml; echo ${SECRET} | base64 -w0 > notes`,
    )
    await expect(sandbox.worktree.export({ branch: 'asks' })).rejects.toMatchObject({ code: 'approval_required' })
    const approval = (await admin.approvals.list()).items.find(({ sandbox: id }) => id === sandbox.id)
    expect(approval?.summary).toMatch(/findings: .*1 ci.*1 secret/u)
    expect(() => repository.git('rev-parse', '--verify', '--quiet', 'sandbox/asks')).toThrow()
    await admin.approvals.approve(approval?.id ?? '')
    // What is changed after the answer is not what was approved.
    await sh(sandbox, 'echo more >> notes')
    await expect(sandbox.worktree.export({ branch: 'asks' })).rejects.toMatchObject({ code: 'approval_required' })
    await sh(sandbox, `echo ${SECRET} | base64 -w0 > notes`)
    expect(await sandbox.worktree.export({ branch: 'asks' })).toMatchObject({ exported: true })
  })

  test('of two at once gives one branch, and the other is told', async () => {
    const [one, two] = [await open(), await open()]
    await Promise.all([sh(one, 'echo 1 > n'), sh(two, 'echo 2 > n')])
    const ends = await Promise.allSettled([one, two].map(async ({ worktree }) => worktree.export({ branch: 'race' })))
    expect(ends.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    expect(repository.git('fsck', '--strict', '--no-dangling')).toBe('')
  })
})

describe('a hostile repository of the host', requires('root', 'python3'), () => {
  test('runs nothing of its configuration and hooks, and leads nowhere by links', async () => {
    const hostile = new TestRepository({ a: 'a\n' })
    const outside = mkdtempSync('/var/tmp/airlock-outside-')
    chmodSync(outside, 0o777)
    onTestFinished(() => {
      hostile.remove()
      rmSync(outside, { recursive: true })
    })
    const git = join(hostile.path, '.git')
    mkdirSync(join(git, 'hooks'), { recursive: true })
    for (const hook of ['reference-transaction', 'post-commit', 'update', 'post-checkout'])
      hostile.write(`.git/hooks/${hook}`, `#!/bin/sh\ntouch ${outside}/ran\n`, 0o755)
    hostile.git('config', 'core.fsmonitor', `touch ${outside}/ran`)
    hostile.git('config', 'core.alternateRefsCommand', `touch ${outside}/ran`)
    await admin.grants.add('default', hostile.path, { mode: 'worktree' })
    const sandbox = await admin.sandboxes.create({ worktree: { source: hostile.path } })
    onTestFinished(async () => void (await sandbox.terminate({ force: true })))
    await sh(sandbox, 'echo b > b')
    // Every object that is not there yet would be written outside.
    const links = Array.from({ length: 256 }, (_, number) => join(git, 'objects', number.toString(16).padStart(2, '0')))
    const made = links.filter((link) => !existsSync(link))
    for (const link of made) symlinkSync(outside, link)
    await expect(sandbox.worktree.export({ branch: 'out' })).rejects.toMatchObject({ code: 'worktree_refused' })
    for (const link of made) unlinkSync(link)
    symlinkSync(outside, join(git, 'refs/heads/sandbox'))
    await expect(sandbox.worktree.export({ branch: 'out' })).rejects.toMatchObject({ code: 'worktree_refused' })
    unlinkSync(join(git, 'refs/heads/sandbox'))
    expect(readdirSync(outside)).toEqual([])
    // Without the links it works, and still runs nothing. The hooks would: git runs one at the next command.
    expect(await sandbox.worktree.export({ branch: 'out' })).toMatchObject({ exported: true })
    expect(readdirSync(outside)).toEqual([])
    hostile.git('branch', 'control')
    expect(readdirSync(outside)).toEqual(['ran'])
  })

  test('takes no object of another repository, by whatever links lead there', async () => {
    const [other, borrower] = [
      new TestRepository({ 'private.txt': 'PRIVATE' }),
      new TestRepository({ 'own.txt': 'own' }),
    ]
    onTestFinished(() => {
      other.remove()
      borrower.remove()
    })
    await admin.grants.add('default', borrower.path, { mode: 'worktree' })
    const commit = other.git('rev-parse', 'HEAD')
    const objectsOf = ({ path }: TestRepository) => join(path, '.git/objects')
    const names = readdirSync(objectsOf(other)).filter((name) => /^[0-9a-f]{2}$/.test(name))
    const create = async () => admin.sandboxes.create({ worktree: { source: borrower.path, at: commit } })
    const refusal = { code: 'worktree_refused' }
    for (const name of names) {
      mkdirSync(join(objectsOf(borrower), name), { recursive: true })
      for (const file of readdirSync(join(objectsOf(other), name)))
        symlinkSync(join(objectsOf(other), name, file), join(objectsOf(borrower), name, file))
    }
    // The control: git itself follows them.
    expect(borrower.git('cat-file', '-t', commit)).toBe('commit')
    await expect(create()).rejects.toMatchObject({ ...refusal, message: expect.stringContaining('has no commit') })
    rmSync(join(objectsOf(borrower), names[0] ?? ''), { recursive: true })
    symlinkSync(join(objectsOf(other), names[0] ?? ''), join(objectsOf(borrower), names[0] ?? ''))
    await expect(create()).rejects.toMatchObject({ ...refusal, message: expect.stringContaining('is not a directory') })
  })

  test('is whole wherever an export is killed, and the next one finishes', async () => {
    const sandbox = await open()
    await sh(sandbox, 'for i in 1 2 3 4 5 6 7 8 9; do echo $i > new-$i; done')
    const { seal } = await sandbox.worktree.diff()
    const asked = exportRequest(sandbox.id, seal)
    for (const ms of [0, 60, 120, 150, 180, 210, 240, 300]) {
      await exportKilledAfter(ms, asked)
      expect(repository.git('fsck', '--no-dangling')).toBe('')
    }
    const { commit } = JSON.parse((await exportKilledAfter(60_000, asked)) || '{}') as { commit: string }
    expect(repository.git('rev-parse', 'sandbox/killed')).toBe(commit)
    expect(repository.git('fsck', '--strict', '--no-dangling')).toBe('')
  })
})

/** What the data plane would ask of the program that writes into the repository. */
function exportRequest(sandbox: string, seal: string): object {
  const dir = join(server.home, 'data-plane/sandboxes', sandbox, 'worktree')
  const read = (name: string) => JSON.parse(readFileSync(join(dir, name), 'utf8'))
  const { path, dev, ino, base } = read('mount.json')
  const { tree, objects, sealedAt } = read(`seals/${seal}/manifest.json`)
  const from = { path, dev, ino, commit: base.commit, baseTree: base.tree, format: base.format }
  const to = { stage: '/run/airlock-stage', seal: join(dir, 'seals', seal), tree, objects, time: sealedAt }
  return { ...from, ...to, branch: 'killed', message: 'killed' }
}

async function exportKilledAfter(ms: number, asked: object): Promise<string> {
  const child = spawn('unshare', [
    '--mount',
    '--propagation',
    'private',
    'python3',
    '-I',
    '-S',
    '-B',
    PROGRAM,
    'export',
  ])
  const said: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => said.push(chunk))
  child.stdin.on('error', () => undefined)
  child.stdin.end(JSON.stringify(asked))
  const timer = setTimeout(() => child.kill('SIGKILL'), ms)
  await once(child, 'close')
  clearTimeout(timer)
  return Buffer.concat(said).toString()
}

/** What an export must not touch. */
function stateOf({ path }: TestRepository): unknown {
  const files = readdirSync(path).filter((name) => name !== '.git')
  const facts = files.map((name) => [name, lstatSync(join(path, name)).ctimeMs])
  const inGit = ['HEAD', 'index', 'config'].map((name) => readFileSync(join(path, '.git', name)).toString('hex'))
  return [facts, inGit]
}

function ownersIn(path: string): readonly number[] {
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' })
  return [...new Set(names.map((name) => statSync(join(path, name)).uid))]
}
