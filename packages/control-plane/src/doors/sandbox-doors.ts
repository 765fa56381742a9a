import { createHash } from 'node:crypto'
import { type DoorConfig, type DoorName, DOORS, type ServedModel } from '@airlock/contract'

/** Every sandbox has it, whatever its template says. */
const OF_ALL: DoorName = 'control'

/** The doors of a new sandbox: those of all, of its template, and those that the caller names. */
export function doorsOf(...asked: readonly (readonly DoorName[])[]): DoorName[] {
  const wanted = new Set<DoorName>([OF_ALL, ...asked.flat()])
  return DOORS.filter((door) => wanted.has(door))
}

/** Configuration of each door of a sandbox. `models`: those that the sandbox may name. */
export function configsOf(
  { doors, tenant }: { readonly doors: readonly DoorName[]; readonly tenant: string },
  models: readonly ServedModel[],
): DoorConfig[] {
  return doors.map((door) => CONFIGS[door](models, tenant))
}

const CONFIGS: {
  readonly [D in DoorName]: (models: readonly ServedModel[], tenant: string) => Extract<DoorConfig, { door: D }>
} = {
  // It has no settings.
  control: () => ({ door: 'control', version: '1' }),
  egress: () => ({ door: 'egress', version: '1' }),
  // Each call asks the control plane.
  broker: () => ({ door: 'broker', version: '1' }),
  llm: (models, tenant) => ({ door: 'llm', version: digestOf(models), tenant, models: [...models] }),
}

function digestOf(models: readonly ServedModel[]): string {
  return createHash('sha256').update(JSON.stringify(models)).digest('hex')
}
