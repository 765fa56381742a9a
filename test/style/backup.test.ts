import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { documentedCommands } from '../support/documented.ts'

let dir: string
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-backup-docs-'))
  for (const name of ['home/recorder', 'home/control-plane', 'home/keys', 'backup'])
    mkdirSync(join(dir, name), { recursive: true })
  for (const name of [
    'control-plane/node-id',
    'control-plane/permit.key',
    'keys/seal.key',
    'developer.key',
    'admin.key',
  ])
    writeFileSync(join(dir, 'home', name), 'secret')
})
afterAll(() => rmSync(dir, { recursive: true, force: true }))

it('a backup by the documented commands, which holds keys, is for its owner alone', () => {
  const places = { '/var/lib/airlock': join(dir, 'home'), '/backup': join(dir, 'backup') }
  const commands = documentedCommands('backup.md', 'files.tar --exclude', places)
  execFileSync('sh', ['-euc', `umask 022\n${commands}`])
  expect((statSync(join(dir, 'backup/files.tar')).mode & 0o777).toString(8)).toBe('600')
})

it.each(['sqlite3', 'pg_dump'])('so is what %s saves', (program) => {
  expect(documentedCommands('backup.md', program, {})).toMatch(/^umask 077\n/u)
})

it('a copy of the whole state, which the page on deployment shows, is for its owner alone', () => {
  // Runs what a container of the server would run, by the same arguments.
  const docker = 'while [ "$1" != --entrypoint ]; do shift; done; program=$2; shift 3; exec "$program" "$@"'
  writeFileSync(join(dir, 'docker'), `#!/bin/sh\numask 022\n${docker}\n`, { mode: 0o755 })
  const places = { '/var/lib/airlock': join(dir, 'home'), '/to/': `${join(dir, 'backup')}/` }
  const shown = documentedCommands('deploy.md', 'airlock-state.tar', places)
  const [copies = ''] = /^docker run .*?[^\\]\n/msu.exec(shown) ?? []
  execFileSync('sh', ['-euc', copies], { env: { PATH: `${dir}:${process.env['PATH'] ?? ''}` } })
  expect((statSync(join(dir, 'backup/airlock-state.tar')).mode & 0o777).toString(8)).toBe('600')
})
