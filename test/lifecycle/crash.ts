import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { verifyExport } from '@airlock/audit'
import type { AuditRecord, FailpointName, ProcessName } from '@airlock/contract'
import { Airlock } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { expect, inject } from 'vitest'
import { exported } from '../support/exported.ts'
import { countOpenRows } from '../soak/store-rows.ts'
import { leftovers, startServer, type TestServer } from '../support/server.ts'
import type { CrashCase } from './crash-table.ts'
import { throwUnlessRetryable, walkOf } from './crash-walks.ts'

interface Bystander {
  readonly id: string
  readonly pid: string
}

/** Runs cases of the table one after the other on a server that they share. After one that failed it is another. */
export class CrashRuns {
  #server: CrashServer | undefined

  async run({ failpoint, victim, when }: CrashCase): Promise<void> {
    const server = (this.#server ??= await CrashServer.start())
    try {
      await (when === 'start' ? server.crashAtStart(failpoint, victim) : server.crash(failpoint, victim))
    } catch (error) {
      this.#server = undefined
      // What went wrong is said by the error; the sweep after the last test removes what is left.
      await server.stop().catch(() => undefined)
      throw error
    }
  }

  async stop(): Promise<void> {
    await this.#server?.stop()
  }
}

/**
 * A server whose processes are killed one after the other. A bystander sandbox lives through all of it, with its
 * processes; after each crash nothing is in limbo, nothing is left behind, and the evidence verifies and says of
 * everything that was begun how it ended.
 */
class CrashServer {
  readonly #home: string
  #server: TestServer
  #bystander: Bystander
  #cases = 0

  private constructor(home: string, server: TestServer, bystander: Bystander) {
    this.#home = home
    this.#server = server
    this.#bystander = bystander
  }

  static async start(): Promise<CrashServer> {
    const home = mkdtempSync(join(tmpdir(), `al-${inject('testRun') ?? ''}`))
    chmodSync(home, 0o711)
    mkdirSync(join(home, 'armed'))
    // Whoever reaches the failpoint takes the file away, and may have given up root.
    chmodSync(join(home, 'armed'), 0o777)
    const server = await startServer({ home, failpoint: armedIn(home) })
    return new CrashServer(home, server, await startBystander(client(server)))
  }

