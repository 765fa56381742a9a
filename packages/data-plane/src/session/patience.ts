/** How long a guest is waited for. A busy host makes every guest late, so only silence is held against one. */
export interface Patience {
  /** A start without an answer by then is reported as running. The host goes on asking. */
  readonly startMs: number
  /** A guest that answers nothing for so long is lost; a start that it does not answer for so long is given up. */
  readonly silenceMs: number
  /** How long after its deadline a command may live before the host kills it. */
  readonly commandGraceMs: number
  /** The guest first interrupts a step, then kills it, and starts its interpreter anew. */
  readonly stepGraceMs: number
  /** How long a command may live after the guest said that it was killed. */
  readonly obeyMs: number
}

export const PATIENCE: Patience = {
  startMs: 10_000,
  silenceMs: 120_000,
  commandGraceMs: 5000,
  stepGraceMs: 30_000,
  obeyMs: 5000,
}
