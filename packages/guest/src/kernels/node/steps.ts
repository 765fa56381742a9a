import { AsyncLocalStorage } from 'node:async_hooks'
import { EventEmitter } from 'node:events'
import timers from 'node:timers'
import type { Worker } from 'node:worker_threads'
import { RICH_BYTES } from '@airlock/contract/guest'
import type { DriverError } from '../../session/driver.ts'
import { describeError } from './describe-error.ts'
import { Evaluator, type Outcome } from './evaluator.ts'
import { defineGlobals } from './globals.ts'
import type { FromSteps, ToSteps } from './messages.ts'
import { showLine } from './show.ts'
import { makeDescriptor, Streams } from './streams.ts'

// Taken before user code can replace them: a step may patch what it likes and still not break the next.
const { setImmediate } = timers
const { stringify } = JSON
const { defineProperty, entries } = Object
const { deleteProperty } = Reflect
const { env } = process
const nextTick = process.nextTick.bind(process)
const emitWarning = process.emitWarning.bind(process)
const reallyExit = process.exit.bind(process)
const captureUncaught = process.setUncaughtExceptionCaptureCallback.bind(process)
const addListener = process.on.bind(process)
const dropListener = process.off.bind(process)
const countListeners = process.listenerCount.bind(process)
const emit = EventEmitter.prototype.emit.bind(process)

/** Thrown where code of a step that is over asks for an exit. */
const LATE_EXIT = Symbol('exit of a step that is over')

type Request = Extract<ToSteps, { type: 'step' }>

interface Step {
  readonly nonce: string
  /** What `env` hides, to be put back. */
  readonly hidden: [name: string, value: string | undefined][]
  richBytes: number
  isOver: boolean
}

/** Runs steps in this thread, which is user code's too, for as long as the other thread lives. */
export function startSteps(control: Worker): void {
  control.on('exit', () => reallyExit(0))
  const send = control.postMessage.bind(control)
  const steps = new Steps((message) => send(message))
  control.on('message', (message: ToSteps) => steps.take(message))
  process.argv = [process.execPath]
  // What it starts should not have our options.
  process.execArgv = []
  send({ type: 'ready' } satisfies FromSteps)
}

class Steps {
  readonly #send: (message: FromSteps) => void
  readonly #evaluator = new Evaluator()
  readonly #context = ownMethods(new AsyncLocalStorage<Step>())
  readonly #owner = this.#context.getStore.bind(this.#context)
  readonly #runIn = this.#context.run.bind(this.#context)
  readonly #streams = new Streams(() => this.#asker() !== undefined)
  readonly #ignore = (): void => undefined
  #current: Step | undefined

  constructor(send: (message: FromSteps) => void) {
    this.#send = send
    defineGlobals((value) => this.#display(value))
  }

  take(message: ToSteps): void {
    if (message.type === 'step') this.#begin(message)
    else if (this.#current?.nonce === message.nonce) this.#fail(this.#current, INTERRUPTED)
  }

  #begin(request: Request): void {
    // One that said it was over, and was not.
    if (this.#current) this.#close(this.#current)
    const step: Step = { nonce: request.nonce, hidden: [], richBytes: 0, isOver: false }
    this.#current = step
    this.#restore()
    this.#streams.open(request)
    setEnv(step, request.env)
    const { prepared } = request
    if (prepared.kind === 'error') return this.#fail(step, prepared.error)
    const script = `${prepared.script}\n//# sourceURL=${request.name}`
    this.#runIn(step, () => this.#evaluator.evaluate(script, (outcome) => this.#evaluated(step, outcome)))
  }

  #evaluated(step: Step, outcome: Outcome): void {
    if (step.isOver) return
    if (outcome.kind === 'terminated') this.#fail(step, INTERRUPTED)
    else if (outcome.kind === 'unsettled') this.#fail(step, UNSETTLED)
    else if (outcome.kind === 'thrown') this.#fail(step, describeError(outcome.thrown))
    // A rejection that nobody handles is known after the microtasks.
    else setImmediate(() => this.#conclude(step, outcome.value))
  }

  #conclude(step: Step, value: unknown): void {
    if (step.isOver) return
    try {
      if (value !== undefined) this.#sayRich(step, showLine('result', value))
      this.#finish(step, 'completed')
    } catch (error) {
      this.#fail(step, describeError(error))
    }
  }

  #fail(step: Step, error: DriverError): void {
    if (step.isOver) return
    this.#send({ type: 'rich', nonce: step.nonce, json: stringify({ kind: 'error', error }) })
    this.#finish(step, 'failed')
  }

