import { describe, expect, it } from 'vitest'
import { isHealthy, renderChecks } from './doctor-main.ts'
import type { Check } from './doctor.ts'

const CHECKS: readonly Check[] = [
  { name: 'kernel', status: 'found', detail: 'Linux' },
  { name: 'id-mapped mounts', status: 'limited', detail: 'EINVAL\nat all', todo: 'Use a newer kernel.' },
  { name: 'sandbox', status: 'missing', detail: 'no \u001B[31mruntime', todo: 'apt-get install crun' },
]

describe('airlock doctor', () => {
  it('prints one aligned line for each check', () => {
    expect(renderChecks(CHECKS, false).split('\n')).toEqual([
      '✓ kernel            Linux',
      '! id-mapped mounts  EINVAL at all → Use a newer kernel.',
      '✗ sandbox           no runtime → apt-get install crun',
      '',
    ])
  })

  it('colours only the marks', () => {
    expect(renderChecks(CHECKS.slice(0, 1), true)).toBe('\u001B[32m✓\u001B[0m kernel  Linux\n')
  })

  it('is healthy only when a sandbox worked', () => {
    const worked: Check = { name: 'sandbox', status: 'found', detail: '' }
    expect([isHealthy(CHECKS), isHealthy(CHECKS.slice(0, 2)), isHealthy([worked])]).toEqual([false, false, true])
  })
})
