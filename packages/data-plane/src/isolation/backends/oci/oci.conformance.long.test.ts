import { describe } from 'vitest'
import { requires } from '../../../../../../test/support/requires.ts'
import { describeBackend } from '../../conformance.ts'
import { makeOciHost } from '../../fixtures/oci-host.ts'

describe('with runc on this host', requires('runc'), () => {
  describeBackend('oci (runc)', () => makeOciHost({ runtime: 'runc', tier: 'standard' }))
})

describe('with runsc on this host', requires('crun', 'runsc'), () => {
  describeBackend('oci (runsc)', () => makeOciHost({ runtime: 'auto', tier: 'strict' }))
})
