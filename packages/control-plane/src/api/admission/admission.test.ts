import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { Admission } from './admission.ts'
import { connectionBounds } from './open-connections.ts'
import type { Lane } from './turns.ts'

const HOLDER = { tenant: 'acme', actor: 'key' }
const AMPLE = { burst: 1_000_000, perSecond: 1_000_000 }
/** The most requests under way of one caller that is alone. */
const SHARE = connectionBounds().proven / 2 / 4

/** The most memory of one caller that is alone. */
const BODY_SHARE = 32 * 1024 * 1024

const makeAdmission = () => new Admission({ rates: { perKey: AMPLE, perTenant: AMPLE }, trustedProxy: false })

async function enter(admission: Admission, lane: Lane = 'other', exchange = makeExchange()) {
  return admission.enter(exchange, { holder: HOLDER, lane, connected: 'within' })
}

async function fill(admission: Admission): Promise<ReturnType<typeof makeExchange>[]> {
  const exchanges = Array.from({ length: SHARE }, makeExchange)
  await Promise.all(exchanges.map(async (exchange) => enter(admission, 'other', exchange)))
  return exchanges
}

describe('requests under way', () => {
  it('of one caller are bounded, and free their share when their response closes', async () => {
    const admission = makeAdmission()
    const exchanges = await fill(admission)
    await expect(enter(admission)).rejects.toMatchObject({ code: 'too_many_requests' })
    exchanges[0]?.response.emit('close')
    await enter(admission)
    await expect(enter(admission)).rejects.toMatchObject({ code: 'too_many_requests' })
  })

  it('that reduce are heard beyond the share, and hold nothing', async () => {
    const admission = makeAdmission()
    const [first] = await fill(admission)
    for (const _ of [1, 2, 3]) expect((await enter(admission, 'reduces')).isBeyond).toBe(true)
    first?.response.emit('close')
    await enter(admission)
  })

  it('are refused late, and the refusal delays nobody else', async () => {
    const admission = makeAdmission()
    await fill(admission)
    const order: string[] = []
    const refused = enter(admission).catch(() => order.push('refused'))
    await enter(admission, 'reduces').then(() => order.push('entered'))
    await refused
    expect(order).toEqual(['entered', 'refused'])
  })

  it('hold nothing when their caller hung up before', async () => {
    const admission = makeAdmission()
    for (const _ of Array.from({ length: SHARE })) {
      const exchange = makeExchange()
      exchange.response.destroy()
      await expect(enter(admission, 'other', exchange)).rejects.toMatchObject({ code: 'timeout' })
    }
    await fill(admission)
  })
})

it('memory for a body is not taken again by a request whose caller hung up', async () => {
  const admission = makeAdmission()
  const exchange = makeExchange()
  const memory = await (await enter(admission, 'other', exchange)).reserve(BODY_SHARE)
  exchange.response.emit('close')
  memory.shrinkTo(1)
  await (await enter(admission)).reserve(BODY_SHARE)
})

function makeExchange() {
  const request = new IncomingMessage(new Socket())
  return { request, response: new ServerResponse(request) }
}
