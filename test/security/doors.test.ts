import { execFileSync } from 'node:child_process'
import { createPrivateKey } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { connection, renewedToken, self, signSandboxToken, TOKEN_SCOPES } from '@airlock/contract'
import { Airlock, type Sandbox } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { pidOf } from '../support/pid-of.ts'
import { requires } from '../support/requires.ts'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'

let server: BorrowedServer
let box: Sandbox

beforeAll(async () => {
  server = await borrowServer()
  await client('admin').agents.register('coder', { approve: true })
}, 240_000)
afterAll(async () => server?.giveBack())
beforeEach(async () => {
  box = await client().sandboxes.create({ agent: 'coder' })
})
afterEach(async () => box?.terminate())

describe('a program inside', requires('root'), () => {
  it('is told by its environment where its door and its token are, and nothing secret', async () => {
    const { stdout } = await box.run({ shell: 'env | grep AIRLOCK | sort' })
    expect(stdout.trim().split('\n')).toEqual([
      'AIRLOCK_AGENT_ID=coder',
      `AIRLOCK_SANDBOX_ID=${box.id}`,
      'AIRLOCK_SOCKET=/run/airlock/airlock.sock',
      'AIRLOCK_TOKEN_FILE=/run/airlock/token',
    ])
  })

  it('learns who it is', async () => {
    const { sandbox, tenant, agent, generation, scopes } = self.parse(await ask('/v1/self'))
    const { generation: current } = box.data
    expect({ sandbox, tenant, agent, generation, scopes }).toEqual({
      sandbox: box.id,
      tenant: 'default',
      agent: 'coder',
      generation: current,
      scopes: [...TOKEN_SCOPES],
    })
  })

  it('is a sign of life of its agent when it says so', async () => {
    const { lastSeenAt: before } = await client().agents.get('coder')
    await ask('/v1/self/heartbeat', 'POST')
    const { lastSeenAt } = await client().agents.get('coder')
    expect(Date.parse(lastSeenAt ?? '')).toBeGreaterThan(Date.parse(before ?? ''))
  })

  it('gets a new token for the one that it has, and the new one is good', async () => {
    const { token } = renewedToken.parse(await ask('/v1/self/token', 'POST'))
    expect(token).not.toBe(await tokenOf(box))
    expect(await ask('/v1/self', 'GET', token)).toMatchObject({ sandbox: box.id })
  })

  it('cannot change or replace its token, its door, or where they lie', async () => {
    const attempts = [
      'echo x > /run/airlock/token',
      'chmod 666 /run/airlock/token',
      'rm -f /run/airlock/token',
      'mv /run/airlock/token /run/airlock/other',
      'touch /run/airlock/other',
      'rm -f /run/airlock/airlock.sock',
      'rm -f /run/airlock/control/airlock.sock',
      'chmod 600 /run/airlock/control/airlock.sock',
      'touch /run/airlock/control/other',
      'mv /run/airlock /run/other',
    ]
    const shell = attempts.map((line) => `(${line}) 2>/dev/null && echo '${line}'`).join('\n')
    expect((await box.run({ shell: `${shell}\ntrue` })).stdout).toBe('')
    expect(await ask('/v1/self')).toMatchObject({ sandbox: box.id })
  })

  it('sees no door but its own', async () => {
    const other = await client().sandboxes.create({ agent: 'coder' })
    const { stdout } = await box.run({ shell: `find / -path /proc -prune -o -type s -print 2>/dev/null` })
    expect(stdout).toBe('/run/airlock/control/airlock.sock\n')
    expect((await box.run({ shell: 'cat /proc/self/mountinfo' })).stdout).not.toContain(other.id)
    await other.terminate()
  })
})

