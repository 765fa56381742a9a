import type { AirlockError } from '@airlock/sdk/browser'
import type { ComponentChildren } from 'preact'
import { visible } from '../text/visible.ts'

/** What went wrong, and what to do. Takes no room while there is nothing. */
export function Problem({ error }: { readonly error: AirlockError | undefined }) {
  if (!error) return null
  return (
    <div class="problem" role="alert">
      <strong>{visible(error.message)}</strong> {visible(error.hint)}
      {error.approval !== undefined && (
        <>
          {' '}
          <a href="#/approvals">Go to approvals</a>
        </>
      )}
    </div>
  )
}

/** What a page shows when there is nothing yet: how to make something. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children}
    </div>
  )
}

export function Typed({ children }: { readonly children: string }) {
  return <code class="typed">{children}</code>
}
