import { BOUNDS, type Step, type StepOutput } from '@airlock/contract'
import { describe, expect, it } from 'vitest'
import { answerStep, Outputs, stepAnswer } from './step-answer.ts'
import { TextOutput } from './text-output.ts'

const STEP: Step = {
  id: `stp_${'0'.repeat(26)}`,
  stepId: 'mine',
  session: `ses_${'0'.repeat(26)}`,
  sandbox: `sbx_${'0'.repeat(26)}`,
  status: 'completed',
  error: null,
  cause: 'exit',
  restarted: false,
  truncated: false,
  outputBytes: 0,
  startedAt: '2026-01-01T00:00:00.000Z',
  endedAt: '2026-01-01T00:00:01.000Z',
  durationMs: 1000,
  resourceUsage: null,
  provenance: { image: 'base', runtime: 'Python 3', policyVersion: null },
}

function answer(changes: Partial<Step>, outputs: readonly StepOutput[], printed = '') {
  const text = new TextOutput()
  if (printed !== '') text.push({ stream: 'stdout', text: printed })
  const kept = new Outputs()
  for (const output of outputs) kept.push(output)
  const { structured, content, failed } = answerStep({ ...STEP, ...changes }, { text, outputs: kept })
  return { structured: stepAnswer.parse(structured), content, failed }
}

describe('the answer to a step', () => {
  it('has what was printed, the value in its most readable form, and pictures as pictures', () => {
    const png = Buffer.from('not really a picture').toString('base64')
    const { structured, content, failed } = answer(
      {},
      [
        { kind: 'display', data: { 'image/png': `${png}\n`, 'text/plain': '<Figure>' } },
        { kind: 'result', data: { 'text/html': '<b>3</b>', 'text/plain': '3' } },
      ],
      'hello\n',
    )
    expect(failed).toBe(false)
    expect(content).toEqual([
      { type: 'text', text: 'hello\n' },
      { type: 'image', data: png, mimeType: 'image/png' },
      { type: 'text', text: '3' },
    ])
    expect(structured.outputs).toEqual([
      { kind: 'display', types: ['image/png', 'text/plain'], text: '<Figure>' },
      { kind: 'result', types: ['text/html', 'text/plain'], text: '3' },
    ])
  })

  it('says that the time was up, after where the code was', () => {
    const error = { name: 'Timeout', message: 'the step ran longer than 2000 ms', traceback: 'KeyboardInterrupt\n' }
    expect(answer({ status: 'failed', error, cause: 'timeout' }, []).content).toEqual([
      { type: 'text', text: 'KeyboardInterrupt\nTimeout: the step ran longer than 2000 ms' },
    ])
  })

  it('says that there was nothing to say', () => {
    expect(answer({}, []).content).toEqual([{ type: 'text', text: '[no output]' }])
  })

  it('is marked as failed when the code threw, with its traceback, and says when the memory is gone', () => {
    const error = { name: 'ValueError', message: 'no', traceback: 'Traceback\nValueError: no' }
    const { content, failed, structured } = answer({ status: 'failed', error, restarted: true }, [])
    expect({ failed, error: structured.error }).toEqual({ failed: true, error })
    expect(content).toEqual([
      { type: 'text', text: 'Traceback\nValueError: no' },
      { type: 'text', text: '[The interpreter was started anew: what it remembered is gone.]' },
    ])
  })

  it('leaves out pictures past the bound and outputs past the number, and says how many', () => {
    const half = 'a'.repeat(BOUNDS.richBytes / 2 + 4)
    const pictures: StepOutput[] = [1, 2].map(() => ({ kind: 'display', data: { 'image/jpeg': half } }))
    const many: StepOutput[] = Array.from({ length: 70 }, () => ({ kind: 'display', data: { 'text/plain': 'x' } }))
    const { structured, content } = answer({}, [...pictures, ...many])
    expect(content?.filter((block) => block.type === 'image')).toHaveLength(1)
    expect(structured.cutOutputs).toBe(1 + 72 - 64)
    expect(content?.at(-1)).toEqual({ type: 'text', text: '[9 rich outputs were too large or too many to show.]' })
  })

  it('bounds the text of one output', () => {
    const { structured } = answer({}, [{ kind: 'result', data: { 'application/json': ['y'.repeat(1_000_000)] } }])
    expect(structured.outputs[0]?.text).toContain('bytes were cut here')
  })
})
