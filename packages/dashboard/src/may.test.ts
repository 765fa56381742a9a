import { describe, expect, it } from 'vitest'
import { type Role, ROLES, type Route, type RouteName, ROUTES } from '../../contract/src/index.ts'
import { type May, rightsOf } from './may.ts'

/** Routes behind each right. */
const BEHIND: Readonly<Record<keyof May, readonly RouteName[]>> = {
  operate: ['runCommand', 'pauseSandbox', 'resumeSandbox', 'extendSandbox', 'terminateSandbox'],
  answer: ['approveApproval', 'rejectApproval'],
  kill: ['turnKillswitchOn'],
  killAll: ['turnKillswitchOn'],
  lift: ['liftKillswitch'],
}

function allows(name: RouteName, role: Role): boolean {
  const { roles }: Route = ROUTES[name]
  return roles === 'public' || roles.includes(role)
}

describe('what the page offers', () => {
  it.each(ROLES)('is what the routes allow the role %s', (role) => {
    const may = rightsOf({ actor: 'key:a', tenant: 'default', role, agents: null, platform: true })
    const allowed = Object.fromEntries(
      Object.entries(BEHIND).map(([right, names]) => [right, names.every((name) => allows(name, role))]),
    )
    expect(may).toEqual(allowed)
  })

  it('is no power over others for a key that is bound to agents', () => {
    const may = rightsOf({ actor: 'key:a', tenant: 'default', role: 'operator', agents: ['a'], platform: false })
    expect(may).toEqual({ operate: true, answer: false, kill: false, lift: false, killAll: false })
  })
})
