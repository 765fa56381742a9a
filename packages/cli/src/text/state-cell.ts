import type { Sandbox } from '@airlock/sdk'
import type { Cell } from './table.ts'

/** The state of a sandbox, in the colour of how much it should worry. */
export function stateCell(data: Sandbox['data']): Cell {
  const text = data.endReason === null ? data.state : `${data.state} (${data.endReason})`
  switch (data.state) {
    case 'active':
      return { text, style: 'green' }
    case 'error':
      return { text, style: 'red' }
    case 'creating':
    case 'stopping':
    case 'paused':
      return { text, style: 'yellow' }
    case 'stopped':
      return { text, style: 'dim' }
  }
}
