import { AirlockError, type CloseModelCall } from '@airlock/contract'
import { createLog } from '@airlock/std'
import { expect, it } from 'vitest'
import { CallCloser } from './call-closer.ts'
import { CallEnd } from './call-end.ts'

const SANDBOX = 'sbx_0000000000aaaaaaaaaaaaaaaa'
const log = createLog({ process: 'doors', level: 'silent', write: () => {} })

it('an end is reported again until it is heard, and once then', async () => {
  const heard: CloseModelCall[] = []
  let left = 3
  const link = {
    closeModelCall: async (end: CloseModelCall) => {
      if (left-- > 0) throw new AirlockError('not_ready')
      heard.push(end)
    },
  }
  const closer = new CallCloser(link, log)
  closer.close({ ...new CallEnd('cal_1').report(null), sandbox: SANDBOX })
  await closer.stop()
  expect(heard).toMatchObject([{ callId: 'cal_1', usage: 'unsent', status: null, sandbox: SANDBOX }])
})

it('usage counts when the provider said that no more comes, and only then', () => {
  const usage = { input: 10, cacheRead: 1, cacheWrite: 2, cacheWriteLong: 3, output: 5 }
  const reported = (isFinal: boolean, used: typeof usage | 'missing') => {
    const end = new CallEnd('cal_1')
    end.sent()
    end.metered({ usage: used, isFinal })
    return end.report(200).usage
  }
  expect(reported(true, usage)).toEqual({ inputTokens: 10, outputTokens: 5, cacheReadTokens: 1, cacheWriteTokens: 5 })
  expect(reported(false, usage)).toBe('unreported')
  expect(reported(true, 'missing')).toBe('unreported')
})

it('the first error of a call is its error', () => {
  const end = new CallEnd('cal_1')
  end.failed(new AirlockError('upstream_broken'))
  end.failed(new AirlockError('timeout'))
  expect(end.report(null).error).toBe('upstream_broken')
})