describe('a token', requires('root'), () => {
  it('of another sandbox is refused, of the same agent too, and that is in the evidence', async () => {
    const other = await client().sandboxes.create({ agent: 'coder' })
    expect(await ask('/v1/self', 'GET', await tokenOf(other))).toMatchObject(REFUSED)
    await other.terminate()
    await expect.poll(refusals).toEqual(['other sandbox'])
  })

  it('that is absent, the key of a user, forged, altered, expired or of an old generation is refused', async () => {
    const good = await tokenOf(box)
    const { generation } = box.data
    const now = Date.now()
    const key = createPrivateKey(readFileSync(`${server.home}/control-plane/sandbox-token.key`))
    const permitKey = createPrivateKey(readFileSync(`${server.home}/control-plane/permit.key`))
    const claims = { tokenId: 'tok_1', tenant: 'default', agent: 'coder', sandbox: box.id, generation, scopes: [] }
    const times = { issuedAt: now, expiresAt: now + 60_000 }
    const all = [...TOKEN_SCOPES]
    const tries = [
      ['missing', ''],
      ['malformed', server.developerKey],
      ['forged', signSandboxToken({ ...claims, ...times, scopes: all }, permitKey)],
      ['forged', good.replace(/.\./, (end) => (end === 'A.' ? 'B.' : 'A.'))],
      ['expired', signSandboxToken({ ...claims, scopes: all, issuedAt: 1, expiresAt: now - 1 }, key)],
      ['old generation', signSandboxToken({ ...claims, ...times, scopes: all, generation: generation - 1 }, key)],
      ['not its scope', signSandboxToken({ ...claims, ...times }, key)],
    ] as const
    for (const [, token] of tries) expect(await ask('/v1/self', 'GET', token)).toMatchObject(REFUSED)
    await expect.poll(refusals).toEqual(tries.map(([reason]) => reason))
    // It was not the key that was wrong: the same claims, whole, open the door.
    const whole = signSandboxToken({ ...claims, ...times, scopes: all }, key)
    expect(await ask('/v1/self', 'GET', whole)).toMatchObject({ sandbox: box.id })
  })

  it('is worthless beyond its door', async () => {
    const headers = { authorization: `Bearer ${await tokenOf(box)}` }
    const response = await fetch(`${server.url}/v1/whoami`, { headers })
    expect([response.status, await response.json()]).toMatchObject([401, { error: { code: 'unauthenticated' } }])
  })

  it('from before a connection that revokes is refused, and the sandbox has the new one', async () => {
    const before = await tokenOf(box)
    const { expiresAt, env } = connection.parse(await box.connect({ revoke: true }))
    expect(env['AIRLOCK_SOCKET']).toBe('/run/airlock/airlock.sock')
    expect(await ask('/v1/self', 'GET', before)).toMatchObject(REFUSED)
    expect(await ask('/v1/self')).toMatchObject({ sandbox: box.id, expiresAt })
    await expect.poll(refusals).toEqual(['revoked'])
  })

  it.each(['revoke', 'suspend'] as const)('of an agent opens nothing after %s, and no door is left', async (verb) => {
    const id = `short-${verb}`
    const { agents } = client('admin')
    await agents.register(id, { approve: true })
    const short = await client().sandboxes.create({ agent: id })
    const token = await tokenOf(short)
    await agents[verb](id)
    expect(existsSync(`${server.home}/run/doors/${short.id}`)).toBe(false)
    expect(await ask('/v1/self', 'GET', token)).toMatchObject(REFUSED)
  })
})

describe('the door', requires('root', 'python3'), () => {
  it.each([
    ['another route', 'GET /v1/sandboxes HTTP/1.1\r\nHost: airlock\r\nAuthorization: Bearer TOKEN\r\n\r\n', 404],
    ['a tunnel', 'CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: airlock\r\n\r\n', 0],
    ['another host', 'GET /v1/self HTTP/1.1\r\nHost: 127.0.0.1:7070\r\nAuthorization: Bearer TOKEN\r\n\r\n', 400],
    ['two hosts', 'GET /v1/self HTTP/1.1\r\nHost: airlock\r\nHost: x\r\nAuthorization: Bearer TOKEN\r\n\r\n', 400],
    ['an address as the target', 'GET http://127.0.0.1/v1/self HTTP/1.1\r\nHost: airlock\r\n\r\n', 404],
    [
      'a hidden request',
      'POST /v1/self/heartbeat HTTP/1.1\r\nHost: airlock\r\nAuthorization: Bearer TOKEN\r\nTransfer-Encoding:\tchunked\r\n\r\n0\r\n\r\nPOST /v1/self/token HTTP/1.1\r\nHost: airlock\r\nAuthorization: Bearer TOKEN\r\n\r\n',
      400,
    ],
    [
      'two lengths',
      'POST /v1/self/token HTTP/1.1\r\nHost: airlock\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\nGET /v1/self HTTP/1.1\r\nHost: airlock\r\n\r\n',
      400,
    ],
  ])('is not opened by %s', async (_what, request, status) => {
    const answer = await raw(request)
    expect(Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? 0)).toBe(status)
    expect(answer.match(/HTTP\/1\.1 /g) ?? []).toHaveLength(status === 0 ? 0 : 1)
    expect(answer).not.toContain('"token"')
  })

  it('lets a program in while another holds all of its connections and says nothing', async () => {
    const { stdout, stderr } = await box.run(['python3', '-c', `${CROWD}${ASK}`, 'GET', '/v1/self'])
    expect([stdout, stderr]).toEqual([expect.stringContaining(`"sandbox":"${box.id}"`), ''])
  })

  it('believes no header about who asks', async () => {
    const lies = ['x-airlock-sandbox: other', 'x-airlock-tenant: other', 'x-forwarded-for: 1.2.3.4', 'forwarded: for=x']
    const answer = await raw(
      `GET /v1/self HTTP/1.1\r\nHost: airlock\r\nAuthorization: Bearer TOKEN\r\nConnection: close\r\n${lies.join('\r\n')}\r\n\r\n`,
    )
    expect(answer).toContain(`"sandbox":"${box.id}","tenant":"default","agent":"coder"`)
  })

  it('lets nobody of the host in', () => {
    const socket = `${server.home}/run/doors/${box.id}/control/airlock.sock`
    expect(existsSync(socket)).toBe(true)
    const dial = `import socket; socket.socket(socket.AF_UNIX).connect(${JSON.stringify(socket)})`
    const as = (uid: string) => ['--reuid', uid, '--regid', uid, '--clear-groups', '/usr/bin/python3', '-c', dial]
    expect(() => execFileSync('setpriv', as('65534'), { stdio: 'pipe' })).toThrow('PermissionError')
    expect(execFileSync('setpriv', as('0'), { stdio: 'pipe' }).length).toBe(0)
  })

  it('is served by a process without any right', () => {
    const status = readFileSync(`/proc/${pidOf(server.home, 'doors')}/status`, 'utf8')
    const line = (name: string) => new RegExp(`^${name}:(.*)$`, 'm').exec(status)?.[1]?.trim()
    expect([line('Uid'), line('Groups'), line('CapEff'), line('CapPrm')]).toEqual([
      '1879048196\t1879048196\t1879048196\t1879048196',
      '',
      '0000000000000000',
      '0000000000000000',
    ])
  })

  it('is gone with its sandbox', async () => {
    await box.terminate()
    expect(existsSync(`${server.home}/run/doors/${box.id}`)).toBe(false)
  })

  it.each(['doors', 'control-plane'] as const)(
    'comes back after kill -9 of the %s, and its sandbox does not notice',
    async (victim) => {
      const { stdout } = await box.run({ shell: 'sleep 3600 >/dev/null 2>&1 & echo $!' })
      const before = pidOf(server.home, victim) ?? 0
      expect(before).toBeGreaterThan(1)
      process.kill(before, 'SIGKILL')
      const back = () => {
        const now = pidOf(server.home, victim)
        return now === undefined || now === before ? undefined : true
      }
      await waitFor(back, soon())
      const seen = await waitFor(async () => {
        const answer = await ask('/v1/self').catch(() => undefined)
        return answer !== undefined && 'sandbox' in answer ? answer : undefined
      }, soon())
      expect(seen).toMatchObject({ sandbox: box.id })
      expect((await box.run({ shell: `kill -0 ${stdout.trim()} && echo lives` })).stdout).toBe('lives\n')
      expect(
        await client()
          .sandboxes.create({ agent: 'coder' })
          .then(async (made) => made.terminate()),
      ).toBeDefined()
    },
  )
})

