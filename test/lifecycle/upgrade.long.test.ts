import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { verifyExport } from '@airlock/audit'
import { Airlock, outputBytes, type CommandEvent, type Sandbox } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, expect, it } from 'vitest'
import { copyTree } from '../support/copy-tree.ts'
import { linesOf } from '../support/lines.ts'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'

const SANDBOXES = 4
const COMMANDS = 2
const trees: string[] = []
const copied = () => {
  const tree = copyTree()
  trees.push(tree)
  return tree
}

afterAll(() => {
  for (const tree of trees) rmSync(tree, { recursive: true, force: true })
})

/** Prints noise of its own until it may end; says the SHA-256 of all of it on stderr; ends as no other command does. */
const PRINTER = `
import hashlib, os, random, sys, time
seed = int(sys.argv[1])
noise, digest, count = random.Random(seed), hashlib.sha256(), 0
while count < 100 or not os.path.exists('/workspace/go'):
    line = b'%d %d %s\\n' % (seed, count, noise.randbytes(500).hex().encode())
    digest.update(line)
    sys.stdout.buffer.write(line)
    sys.stdout.flush()
    time.sleep(0.02)
    count += 1
sys.stderr.write('%d %s' % (count, digest.hexdigest()))
sys.exit(seed)
`

it(
  'keeps what runs through an upgrade: every command ends with its own complete result',
  requires('root'),
  async () => {
    const before = copied()
    let server = await startServer({ tree: before })
    const { home, url } = server
    try {
      const airlock = new Airlock({ url, apiKey: server.developerKey })
      const sandboxes = await Promise.all(Array.from({ length: SANDBOXES }, async () => airlock.sandboxes.create()))
      const runs = sandboxes.flatMap((sandbox, at) =>
        Array.from({ length: COMMANDS }, (_, nth) => new Run(sandbox, 10 + at * COMMANDS + nth)),
      )
      await waitFor(() => runs.every(({ bytes }) => bytes > 10_000) || undefined, {
        signal: deadline(120_000),
        everyMs: 50,
      })
      expect(await server.stop('SIGTERM')).toBe(0)
      // Sandboxes hold on to what they need of it; nobody else does.
      rmSync(before, { recursive: true })
      server = await startServer({ home, tree: copied(), env: { AIRLOCK_PORT: new URL(url).port } })

      const seen = runs.map(({ bytes }) => bytes)
      const goOn = () => runs.every(({ bytes }, at) => bytes > (seen[at] ?? 0)) || undefined
      await waitFor(goOn, { signal: deadline(120_000), everyMs: 50 })
      for (const sandbox of sandboxes) await sandbox.files.write('/workspace/go', '')
      expect(await Promise.all(runs.map(async (run) => run.summary()))).toEqual(runs.map((run) => run.expected()))
      const rows = await airlock.sandboxes.list({})
      expect(rows.items.map(({ data }) => data.state)).toEqual(sandboxes.map(() => 'active'))
      await expectVerifies(server)
      for (const sandbox of sandboxes) await sandbox.terminate()
    } finally {
      await server.stop('SIGINT')
    }
  },
)

/** One command and the client that follows it, over the upgrade. */
class Run {
  bytes = 0
  readonly #seed: number
  readonly #hash = createHash('sha256')
  readonly #done: Promise<CommandEvent | undefined>
  #told = ''

  constructor(sandbox: Sandbox, seed: number) {
    this.#seed = seed
    this.#done = this.#follow(sandbox)
  }

  async summary(): Promise<unknown> {
    const end = await this.#done
    if (end?.event !== 'ended') return 'did not end'
    const { state, exitCode, truncated } = end.command
    return { state, exitCode, truncated, sha256: this.#hash.digest('hex') }
  }

  expected(): unknown {
    return { state: 'exited', exitCode: this.#seed, truncated: false, sha256: this.#told.split(' ')[1] }
  }

  async #follow(sandbox: Sandbox): Promise<CommandEvent | undefined> {
    let last: CommandEvent | undefined
    for await (const event of sandbox.stream(['python3', '-c', PRINTER, String(this.#seed)], { timeoutMs: 540_000 })) {
      last = event
      if (event.event !== 'output') continue
      const bytes = outputBytes(event)
      this.bytes += bytes.length
      if (event.stream === 'stdout') this.#hash.update(bytes)
      else this.#told += Buffer.from(bytes).toString()
    }
    return last
  }
}

/** The code of this repository at another place. Files that nobody changes are shared where the file system can. */
async function expectVerifies(server: TestServer): Promise<void> {
  const { audit } = new Airlock({ url: server.url, apiKey: server.adminKey })
  const { publicKey } = await audit.head()
  expect(await verifyExport(linesOf(audit.export()), { publicKey })).toMatchObject({ ok: true })
}
