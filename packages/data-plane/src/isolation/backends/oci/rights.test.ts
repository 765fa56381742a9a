import { describe, expect, it } from 'vitest'
import { missingCapabilities, neededCapabilities } from './rights.ts'

const status = (effective: string) => `Name:\tnode\nCapPrm:\t000001ffffffffff\nCapEff:\t${effective}\nCapBnd:\t0\n`

describe('missingCapabilities', () => {
  it('finds none missing with all of them', () => {
    expect(missingCapabilities(status('000001ffffffffff'))).toEqual([])
  })

  it('finds what a container has not by default', () => {
    expect(missingCapabilities(status('00000000a80425fb'))).toEqual(['SYS_ADMIN'])
  })

  it('takes a status that says nothing for one without any', () => {
    expect(missingCapabilities('')).toEqual(neededCapabilities())
  })
})
