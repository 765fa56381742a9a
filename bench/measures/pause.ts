import type { Contender, Place } from '../contenders/contender.ts'
import { inTurn, type Race, type Samples } from './race.ts'

interface Opened {
  readonly name: string
  readonly place: Place
  readonly freezer: NonNullable<Place['freezer']>
}

/** Until the just-in-time compilers are done with the way of it. */
const WARM_ROUNDS = 10

/**
 * A sandbox that has something to do is paused and goes on again, each time until its answer is there. A round is one of
 * each contender; at the end each must still answer a command.
 */
export async function racePauses({ contenders, rounds, samples }: Race): Promise<void> {
  const opened: Opened[] = []
  try {
    for (const contender of contenders) opened.push(...(await openWithFreezer(contender)))
    for (let round = -WARM_ROUNDS; round < rounds; round++)
      for (const one of inTurn(opened, round)) await sample(one, round < 0 ? undefined : samples)
    for (const { place } of opened) await place.run()
  } finally {
    for (const { place } of opened) await place.close()
  }
}

async function sample({ name, freezer }: Opened, samples: Samples | undefined): Promise<void> {
  const before = performance.now()
  await freezer.pause()
  const paused = performance.now()
  await freezer.resume()
  samples?.add('resume', name, performance.now() - paused)
  samples?.add('pause', name, paused - before)
}

async function openWithFreezer(contender: Contender): Promise<readonly Opened[]> {
  if (!contender.canPause) return []
  const place = await contender.open()
  return place.freezer ? [{ name: contender.name, place, freezer: place.freezer }] : []
}
