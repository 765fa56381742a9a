import type { EndedFor, EndReason, Watched } from '@airlock/contract'
import type { Observed } from './observed.ts'

/** Samples in a row with no process left to start. */
const PIDS_SAMPLES = 3
/** In percent. */
const PIDS_NEARLY = 95
const OOM_KILLS = 3
const MINUTE_MS = 60_000

/** What is remembered of a sandbox from sample to sample. */
export interface Strain {
  /** Samples in a row with its processes at the limit. */
  readonly full: number
  /** Kills of the last minute by the kernel for want of memory, each with the earliest moment at which it may have been. */
  readonly ooms: readonly { readonly since: number; readonly kills: number }[]
  /** What the last sample with a count said. */
  readonly last: { readonly at: number; readonly oomKills: number } | null
}

export const UNSTRAINED: Strain = { full: 0, ooms: [], last: null }

/** Why a sandbox is ended, and what was seen. */
export interface Exhaustion {
  readonly endedFor: EndedFor
  readonly resource: Watched
  readonly reason: EndReason
  readonly seen: Readonly<Record<string, number>>
}

/** What was exhausted, if anything, as this sample shows it together with those before; the first of these is enough. */
export function judgeExhaustion(
  strain: Strain,
  observed: Observed,
): { readonly strain: Strain; readonly found: readonly Exhaustion[] } {
  const next = {
    full: fullAfter(strain.full, observed),
    ...oomsAfter(strain, observed),
  }
  const found = [pidsOf(next, observed), oomOf(next), diskOf(observed), cpuOf(observed)]
  return { strain: next, found: found.filter((one) => one !== null) }
}

/**
 * Full is a sandbox at its limit. A fork bomb whose processes end and come by the hundred is sampled anywhere below it, but what it
 * was refused says that it was there: near the limit one refusal is enough, elsewhere as many as it may have processes.
 */
function fullAfter(full: number, { row, sample, before }: Observed): number {
  const { ofLimit, pidsRefused } = sample
  if (ofLimit.pids === null) return full
  const refused = pidsRefused === null || before === undefined ? 0 : pidsRefused - (before.pidsRefused ?? pidsRefused)
  const isRefused = refused >= row.limits.pids || (refused > 0 && ofLimit.pids >= PIDS_NEARLY)
  return ofLimit.pids >= 100 || isRefused ? full + 1 : 0
}

/** A count that was there before the first sample says nothing of when, unless the sandbox itself is younger than a minute. */
function oomsAfter({ ooms, last }: Strain, { row, sample }: Observed): Pick<Strain, 'ooms' | 'last'> {
  const at = Date.parse(sample.at)
  const recent = ooms.filter(({ since }) => since >= at - MINUTE_MS)
  const { oomKills } = sample
  if (oomKills === null) return { ooms: recent, last }
  const from = last ?? { at: row.createdAt, oomKills: row.createdAt >= at - MINUTE_MS ? 0 : oomKills }
  const kills = oomKills - from.oomKills
  const isNew = kills > 0 && from.at >= at - MINUTE_MS
  return { ooms: isNew ? [...recent, { since: from.at, kills }] : recent, last: { at, oomKills } }
}

function pidsOf({ full }: Strain, { row, sample }: Observed): Exhaustion | null {
  if (full < PIDS_SAMPLES) return null
  const { pids, pidsRefused } = sample
  const seen = { pids: pids ?? row.limits.pids, limit: row.limits.pids, refused: pidsRefused ?? 0, samples: full }
  return { endedFor: 'pids', resource: 'pids', reason: 'pids_exhausted', seen }
}

function oomOf({ ooms }: Strain): Exhaustion | null {
  const kills = ooms.reduce((sum, one) => sum + one.kills, 0)
  if (kills < OOM_KILLS) return null
  return { endedFor: 'oom', resource: 'memory', reason: 'out_of_memory', seen: { kills, withinMs: MINUTE_MS } }
}

/** The kernel lets nothing beyond a limit that it enforces, so this one is only measured. */
function diskOf({ row, sample }: Observed): Exhaustion | null {
  const { diskBytes, ofLimit } = sample
  if (ofLimit.disk === null || ofLimit.disk <= 100) return null
  const seen = { percent: ofLimit.disk, diskBytes: diskBytes ?? 0, limit: row.limits.diskBytes }
  return { endedFor: 'disk', resource: 'disk', reason: 'disk_exhausted', seen }
}

function cpuOf({ row, sample }: Observed): Exhaustion | null {
  const cap = row.limits.cpuSeconds
  const { cpuMs } = sample
  if (cap === null || cpuMs === null || cpuMs < cap * 1000) return null
  return { endedFor: 'cpu', resource: 'cpu', reason: 'cpu_exhausted', seen: { cpuMs, limitMs: cap * 1000 } }
}
