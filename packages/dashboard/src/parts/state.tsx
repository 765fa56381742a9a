/** A status as a word, a colour and a dot: no colour alone says anything. */
export type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'quiet'

const TONES: Readonly<Record<string, Tone>> = {
  active: 'good',
  done: 'good',
  approved: 'good',
  creating: 'busy',
  running: 'busy',
  requested: 'busy',
  stopping: 'busy',
  paused: 'warn',
  pending: 'warn',
  warning: 'warn',
  unknown: 'warn',
  lost: 'bad',
  error: 'bad',
  failed: 'bad',
  denied: 'bad',
  rejected: 'bad',
  critical: 'bad',
}

export function State({ word, tone = TONES[word] ?? 'quiet' }: { readonly word: string; readonly tone?: Tone }) {
  return <span class={`state ${tone}`}>{word}</span>
}
