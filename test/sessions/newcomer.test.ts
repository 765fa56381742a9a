import { Airlock, type Sandbox } from '@airlock/sdk'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CliProcess, type Ended } from '../../packages/cli/src/testing/cli-process.ts'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'

// What people type in the first hour, in a sandbox of `base` and at the command line beside a real server.

let server: BorrowedServer
let airlock: Airlock
let sandbox: Sandbox
let home: string
beforeAll(async () => {
  server = await borrowServer()
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  sandbox = await airlock.sandboxes.create({ ttlMs: 3_600_000 })
  home = await mkdtemp(join(tmpdir(), 'al-newcomer-'))
})
afterAll(async () => {
  await rm(home, { recursive: true, force: true })
  await server?.giveBack()
})

async function type(...argv: string[]): Promise<Ended> {
  const env = { PATH: process.env['PATH'], HOME: home, AIRLOCK_HOME: server.home, AIRLOCK_URL: server.url }
  const process_ = new CliProcess(argv, { env, cwd: home })
  process_.child.stdin.end()
  return process_.ended
}

describe('python', () => {
  it.each([
    ['python -c "print(6 * 7)"', { stdout: '42\n', exitCode: 0 }],
    ['echo "print(1)" | python', { stdout: '1\n', exitCode: 0 }],
    ['python3 -c "raise SystemExit(3)"', { exitCode: 3 }],
    [`python3 -c 'import sys; print(sys.argv[1:])' 'a  b' '*' ''`, { stdout: "['a  b', '*', '']\n" }],
    [`python3 -c 'import sys; print(sys.executable)'`, { stdout: '/usr/bin/python3\n' }],
    ['echo "[1]" | python3 -m json.tool --compact', { stdout: '[1]\n' }],
  ])('%s', async (line, result) => expect(await sandbox.run(line)).toMatchObject(result))
})

it('a script that names python finds it', async () => {
  await sandbox.files.write('two', '#!/usr/bin/env python\nprint(2)\n')
  expect(await sandbox.run('chmod +x two && ./two')).toMatchObject({ stdout: '2\n', exitCode: 0 })
})

describe('what needs a network is refused in one sentence, with the command of the host', () => {
  const ofPip = (me: string, name: string) =>
    `${me}: sandboxes have no network. On the host: airlock template build NAME --package python3-${name}; wheels that --with copies in install with --no-index.\n`
  const ofNpm = (name: string) =>
    `npm: sandboxes have no network. On the host: npm install ${name}, then copy it in: --with node_modules. Directories and tarballs that are here install.\n`
  const ofNpx = (name: string) =>
    `npx: sandboxes have no network, and ${name} is not installed here. On the host: npm install ${name}, then copy it in: --with node_modules.\n`
  const ofApt = (me: string, names: string) =>
    `${me}: sandboxes have no network and no root. On the host: airlock template build NAME ${names}, then --template NAME.\n`

  it.each([
    ['pip install requests', ofPip('pip', 'requests')],
    ['pip3 install -q "Flask_Login>=1"', ofPip('pip3', 'flask-login')],
    ['pip install "requests[socks]==2"', ofPip('pip', 'requests')],
    ['pip install -r requirements.txt', ofPip('pip', 'PACKAGE')],
    ['pip install git+https://example.org/x', ofPip('pip', 'PACKAGE')],
    ['python3 -m pip install requests', ofPip('pip', 'requests')],
    ['python -m pip install --user requests', ofPip('pip', 'requests')],
    ['npm install left-pad', ofNpm('left-pad')],
    ['npm i -g "typescript@5"', ofNpm('typescript')],
    ['npx cowsay hello', ofNpx('cowsay')],
    ['npx -y create-react-app app', ofNpx('create-react-app')],
    ['npm exec cowsay', ofNpx('cowsay')],
    ['apt-get update', ofApt('apt-get', '--package PACKAGE')],
    ['apt install -y jq curl', ofApt('apt', '--package jq --package curl')],
  ])('%s', async (line, stderr) => expect(await sandbox.run(line)).toMatchObject({ exitCode: 1, stdout: '', stderr }))

  it('python3 -m venv, where the template lacks what it needs', async () => {
    const lacks = (await sandbox.run('/usr/bin/python3 -c "import ensurepip"')).exitCode !== 0
    expect(await sandbox.run('python3 -m venv v')).toMatchObject(
      lacks
        ? {
            exitCode: 1,
            stderr:
              'python3: there is no python3-venv in this template. On the host: airlock template build NAME --package python3-venv; without pip in it: python3 -m venv --without-pip DIR\n',
          }
        : { exitCode: 0 },
    )
    expect(await sandbox.run('python -m venv --without-pip w && w/bin/python -c "print(1)"')).toMatchObject({
      stdout: '1\n',
    })
  })

  it('what is here runs as ever', async () => {
    const local = 'mkdir -p node_modules/.bin deep && printf "#!/bin/sh\\necho here" >node_modules/.bin/tool'
    expect(await sandbox.run(`${local} && chmod +x node_modules/.bin/tool && cd deep && npx tool`)).toMatchObject(
      existsSync('/usr/bin/npx') || existsSync('/usr/local/bin/npx')
        ? { exitCode: 0, stdout: 'here\n' }
        : { exitCode: 127, stderr: 'npx: there is no npm in this template\n' },
    )
  })
})

