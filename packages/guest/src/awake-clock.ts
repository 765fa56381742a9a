/** Node fires a longer timer at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1
/** A timer that is later than this may have slept. */
const LATE_MS = 50
/** How long the host is given to say so. */
const WORD_MS = 250
/** While nobody is attached, how long at most: the host enforces every deadline again, and a little later. */
const ALONE_MS = 2000

/**
 * Time in which this sandbox was awake. While it is paused the clock of the machine goes on, and only the host knows for how
 * long: it says so before it wakes us, or when it is attached again. So whatever is due is looked at once more after the host
 * was heard.
 */
export class AwakeClock {
  #sleptMs = 0
  /** Without a host nobody pauses anything. */
  #isAlone = false

  /** In all since the sandbox began; a number that is known changes nothing. */
  slept(totalMs: number): void {
    this.#sleptMs = Math.max(this.#sleptMs, totalMs)
  }

  attached(): void {
    this.#isAlone = false
  }

  detached(): void {
    this.#isAlone = true
  }

  /** Calls once, after so much time awake. The function that is returned takes it back. */
  after(ms: number, call: () => void): () => void {
    const until = performance.now() - this.#sleptMs + Math.min(ms, LONGEST_TIMER_MS)
    const left = () => until + this.#sleptMs - performance.now()
    let timer: NodeJS.Timeout
    let isOver = false
    const wait = (forMs: number, patienceMs: number) => {
      const due = performance.now() + forMs
      timer = setTimeout(() => {
        const isLate = performance.now() - due > LATE_MS
        // What the host sent before it woke us is read before this is called.
        setImmediate(() => look(isLate && patienceMs === ALONE_MS, patienceMs))
      }, forMs)
    }
    const look = (mayHaveSlept: boolean, patienceMs: number) => {
      if (isOver) return
      if (left() > 0) return wait(left(), ALONE_MS)
      if (patienceMs > 0 && (mayHaveSlept || this.#isAlone)) return wait(WORD_MS, patienceMs - WORD_MS)
      isOver = true
      call()
    }
    wait(Math.max(0, left()), ALONE_MS)
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }
}
