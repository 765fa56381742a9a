import type { GuestRuntime } from '@airlock/contract/guest'
import { BASH_ATTACKS } from '../../packages/guest/src/session/testing/torture-bash.ts'
import { NODE_ATTACKS } from '../../packages/guest/src/session/testing/torture-node.ts'
import { PYTHON_ATTACKS } from '../../packages/guest/src/session/testing/torture-python.ts'
import { type Attack as Torture, type Attacks, TORTURES } from '../../packages/guest/src/session/testing/torture.ts'
import { CRASHES, crashName, FAILED_ONCE } from '../lifecycle/crash-table.ts'
import type { Attack, Tier } from '../security/attacks/attack.ts'
import { ATTACKS } from '../security/attacks/table.ts'
import { ATTEMPTS } from '../security/egress-attempts.ts'
import { SampledTable } from './sampled-table.ts'

/** Attacks that got through once. */
const GOT_THROUGH: readonly string[] = ['P13-activity']

interface NamedTorture {
  readonly name: string
  readonly attack: Torture
}

const TORTURES_OF: Readonly<Record<GuestRuntime, Attacks>> = {
  python: PYTHON_ATTACKS,
  node: NODE_ATTACKS,
  bash: BASH_ATTACKS,
}

/** Every table that a run takes only some rows of. */
export const SAMPLED = {
  crash: new SampledTable({
    name: 'crash',
    rows: CRASHES.filter(({ when }) => when === 'request'),
    nameOf: crashName,
    groupOf: ({ victim }) => victim,
    count: 2,
    // The first is the case whose record comes from the spill.
    always: ['kill.frozen of the control-plane', ...FAILED_ONCE.filter((name) => !name.endsWith('at its start'))],
  }),
  crashLong: new SampledTable({
    name: 'crash long',
    rows: CRASHES,
    nameOf: crashName,
    groupOf: ({ victim, when }) => `${victim} ${when}`,
    count: 45,
    always: FAILED_ONCE,
  }),
  attacksStandard: attacksOn('standard'),
  attacksStrict: attacksOn('strict'),
  egress: new SampledTable({
    name: 'egress',
    rows: ATTEMPTS,
    nameOf: ({ name }) => name,
    groupOf: ({ group }) => group,
    count: 40,
    // They got through once.
    always: ['TLS: a second ClientHello', 'TLS: plaintext to a server that greets'],
  }),
  guestTorturePython: torturesOf('python', { of: 'guest', count: 15 }),
  guestTortureNode: torturesOf('node', { of: 'guest', count: 15 }),
  guestTortureBash: torturesOf('bash', { of: 'guest', count: 15 }),
  torturePython: torturesOf('python', { of: 'product', count: 12 }),
  tortureNode: torturesOf('node', { of: 'product', count: 12 }),
  tortureBash: torturesOf('bash', { of: 'product', count: 12 }),
} as const

function attacksOn(tier: Tier): SampledTable<Attack> {
  const rows = ATTACKS.filter(({ tiers }) => tiers?.includes(tier) ?? true)
  return new SampledTable({
    name: `attacks ${tier}`,
    rows,
    nameOf: ({ id }) => id,
    // The letter of the catalogue.
    groupOf: ({ id }) => id.charAt(0),
    count: 20,
    always: GOT_THROUGH.filter((id) => rows.some((row) => row.id === id)),
  })
}

function torturesOf(
  runtime: GuestRuntime,
  { of, count }: { readonly of: 'guest' | 'product'; readonly count: number },
): SampledTable<NamedTorture> {
  const rows: readonly NamedTorture[] = TORTURES.flatMap((name) => {
    const attack = TORTURES_OF[runtime][name]
    return typeof attack === 'string' ? [] : [{ name, attack }]
  })
  return new SampledTable({ name: `${of} torture ${runtime}`, rows, nameOf: ({ name }) => name, count })
}