describe('programs that size themselves', () => {
  const SIZES = `import os
info = open('/proc/meminfo').read().split()
print(info[1], os.cpu_count(), open('/proc/cpuinfo').read().count('processor\\t'))`
  const sizes = async () => (await sandbox.run(['python3', '-c', SIZES])).stdout.trim()

  it('see the limits of the sandbox, and new ones at once', async () => {
    const host = Number(/^MemTotal:\s+(\d+)/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1])
    expect(host).toBeGreaterThan(1024 ** 2)
    expect(await sizes()).toBe('524288 1 1')
    expect((await sandbox.run('nproc; free -m | grep Mem | tr -s " " | cut -d" " -f2')).stdout).toBe('1\n512\n')
    await sandbox.setLimits({ memoryBytes: 1024 ** 3, cpus: 2 })
    const two = Math.min(2, readFileSync('/proc/stat', 'utf8').match(/^cpu\d/gm)?.length ?? 1)
    expect(await sizes()).toBe(`1048576 ${two} ${two}`)
    expect((await sandbox.run('nproc')).stdout).toBe(`${two}\n`)
  })

  it('are told what the system is', async () => {
    const name = /^ID=.*$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[0]
    expect((await sandbox.run('cat /etc/os-release')).stdout).toContain(`\n${name}\n`)
  })
})

describe('at the command line', () => {
  it('a Python file runs in base, without a template to install', async () => {
    await writeFile(join(home, 'plain.py'), 'import json, sys\nprint(json.dumps(sys.argv[1:]))')
    expect(await type('run', 'plain.py', 'a')).toEqual({ code: 0, stdout: '["a"]\n', stderr: '' })
    expect(await type('python', '-c', '6 * 7')).toEqual({ code: 0, stdout: '42\n', stderr: '' })
  })

  it('a module that is not there is named, with both ways to bring it', async () => {
    await writeFile(join(home, 'lacks.py'), 'import requests_of_nobody')
    expect(await type('run', 'lacks.py')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        'airlock: there is no module requests_of_nobody here. One of yours: --with requests_of_nobody.py. One of Debian: ',
      ) as unknown,
    })
  })

  it.each([
    [
      ['run', '--', 'nothere'],
      'error: There is no program nothere in the PATH of the sandbox. (executable_not_found)\nCheck its name. More programs: airlock template build NAME --package PACKAGE, then --template NAME\n',
    ],
    [
      ['run', '--', 'sudo', 'ls'],
      /^error: The rule builtin\/privilege-escalation denies it: .*\(policy_denied\)\nSee the rule: airlock guardian rules\. To change it: docs\/guardian\.md\n$/,
    ],
    [
      ['create', '--memory', '200g'],
      /^error: The agent default may use .* of memory: .* are taken, and 200 GiB more were asked for\. \(budget_exhausted\)\nAsk for less, or raise it with the admin key: airlock budget set default --memory \d+m\n$/,
    ],
  ])('airlock %j says what to type instead', async (argv, words) => {
    const { stdout, stderr } = await type(...argv)
    expect([stdout, stderr]).toEqual(['', typeof words === 'string' ? words : expect.stringMatching(words)])
  })

  it('a file that is not in the sandbox is named', async () => {
    const { stderr, code } = await type('cp', `${sandbox.id}:/nothere`, '.')
    expect([code, stderr]).toEqual([
      5,
      'error: There is no file or directory /nothere in the sandbox. (file_not_found)\nList its directory.\n',
    ])
  })

  it('output over its cap is kept, and the line says how to get it, also when the sandbox is gone', async () => {
    const big = await type('run', '--', 'sh', '-c', 'yes | head -c 3000000')
    const [, line = ''] =
      /^airlock: output over 2 MiB is not shown\. All of it: airlock (logs .*)\n$/.exec(big.stderr) ?? []
    const whole = await type(...line.split(' '))
    expect([whole.code, whole.stdout.length, whole.stderr]).toEqual([0, 3_000_000, ''])
  })

  it('a sandbox is killed by its name', async () => {
    const { id } = await airlock.sandboxes.create({ name: 'doomed' })
    expect(await type('kill', '--sandbox', 'doomed')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`Killed sandbox ${id}: 1 of 1 seen gone`) as unknown,
    })
  })
})

it('the end of a sandbox in which something runs is no warning', async () => {
  const warnings = () => server.logs().match(/^.*"level":"(?:warn|error)".*$/gm) ?? []
  const before = warnings().length
  for (const force of [true, false]) {
    const busy = await airlock.sandboxes.create()
    const running = await busy.start(['sleep', '1000'])
    const over = running.wait()
    await busy.terminate({ force })
    expect(await over).toMatchObject({ cause: 'sandbox_ended' })
  }
  expect(warnings().slice(before)).toEqual([])
})
