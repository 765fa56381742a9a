import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The client in Python, and its tests. */
export const PYTHON = fileURLToPath(new URL('../../python', import.meta.url))

const PATH = '/usr/local/bin:/usr/bin:/bin'

export interface PythonEnded {
  readonly code: number | string | undefined
  /** Both streams. */
  readonly said: string
}

/** Runs tests of the Python client against a server, with exactly this environment. Nothing is written into the repository. */
export async function runPythonTests(
  file: string,
  server: { readonly url: string; readonly developerKey: string; readonly adminKey: string },
): Promise<PythonEnded> {
  const env = {
    PATH,
    PYTHONPATH: `${PYTHON}/src`,
    PYTHONDONTWRITEBYTECODE: '1',
    AIRLOCK_TEST_URL: server.url,
    AIRLOCK_TEST_DEVELOPER_KEY: server.developerKey,
    AIRLOCK_TEST_ADMIN_KEY: server.adminKey,
  }
  return runPython(['-m', 'unittest', '-b', file], { cwd: `${PYTHON}/tests`, env })
}

export async function runPython(
  args: readonly string[],
  options: { readonly cwd: string; readonly env: Readonly<Record<string, string>>; readonly program?: string },
): Promise<PythonEnded> {
  const { program = 'python3', ...place } = options
  return new Promise((resolve) => {
    execFile(program, [...args], { ...place, maxBuffer: 16 * 1024 * 1024 }, (error, stdout, stderr) => {
      const code = error === null ? 0 : (error.code ?? error.signal)
      resolve({ code: code ?? undefined, said: stdout + stderr })
    })
  })
}

/** PATH, and where pip finds packages. */
export function pipEnvironment(): Readonly<Record<string, string>> {
  const kept = Object.entries(process.env).filter(([name]) =>
    /^(?:PIP_\w+|https?_proxy|no_proxy|SSL_CERT_FILE)$/i.test(name),
  )
  return { PATH, ...Object.fromEntries(kept.map(([name, value]) => [name, value ?? ''])) }
}

/** Whether virtual environments with pip can be made: Debian has that in a package of its own. */
export function hasVenv(): boolean {
  return spawnSync('python3', ['-c', 'import venv, ensurepip'], { env: { PATH } }).status === 0
}

/** Whether pip gets packages, from an index or from a directory that its configuration names. */
export function answersPythonIndex(): boolean {
  const directory = mkdtempSync(join(tmpdir(), 'airlock-pip-'))
  try {
    const environment = join(directory, 'venv')
    const env = { ...pipEnvironment(), HOME: directory }
    const made = spawnSync('python3', ['-m', 'venv', environment], { env: { PATH } })
    const words = ['-m', 'pip', 'download', '--no-deps', '--retries', '0', '-d', directory, 'setuptools>=77']
    return made.status === 0 && spawnSync(join(environment, 'bin/python'), words, { env, timeout: 60_000 }).status === 0
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
