import type { Command, Sandbox } from '@airlock/sdk/browser'
import { useState } from 'preact/hooks'
import { whyNot } from '../may.ts'
import { useDeed, useLoaded, useSession } from '../session.ts'
import { commandLine } from '../text/command-line.ts'
import { clockTime, duration } from '../text/format.ts'
import { visibleLine } from '../text/visible.ts'
import { Empty, Problem } from './notice.tsx'
import { Output } from './output.tsx'
import { State } from './state.tsx'

const PAGE = 50

interface CommandsProps {
  readonly sandbox: Sandbox
  readonly isOver: boolean
}

/** What ran in a sandbox, the output of one of them, and a line to run the next. */
export function Commands({ sandbox, isOver }: CommandsProps) {
  const { value, error, reload } = useLoaded(async (signal) => sandbox.commands({ limit: PAGE, signal }), {
    by: [sandbox.id],
    on: (event) => event.sandbox === sandbox.id && event.point.startsWith('command.'),
    everyMs: 15_000,
  })
  const [chosen, setChosen] = useState<string>()
  const items = value?.items ?? []
  const shown = chosen ?? items[0]?.id
  const onStarted = (id: string): void => {
    setChosen(id)
    reload()
  }
  return (
    <section class="panel" aria-labelledby="commands">
      <h2 id="commands">Commands</h2>
      {!isOver && <RunLine sandbox={sandbox} onStarted={onStarted} />}
      <Problem error={error} />
      {value && shown === undefined && (
        <Empty title="Nothing ran here yet.">{isOver ? '' : 'Type a line above, and press Enter.'}</Empty>
      )}
      {shown !== undefined && <Shown sandbox={sandbox.id} items={items} shown={shown} onChoose={setChosen} />}
    </section>
  )
}

interface ShownProps {
  readonly sandbox: string
  readonly items: readonly Command[]
  readonly shown: string
  readonly onChoose: (command: string) => void
}

function Shown({ sandbox, items, shown, onChoose }: ShownProps) {
  return (
    <div class="split">
      <ul class="commands" aria-label="Commands, newest first">
        {items.map((command) => (
          <li key={command.id}>
            <CommandButton command={command} isShown={command.id === shown} onChoose={() => onChoose(command.id)} />
          </li>
        ))}
      </ul>
      <Output sandbox={sandbox} command={shown} />
    </div>
  )
}

interface RunLineProps {
  readonly sandbox: Sandbox
  readonly onStarted: (command: string) => void
}

function RunLine({ sandbox, onStarted }: RunLineProps) {
  const { may, who } = useSession()
  const [line, setLine] = useState('')
  const deed = useDeed()
  const run = async (): Promise<void> =>
    deed.run(async () => {
      const { id } = await sandbox.start(line)
      setLine('')
      onStarted(id)
    })
  if (!may.operate) return <p class="why">{whyNot(who, 'developer, operator or admin')}</p>
  return (
    <>
      <form
        class="run"
        onSubmit={(event) => {
          event.preventDefault()
          void run()
        }}
      >
        <label class="mono">
          <span class="prompt" aria-hidden="true">
            $
          </span>
          <input
            name="line"
            aria-label="A line for the shell"
            placeholder="python3 -c 'print(6*7)'"
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            value={line}
            onInput={({ currentTarget }) => setLine(currentTarget.value)}
          />
        </label>
        <button type="submit" class="primary" disabled={deed.busy || line.trim() === ''}>
          Run
        </button>
      </form>
      <Problem error={deed.error} />
    </>
  )
}

interface CommandButtonProps {
  readonly command: Command
  readonly isShown: boolean
  readonly onChoose: () => void
}

function CommandButton({ command, isShown, onChoose }: CommandButtonProps) {
  return (
    <button type="button" aria-pressed={isShown} onClick={onChoose}>
      <code>{visibleLine(commandLine(command.argv))}</code>
      <span>
        <State {...endOf(command)} />
        <time dateTime={command.startedAt}>{clockTime(command.startedAt)}</time>
        {command.durationMs !== null && <span>{duration(command.durationMs)}</span>}
      </span>
    </button>
  )
}

function endOf({ state, exitCode, signal, cause }: Command): {
  readonly word: string
  readonly tone: 'busy' | 'good' | 'bad'
} {
  if (state === 'running') return { word: 'running', tone: 'busy' }
  if (exitCode === 0) return { word: 'exit 0', tone: 'good' }
  if (cause !== null && cause !== 'exit' && cause !== 'signal') return { word: cause.replaceAll('_', ' '), tone: 'bad' }
  if (exitCode !== null) return { word: `exit ${exitCode}`, tone: 'bad' }
  return { word: signal ?? 'lost', tone: 'bad' }
}
