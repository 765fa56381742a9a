import { describe } from 'vitest'
import { requires } from '../../../../../../test/support/requires.ts'
import { describeBackend } from '../../conformance.ts'
import { makeOciHost } from '../../fixtures/oci-host.ts'

// The other runtimes: oci.conformance.long.test.ts.
describe('with crun on this host', requires('crun'), () => {
  describeBackend('oci (crun)', () => makeOciHost({ runtime: 'crun', tier: 'standard' }))
})
