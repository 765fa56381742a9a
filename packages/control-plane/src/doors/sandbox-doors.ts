import { createHash } from 'node:crypto'
import {
  AirlockError,
  BUILT_DOORS,
  type BuiltDoor,
  type DoorConfig,
  type DoorName,
  DOORS,
  isBuilt,
  type ServedModel,
} from '@airlock/contract'

/** Every sandbox has it, whatever its template says. */
const OF_ALL: DoorName = 'control'

/** The doors of a new sandbox: those of all, of its template, and those that the caller names. */
export function doorsOf(...asked: readonly (readonly DoorName[])[]): DoorName[] {
  const wanted = new Set<DoorName>([OF_ALL, ...asked.flat()])
  return DOORS.filter((door) => wanted.has(door))
}

/** Fails closed: nobody enforces the rules of a door that is not built. */
export function assertBuilt(doors: readonly DoorName[], refusal: 'invalid_request' | 'template_invalid'): void {
  const absent = doors.filter((door) => !isBuilt(door))
  if (absent.length === 0) return
  throw new AirlockError(refusal, `doors: this server has no ${absent.join(', ')} door.`, {
    hint: `It has: ${BUILT_DOORS.join(', ')}.`,
  })
}

/**
 * Configuration of each door of a sandbox. A door that this version cannot open stays shut. `models`: those that the sandbox may
 * name.
 */
export function configsOf(
  { doors, tenant }: { readonly doors: readonly DoorName[]; readonly tenant: string },
  models: readonly ServedModel[],
): DoorConfig[] {
  return doors.filter((door) => isBuilt(door)).map((door) => CONFIGS[door](models, tenant))
}

const CONFIGS: {
  readonly [D in BuiltDoor]: (models: readonly ServedModel[], tenant: string) => Extract<DoorConfig, { door: D }>
} = {
  // It has no settings.
  control: () => ({ door: 'control', version: '1' }),
  egress: () => ({ door: 'egress', version: '1' }),
  llm: (models, tenant) => ({ door: 'llm', version: digestOf(models), tenant, models: [...models] }),
}

function digestOf(models: readonly ServedModel[]): string {
  return createHash('sha256').update(JSON.stringify(models)).digest('hex')
}
