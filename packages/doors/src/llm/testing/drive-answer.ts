import type { Answering } from '../answer/answer-stream.ts'
import { judgeLargeEvent, type StreamedCall } from '../answer/judge-event.ts'

/** The bytes that go on, with long events read at once. */
export function driveAnswer(steps: Answering, call: StreamedCall): readonly Buffer[] {
  let step = steps.next(undefined)
  while (step.done !== true)
    step = steps.next(step.value === 'rest' ? undefined : judgeLargeEvent(step.value.bytes, call))
  return step.value
}
