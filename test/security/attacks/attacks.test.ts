import { Airlock, type Sandbox } from '@airlock/sdk'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runBare } from '../../support/bare-sandbox.ts'
import { Breach } from '../../support/breach.ts'
import { requires } from '../../support/requires.ts'
import { SAMPLED } from '../../support/sampled-tables.ts'
import { borrowServer, type BorrowedServer } from '../../support/borrow-server.ts'
import { writeWeakenedRuntime, WEAKENINGS, type Weakening } from '../../support/weakened-runtime.ts'
import { programOf, type Attack, type Tier } from './attack.ts'
import { plantHost, type PlantedHost } from './host.ts'
import { outcomeOf, writeOutcomes, type Outcome } from './outcomes.ts'
import { ATTACKS } from './table.ts'

const MEMORY = 128 * 1024 * 1024
const TIMEOUT_MS = 60_000

let host: PlantedHost
let server: BorrowedServer
/** Of every attack on the product, whole. */
const outputs: string[] = []

beforeAll(async () => {
  host = await plantHost()
  server = await borrowServer()
})

afterAll(async () => {
  await server?.giveBack()
  await host?.close()
})

for (const tier of ['standard', 'strict'] as const)
  describe(`the ${tier} tier holds`, tier === 'strict' ? requires('runsc') : {}, () => {
    const outcomes = new Map<string, Outcome>()
    let shared: Sandbox

    beforeAll(async () => {
      shared = await create(tier)
    })
    afterAll(async () => {
      await shared?.terminate()
      writeOutcomes(tier, [...outcomes.values()])
    })

    const drawn = (tier === 'strict' ? SAMPLED.attacksStrict : SAMPLED.attacksStandard).sample()
    it.each(drawn)('$id: $attack', async (attack) => {
      const output = attack.wrecks ? await attemptAlone(attack, tier) : await attempt(attack, shared)
      outputs.push(output)
      const outcome = outcomeOf({ id: attack.id, tier }, output)
      outcomes.set(attack.id, outcome)
      if (outcome.gotThrough) throw new Breach(`${attack.id} in the ${tier} tier: ${outcome.result}`)
      expect(outcome, output).toEqual({ ...outcome, held: true })
      if (attack.control === 'itself') expect(output).toContain('control: works')
    })

    it('and its sandbox answers after all of it', async () => {
      expect((await shared.run(['echo', 'alive'])).stdout).toBe('alive\n')
    })
  })

const weakenings = Object.keys(WEAKENINGS).filter((name): name is Weakening => controlledBy(name).length > 0)

describe('without the line of the wall that stops it, each gets through', () => {
  it.each(weakenings)('%s', async (weakening) => {
    const attacks = controlledBy(weakening)
    const runtime = await writeWeakenedRuntime(host.directory, weakening)
    const programs = attacks.map((attack) => ['python3', '-c', programOf(attack)])
    const said = await runBare(host.directory, { runtime, memoryBytes: MEMORY, programs, env: host.env })
    const held = attacks.filter((_, at) => said[at]?.includes('REACHED') !== true)
    expect(held.map(({ id }, at) => `${id}: ${said[at] ?? ''}`)).toEqual([])
    if (weakening !== 'shared-host-directory') return
    // The hunt for the flags works as well: it finds the one that everybody may read, and never the other.
    expect(said.join('')).toContain(`FLAG ${host.flags.world}`)
    expect(said.join('')).not.toContain(host.flags.root)
  })
})

describe('the flags of the host', () => {
  it('are in no output of any attack', () => {
    expect(outputs.length).toBeGreaterThan(0)
    const seen = outputs.filter((output) => output.includes(host.flags.root) || output.includes(host.flags.world))
    if (seen.length > 0) throw new Breach(`a flag of the host is in the output: ${seen.join('\n')}`)
  })
})

function controlledBy(weakening: string): readonly Attack[] {
  return ATTACKS.filter(({ control }) => control === weakening)
}

async function create(tier: Tier): Promise<Sandbox> {
  const airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  const env = { ...host.env, TIER: tier }
  const sandbox = await airlock.sandboxes.create({ tier, env, limits: { memoryBytes: MEMORY } })
  expect(sandbox.data.isolation?.tier).toBe(tier)
  return sandbox
}

/** Through the product, in a directory of its own, as a file: nothing of it is in the command line. */
async function attempt(attack: Attack, sandbox: Sandbox): Promise<string> {
  const directory = `${attack.id}-${randomUUID()}`
  await sandbox.files.mkdir(directory)
  await sandbox.files.write(`${directory}/attack.py`, programOf(attack))
  const cwd = `/workspace/${directory}`
  const ran = await sandbox.run(['python3', 'attack.py'], { timeoutMs: TIMEOUT_MS, cwd })
  const killed = attack.wrecks && ran.signal === 'SIGKILL' && !ran.timedOut ? 'refused: SIGKILL\n' : ''
  return ran.stdout + ran.stderr + killed
}

async function attemptAlone(attack: Attack, tier: Tier): Promise<string> {
  await using sandbox = await create(tier)
  const output = await attempt(attack, sandbox)
  expect((await sandbox.run(['echo', 'alive'])).stdout).toBe('alive\n')
  return output
}
