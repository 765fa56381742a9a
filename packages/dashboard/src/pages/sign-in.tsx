import { useState } from 'preact/hooks'
import { Icon } from '../parts/icon.tsx'
import { Typed } from '../parts/notice.tsx'
import type { Server } from '../server.ts'
import { toError } from '../session.ts'

interface SignInProps {
  readonly server: Server
  readonly problem: string | undefined
  readonly onSignedIn: () => void
}

export function SignInPage({ server, problem, onSignedIn }: SignInProps) {
  const [key, setKey] = useState('')
  const [busy, setBusy] = useState(false)
  const [refused, setRefused] = useState<string>()
  const signIn = async (): Promise<void> => {
    setBusy(true)
    try {
      await server.signIn({ key: key.trim() })
      setKey('')
      onSignedIn()
    } catch (error) {
      const { message, hint } = toError(error)
      setRefused(`${message} ${hint}`)
    } finally {
      setBusy(false)
    }
  }
  const said = refused ?? problem
  return (
    <main class="sign-in">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void signIn()
        }}
      >
        <h1>
          <Icon name="brand" /> Airlock
        </h1>
        <label>
          API key
          <input
            type="password"
            name="key"
            autocomplete="current-password"
            placeholder="al_…"
            spellcheck={false}
            required
            value={key}
            onInput={({ currentTarget }) => setKey(currentTarget.value)}
          />
        </label>
        <button type="submit" class="primary" disabled={busy || key.trim() === ''}>
          Sign in
        </button>
        <p class="said" role="alert">
          {said}
        </p>
        <p class="help">
          On the machine of the server, as root: <Typed>cat /var/lib/airlock/admin.key</Typed>
          Elsewhere, ask an admin: <Typed>airlock keys create NAME --role operator</Typed>
        </p>
      </form>
    </main>
  )
}