const REFUSED = { error: { code: 'token_refused' } }
const soon = () => ({ signal: deadline(100_000), everyMs: 100 })

function client(role: 'admin' | 'developer' = 'developer'): Airlock {
  return new Airlock({ url: server.url, apiKey: role === 'admin' ? server.adminKey : server.developerKey })
}

async function tokenOf(sandbox: Sandbox): Promise<string> {
  return (await sandbox.run({ shell: 'cat $AIRLOCK_TOKEN_FILE' })).stdout.trim()
}

/** From inside, as any program would. The token is that of the file unless one is given. */
async function ask(path: string, method = 'GET', token?: string): Promise<object> {
  const { stdout, stderr, exitCode } = await box.run([
    'python3',
    '-c',
    ASK,
    method,
    path,
    ...(token === undefined ? [] : [token]),
  ])
  if (exitCode !== 0) throw new TypeError(stderr)
  return JSON.parse(stdout) as object
}

/** A plain HTTP client: a bare system has no curl. */
const ASK = `
import http.client, os, socket, sys
method, path, *given = sys.argv[1:]
token = given[0] if given else open(os.environ['AIRLOCK_TOKEN_FILE']).read().strip()
door = http.client.HTTPConnection('airlock', timeout=20)
door.sock = socket.socket(socket.AF_UNIX)
door.sock.settimeout(20)
door.sock.connect(os.environ['AIRLOCK_SOCKET'])
door.request(method, path, headers={'authorization': 'Bearer ' + token} if token else {})
print(door.getresponse().read().decode())
`

/** Takes every connection of the door, and keeps it. */
const CROWD = `
import os, socket
crowd = [socket.socket(socket.AF_UNIX) for _ in range(16)]
for one in crowd:
    one.connect(os.environ['AIRLOCK_SOCKET'])
`

const RAW = `
import os, socket, sys
request = sys.stdin.read().replace('TOKEN', open(os.environ['AIRLOCK_TOKEN_FILE']).read().strip())
door = socket.socket(socket.AF_UNIX)
door.settimeout(20)
door.connect(os.environ['AIRLOCK_SOCKET'])
door.sendall(request.encode())
answer = b''
while chunk := door.recv(65536):
    answer += chunk
sys.stdout.buffer.write(answer)
`

/** Sends these bytes from inside, and answers everything that comes back until the door hangs up. */
async function raw(request: string): Promise<string> {
  const { stdout, stderr, exitCode } = await box.run(['python3', '-c', RAW], { stdin: { text: request } })
  if (exitCode !== 0) throw new TypeError(stderr)
  return stdout
}

/** Why tokens were refused at the door of the sandbox, oldest first. */
async function refusals(): Promise<readonly unknown[]> {
  const { items } = await client('admin').audit.events({ sandbox: box.id, point: 'auth.refuse', limit: 100 })
  return items.toReversed().map(({ payload }) => payload['reason'])
}
