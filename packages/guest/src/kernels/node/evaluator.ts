import { type Runtime, Session } from 'node:inspector'

const { hasOwn } = Object
const { stringify } = JSON

/** Objects that V8 holds for us until the end of a step. */
const GROUP = 'step'

export type Outcome =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'thrown'; readonly thrown: unknown }
  /** Execution was terminated from outside it. */
  | { readonly kind: 'terminated' }
  /** It awaits something that nobody can settle any more. */
  | { readonly kind: 'unsettled' }

/**
 * V8 as a console: declarations stay and may be made again, `await` works at the top, and the last expression has a
 * value. Only the inspector offers this; we are its client in our own thread, so that code runs in the caller's context.
 */
export class Evaluator {
  readonly #post: Session['post']
  readonly #sink: string
  #taken: unknown

  constructor() {
    const session = new Session()
    session.connect()
    this.#post = session.post.bind(session)
    this.#sink = this.#offer((value) => (this.#taken = value))
  }

  evaluate(script: string, done: (outcome: Outcome) => void): void {
    const parameters = { expression: script, replMode: true, awaitPromise: true, objectGroup: GROUP, silent: true }
    this.#post('Runtime.evaluate', parameters, (error: Error | null, answer?: object) => {
      if (error) done({ kind: error.message.includes('collected') ? 'unsettled' : 'terminated' })
      else done(this.#read(parseAnswer(answer)))
    })
  }

  /** Ends the code that calls this, up to the event loop; nothing can catch it. */
  stop(): never {
    this.#post('Runtime.terminateExecution')
    for (;;) {
      // V8 looks up at each turn of a loop.
    }
  }

  forget(): void {
    this.#taken = undefined
    this.#post('Runtime.releaseObjectGroup', { objectGroup: GROUP })
  }

  #read(answer: Runtime.EvaluateReturnType): Outcome {
    const details = hasOwn(answer, 'exceptionDetails') ? answer.exceptionDetails : undefined
    if (!details) return { kind: 'value', value: this.#take(answer.result) }
    return { kind: 'thrown', thrown: this.#take(details.exception ?? answer.result) }
  }

  /** The value itself, not a description of it. */
  #take(remote: Runtime.RemoteObject): unknown {
    this.#taken = undefined
    const { objectId, unserializableValue, value } = { __proto__: null, ...remote } as Runtime.RemoteObject
    const argument =
      objectId === undefined ? (unserializableValue === undefined ? { value } : { unserializableValue }) : { objectId }
    this.#post('Runtime.callFunctionOn', {
      objectId: this.#sink,
      functionDeclaration: 'function (value) { this(value) }',
      arguments: [argument],
      silent: true,
    })
    const taken = this.#taken
    this.#taken = undefined
    return taken
  }

  /** Makes a function of ours known to V8's console, by no name that code could use. */
  #offer(sink: (value: unknown) => void): string {
    const name = '__airlock'
    Object.defineProperty(globalThis, name, { value: sink, configurable: true })
    let id = ''
    this.#post('Runtime.evaluate', { expression: `globalThis[${stringify(name)}]` }, (_error, answer) => {
      id = parseAnswer(answer).result.objectId ?? ''
    })
    Reflect.deleteProperty(globalThis, name)
    return id
  }
}

/** V8 wrote it. */
function parseAnswer(answer: object | undefined): Runtime.EvaluateReturnType {
  return answer as Runtime.EvaluateReturnType
}
