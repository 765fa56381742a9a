import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Nobody's on this machine, and not root. */
export const OWNER = 54_321

const ENV = { PATH: '/usr/bin:/bin', HOME: '/nonexistent', GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' }

/** A git repository of an ordinary user, where a user could have one. */
export class TestRepository {
  readonly path: string

  constructor(files: Readonly<Record<string, string | Buffer>>, uid = OWNER) {
    this.path = mkdtempSync('/var/tmp/airlock-worktree-')
    for (const [name, content] of Object.entries(files)) this.write(name, content)
    this.own(uid)
    this.git('init', '--quiet', '--initial-branch=main')
    this.commit('first')
  }

  write(name: string, content: string | Buffer, mode = 0o644): void {
    const path = join(this.path, name)
    mkdirSync(join(path, '..'), { recursive: true })
    writeFileSync(path, content)
    chmodSync(path, mode)
  }

  /** Everything in it belongs to that user. */
  own(uid = OWNER): void {
    execFileSync('chown', ['-hR', `${uid}:${uid}`, this.path])
  }

  commit(message: string): string {
    this.own()
    this.git('add', '--all', '--force')
    this.git('-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '--quiet', '--allow-empty', '-m', message)
    return this.git('rev-parse', 'HEAD')
  }

  /** As its owner. */
  git(...args: readonly string[]): string {
    const run = ['--reuid', `${OWNER}`, '--regid', `${OWNER}`, '--clear-groups', 'git', '-C', this.path, ...args]
    return execFileSync('setpriv', run, { env: ENV, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 }).trimEnd()
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}
