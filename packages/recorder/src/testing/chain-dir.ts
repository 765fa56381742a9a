import { createSecretKey, generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { type NewRecord, newRecord } from '@airlock/contract'
import { createLog, newId } from '@airlock/std'
import { memoryDir } from '../../../../test/support/memory-dir.ts'
import { Archive } from '../chain/archive.ts'
import { Chain, type ChainOptions } from '../chain/chain.ts'
import { exportChain } from '../reading/export.ts'
import type { RecorderKeys } from '../keys.ts'
import { recoverChain } from '../chain/recover.ts'
import type { Segment } from '../chain/segments.ts'
import type { Tally } from '../reading/tally.ts'

const { privateKey, publicKey } = generateKeyPairSync('ed25519')

/** For tests only: one chain in a directory of its own, with real files, small segments and a clock that can be set. */
export class ChainDir implements AsyncDisposable {
  readonly dir = mkdtempSync(join(memoryDir(), 'airlock-chain-'))
  readonly tenant = 'default'
  readonly log = createLog({ process: 'recorder', level: 'silent', write: () => {} })
  readonly keys: RecorderKeys = {
    signing: privateKey,
    public: publicKey,
    publicPem: publicKey.export({ format: 'pem', type: 'spki' }).toString(),
    mac: createSecretKey(randomBytes(32)),
  }
  readonly clock = { at: Date.parse('2026-01-01T00:00:00.000Z'), now: (): number => this.clock.at }
  readonly sealed: { readonly segment: Segment; readonly tally: Tally }[] = []
  readonly #chains: Chain[] = []

  /** What the recorder makes of the directory now. */
  async open(options: Partial<ChainOptions> = {}): Promise<{ readonly chain: Chain; readonly archive: Archive }> {
    const { dir, tenant, keys, log, clock } = this
    const archive = await Archive.open({ dir, tenant, keys }, log)
    const recovered = await recoverChain({ dir, tenant, keys })
    const chain = new Chain({
      dir,
      tenant,
      keys,
      log,
      clock,
      recovered,
      failpoint: async () => {},
      segmentBytes: 4000,
      onSealed: (segment, tally) => {
        // Of the time that its records say, as that of a file of a day that went by.
        utimesSync(segment.path, clock.at / 1000, clock.at / 1000)
        this.sealed.push({ segment, tally })
      },
      ...options,
    })
    this.#chains.push(chain)
    return { chain, archive }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const chain of this.#chains) await chain.close()
    rmSync(this.dir, { recursive: true, force: true })
  }
}

export async function append(chain: Chain, fields: Partial<NewRecord> = {}): Promise<void> {
  const record = { tenant: 'default', actor: 'system', point: 'command.run', status: 'done', ...fields }
  await chain.append({ rid: newId('rec'), process: 'control-plane', record: newRecord.parse(record) })
}

export async function exportLines(of: { readonly chain: Chain; readonly archive: Archive }): Promise<string[]> {
  return Array.fromAsync(exportChain(of.chain, of.archive))
}