  /** Kills `victim` with SIGKILL when the running product reaches `failpoint`, and looks at what is left. */
  async crash(failpoint: FailpointName, victim: ProcessName): Promise<void> {
    const walk = walkOf(failpoint, `case-${++this.#cases}`)
    const before = await this.#lastSeq()
    const died = this.#arm(failpoint, victim)
    await walk.begin(this.#server)
    expect(await died(), `${failpoint} never fired`).toBe(true)
    await this.#afterwards(before, () => walk.expectSound(this.#server))
  }

  /** The same while the server starts again. */
  async crashAtStart(failpoint: FailpointName, victim: ProcessName): Promise<void> {
    const before = await this.#lastSeq()
    await this.#server.stop('SIGTERM')
    const died = this.#arm(failpoint, victim)
    this.#server = await startServer({ home: this.#home, failpoint: armedIn(this.#home), tolerateDeath: true })
    expect(await died(), `${failpoint} never fired`).toBe(true)
    await this.#afterwards(before, async () => {})
  }

  async stop(): Promise<void> {
    await this.#server.stop('SIGINT')
  }

  /** Answers how to wait until the process is dead. */
  #arm(failpoint: FailpointName, victim: ProcessName): () => Promise<boolean> {
    const armed = join(this.#home, 'armed/failpoint')
    const log = join(this.#home, 'logs/airlock.log')
    const from = statSync(log).size
    writeFileSync(armed, `${failpoint}:${victim}`)
    const isDead = () => {
      if (!this.#server.isRunning()) return true
      const said = readFileSync(log).subarray(from).toString()
      return !existsSync(armed) && said.includes('died (SIGKILL)') ? true : undefined
    }
    return async () => waitFor(isDead, { signal: deadline(30_000), everyMs: 20 }).catch(() => false)
  }

  async #afterwards(before: number, expectSound: () => Promise<void>): Promise<void> {
    if (!this.#server.isRunning())
      this.#server = await startServer({ home: this.#home, failpoint: armedIn(this.#home) })
    const airlock = client(this.#server)
    await settled(airlock)
    await expectAlive(airlock, this.#bystander)
    await expectSound()
    await this.#expectNothingElse(airlock)
    await this.#expectEvidence(before)
  }

  /** What lives is listed; what is ended leaves nothing. */
  async #expectNothingElse(airlock: Airlock): Promise<void> {
    const { items } = await airlock.sandboxes.list({})
    expect(items.map(({ data }) => data.state)).toEqual(items.map(() => 'active'))
    await this.#expectLeft(items.map(({ id }) => id))
    for (const sandbox of items) if (sandbox.id !== this.#bystander.id) await sandbox.terminate()
    await this.#expectLeft([this.#bystander.id])
  }

  async #expectLeft(living: readonly string[]): Promise<void> {
    const isExplained = (found: string) => living.some((id) => found.includes(id))
    // What was just ended may take a moment to go.
    const left = async () => (await leftovers(this.#home)).filter((found) => !isExplained(found))
    await waitFor(async () => ((await left()).length === 0 ? true : undefined), {
      signal: deadline(20_000),
      everyMs: 200,
    }).catch(() => undefined)
    expect(await left(), 'left behind').toEqual([])
  }

  /** The chain verifies, and whatever was begun since has its end in it: chains verify with records missing as well. */
  async #expectEvidence(before: number): Promise<void> {
    const admin = new Airlock({ url: this.#server.url, apiKey: this.#server.adminKey })
    const open = async () => openDeeds((await exported(admin)).records.filter(({ seq }) => seq > before))
    await waitFor(async () => ((await open()).length === 0 ? true : undefined), {
      signal: deadline(20_000),
      everyMs: 200,
    }).catch(() => undefined)
    expect(await open(), 'begun, and no record of how it ended').toEqual([])
    const { publicKey } = await admin.audit.head()
    const { lines } = await exported(admin)
    expect(await verifyExport(lines, { publicKey })).toMatchObject({ ok: true, tenant: 'default' })
    await this.#expectNothingOwed()
  }

  /** The store hears which ends are in the evidence: otherwise every start would send all of them again. */
  async #expectNothingOwed(): Promise<void> {
    const owed = () => countOpenRows(this.#home)['ends that are not recorded']
    await waitFor(() => (owed() === 0 ? true : undefined), { signal: deadline(20_000), everyMs: 200 }).catch(
      () => undefined,
    )
    expect(owed(), 'ends whose rows do not say that they are recorded').toBe(0)
  }

  async #lastSeq(): Promise<number> {
    const admin = new Airlock({ url: this.#server.url, apiKey: this.#server.adminKey })
    return (await admin.audit.head()).head.seq
  }
}

/**
 * Each `requested` without a `done`, `failed` or `unknown` after it. Who asks again after a crash asks for the same thing,
 * and its end is one. Reading evidence is what this itself does.
 */
function openDeeds(records: readonly AuditRecord[]): readonly string[] {
  const open = new Set<string>()
  for (const record of records.filter(({ point }) => point !== 'audit.read'))
    if (record.status === 'requested') open.add(deedOf(record))
    else open.delete(deedOf(record))
  return [...open]
}

/** What was done, and to what: the two records of a deed have these in common. */
function deedOf({ point, agent, sandbox, payload }: AuditRecord): string {
  const ids = ['command', 'session', 'step', 'scope', 'target'].map((name) => payload[name])
  return [point, agent, sandbox, ...ids].filter((part) => typeof part === 'string').join(' ')
}

const armedIn = (home: string): string => `@${join(home, 'armed/failpoint')}`

async function startBystander(airlock: Airlock): Promise<Bystander> {
  const sandbox = await airlock.sandboxes.create({ name: 'bystander' })
  const started = await sandbox.run({ shell: 'sleep 3600 >/dev/null 2>&1 & echo $! | tee /workspace/pid' })
  return { id: sandbox.id, pid: started.stdout.trim() }
}

async function expectAlive(airlock: Airlock, bystander: Bystander): Promise<void> {
  const sandbox = await airlock.sandboxes.get(bystander.id)
  expect(sandbox.data.state).toBe('active')
  const line = `cat /workspace/pid; kill -0 ${bystander.pid} && echo lives`
  // Its data plane may be on its way back: that is told as an error that is worth another try.
  const seen = await waitFor(
    () => sandbox.run({ shell: line }).catch((error: unknown) => throwUnlessRetryable(error)),
    { signal: deadline(30_000), everyMs: 100 },
  )
  expect(seen.stdout).toBe(`${bystander.pid}\nlives\n`)
}

/** Waits until the server is ready and no row is between two states. */
async function settled(airlock: Airlock): Promise<void> {
  await waitFor(
    async () => {
      const rows = await airlock.sandboxes.list({ state: 'all' }).catch(() => undefined)
      const limbo = rows?.items.filter((row) => ['creating', 'stopping'].includes(row.data.state))
      return limbo?.length === 0 ? true : undefined
    },
    { signal: deadline(60_000), everyMs: 100 },
  )
}

function client(server: TestServer): Airlock {
  return new Airlock({ url: server.url, apiKey: server.developerKey })
}
