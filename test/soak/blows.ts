import { sleep } from '@airlock/std'
import { type Lane, type LaneContext, liftAgain } from './lane.ts'
import type { Blow } from './plan.ts'

const GUESTS_DIAL_MS = 3_000

/** Lets the blows of a round fall, each at its time, and answers when the server stands again. */
export async function strike(blows: readonly Blow[], lanes: readonly Lane[], context: LaneContext): Promise<void> {
  for (const blow of blows.toSorted((a, b) => a.afterMs - b.afterMs)) {
    await sleep(blow.afterMs)
    if (blow.blow === 'kill-agent') await killAgent(blow, lanes, context)
    else await disturb(blow, context)
  }
}

async function disturb(blow: Exclude<Blow, { readonly blow: 'kill-agent' }>, context: LaneContext): Promise<void> {
  const { server, weather, findings } = context
  const victim = blow.blow === 'restart' ? 'restart' : blow.victim
  const end = weather.begin({ of: 'process', victim })
  try {
    if (victim === 'restart') {
      const how = await server.stop('SIGTERM')
      if (how !== 0) findings.fail(null, 'restart', `the server ended with ${String(how)}`)
      await server.start()
    } else await server.kill(victim)
    findings.countDone(victim === 'restart' ? 'restart' : `SIGKILL ${victim}`)
  } finally {
    // Guests dial again every second at the latest, and one that has just started takes its time on a busy machine.
    setTimeout(end, GUESTS_DIAL_MS).unref()
  }
}

async function killAgent(
  { agent }: Extract<Blow, { readonly blow: 'kill-agent' }>,
  lanes: readonly Lane[],
  context: LaneContext,
): Promise<void> {
  const { admin, weather, findings } = context
  const end = weather.begin({ of: 'agent', agent })
  const from = performance.now()
  try {
    const { unverified } = await admin.killswitch.on({ scope: 'agent', target: agent, reason: 'soak' })
    if (unverified.length > 0) findings.fail(null, `kill ${agent}`, `${unverified.length} could not be verified`)
    await liftAgain(admin, { scope: 'agent', target: agent })
    findings.countDone('kill agent')
  } finally {
    end()
    for (const lane of lanes) if (lane.agent === agent) lane.struck(from, performance.now())
  }
}
