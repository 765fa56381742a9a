import { describe, expect, it } from 'vitest'
import { Cleanup } from './cleanup.ts'

describe('Cleanup', () => {
  it('undoes in reverse order and goes on when one undo fails', async () => {
    const ran: string[] = []
    const cleanup = new Cleanup()
    const fault = new TypeError('stuck')
    cleanup.add('first', () => void ran.push('first'))
    cleanup.add('second', () => {
      throw fault
    })
    cleanup.add('third', async () => void ran.push('third'))
    expect(await cleanup.run()).toEqual([{ name: 'second', cause: fault }])
    expect(ran).toEqual(['third', 'first'])
  })

  it('undoes nothing once released, and nothing twice', async () => {
    let undone = 0
    const cleanup = new Cleanup()
    cleanup.add('once', () => void undone++)
    await cleanup.run()
    await cleanup.run()
    cleanup.add('never', () => void undone++)
    cleanup.release()
    await cleanup.run()
    expect(undone).toBe(1)
  })
})