  #finish(step: Step, status: 'completed' | 'failed'): void {
    this.#close(step)
    this.#send({ type: 'done', nonce: step.nonce, status })
  }

  #close(step: Step): void {
    step.isOver = true
    this.#current = undefined
    restoreEnv(step)
    this.#streams.release()
    this.#evaluator.forget()
  }

  /** The step whose code is running now, unless it is over. Code without a context is of whoever is there. */
  #asker(): Step | undefined {
    const step = this.#owner() ?? this.#current
    return step?.isOver ? undefined : step
  }

  #display(value: unknown): void {
    const step = this.#asker()
    if (step) this.#sayRich(step, showLine('display', value))
  }

  /** More than the guest would keep is not worth the memory. */
  #sayRich(step: Step, json: string): void {
    step.richBytes += json.length
    if (step.richBytes <= RICH_BYTES) this.#send({ type: 'rich', nonce: step.nonce, json })
  }

  /** What must be as it was for the next step to work, whatever the last one did. */
  #restore(): void {
    put('exit', (code?: number | string): never => this.#exit(code))
    // Node's own streams ask for it there.
    put('nextTick', nextTick)
    put('emitWarning', emitWarning)
    // It has these from its prototype.
    deleteProperty(process, 'emit')
    deleteProperty(process, 'on')
    process.exitCode = undefined
    captureUncaught(null)
    captureUncaught((error) => this.#onUncaught(error))
    // Without a listener SIGINT would end the process; the code itself is stopped from the other thread.
    dropListener('SIGINT', this.#ignore)
    addListener('SIGINT', this.#ignore)
  }

  /** Ends the step and not the session. */
  #exit(code: number | string | undefined): never {
    const step = this.#asker()
    if (!step) throw LATE_EXIT
    const status = Number(code ?? process.exitCode ?? 0) & 0xff
    if (status === 0) this.#finish(step, 'completed')
    else this.#fail(step, exited(status))
    return this.#evaluator.stop()
  }

  /** Exceptions that nobody caught, and rejections that nobody handled. */
  #onUncaught(error: unknown): void {
    if (error === LATE_EXIT) return
    if (countListeners('uncaughtException') > 0) emit('uncaughtException', error, 'uncaughtException')
    else {
      const step = this.#asker()
      if (step) this.#fail(step, describeError(error))
    }
  }
}

const INTERRUPTED = { name: 'Interrupted', message: 'the step was interrupted', traceback: '' } as const

const UNSETTLED = {
  name: 'UnsettledAwait',
  message: 'the step awaits something that can never be settled',
  traceback: '',
} as const

function put(name: string, value: unknown): void {
  defineProperty(process, name, makeDescriptor({ value, writable: true, configurable: true, enumerable: true }))
}

function exited(status: number): DriverError {
  return { name: 'ExitStatus', message: `exit status ${status}`, traceback: '' }
}

/** They call each other by name, which then is not that of the prototype. */
function ownMethods(context: AsyncLocalStorage<Step>): AsyncLocalStorage<Step> {
  for (const name of ['run', 'getStore', 'enterWith']) Reflect.set(context, name, Reflect.get(context, name))
  return context
}

function setEnv(step: Step, added: Readonly<Record<string, string>>): void {
  const variables = entries(added)
  for (let at = 0; at < variables.length; at++) {
    const name = variables[at]?.[0] ?? ''
    step.hidden[at] = [name, env[name]]
    env[name] = variables[at]?.[1] ?? ''
  }
}

function restoreEnv(step: Step): void {
  for (let at = 0; at < step.hidden.length; at++) {
    const name = step.hidden[at]?.[0] ?? ''
    const value = step.hidden[at]?.[1]
    if (value === undefined) deleteProperty(env, name)
    else env[name] = value
  }
}
